/**
 * A gateway for tests, in the process of the test and without a port: `import { fakeGateway } from
 * 'svc-gateway-sdk/testing'`. It decides by the gateway's own policy code, and denies what no rule allows.
 *
 *     const gateway = fakeGateway();
 *     gateway.allow('tool.call', 'web_*');
 *     gateway.requireApproval('tool.call', 'pay');
 *     await gateway.client.guard('web_search', search)({ query: 'cats' });
 */
import { FakeCalls, type FakeOp, FakeRefusal } from './fake-calls.ts';
import type { FakeApproval } from './fake-people.ts';
import { type AgentClient, createAgentClient } from './fetch.ts';
import type { Fetch } from './fetch-transport.ts';
import type { AgentClientOptions, AgentName } from './options.ts';
import { type Decide, deciderOf } from './policy.js';
import type { JsonObject, Obligation } from './types.ts';

export type { FakeOp } from './fake-calls.ts';
export type { FakeApproval } from './fake-people.ts';

/** Options of `fakeGateway`. */
export type FakeGatewayOptions = {
  /** The text of a policy file, with one or many documents. Its rules apply besides those of `allow` and the others. */
  readonly policy?: string | undefined;
  /** The identity of `client`. Default `acme/test/agent`. */
  readonly agent?: AgentName | undefined;
};

/** Rules: globs for actions and resources. A deny wins, then an approval, then an allow, as in every policy. */
export type FakeGateway = {
  /** An agent of this gateway. */
  readonly client: AgentClient;
  /** Another one. Closed by `close`, too. */
  clientOf(agent: AgentName, options?: Omit<AgentClientOptions, 'address' | 'url' | 'fetch' | 'agent'>): AgentClient;
  /** For a client of one's own: `createAgentClient({ fetch, … })`. */
  readonly fetch: Fetch;

  allow(action: string, resource?: string, also?: { readonly obligations?: readonly Obligation[] }): void;
  deny(action: string, resource?: string, also?: { readonly reason?: string }): void;
  requireApproval(action: string, resource?: string, also?: { readonly reason?: string }): void;

  /** Checks, apart from rehearsals: messages as they were sent, without credentials. */
  readonly checks: readonly JsonObject[];
  readonly ops: readonly FakeOp[];
  /** Usage reports: messages as they were sent, each `usageId` once. */
  readonly usage: readonly JsonObject[];

  readonly approvals: readonly FakeApproval[];
  /** Resolves to the approval that is asked for, once one is. Rejects after `ms`, 10,000 by default. */
  pendingApproval(ms?: number): Promise<FakeApproval>;
  /** As a person who may. Throws an Error where it is not pending. */
  decide(approvalId: string, decision: 'approve' | 'deny', reason?: string): void;

  /** As an operator. Throws an Error where there is no such operation. */
  pause(opId: string): void;
  resume(opId: string): void;
  terminate(opId: string): void;

  /** From now on, or no longer, nobody answers. */
  setReachable(isReachable: boolean): void;
  /** Closes its clients. */
  close(): Promise<void>;
};

/** Throws an Error that names each mistake in the policy. */
export const fakeGateway = (options: FakeGatewayOptions = {}): FakeGateway => new InProcessGateway(options);

const TOKEN = 'svcagent_of_the_fake_gateway';
const QUICK = { signalMs: 20, outageMs: 0, closeMs: 100 };
const TEST_RULES = 'the rules of the test';

class InProcessGateway implements FakeGateway {
  readonly #policy: string | undefined;
  readonly #agent: AgentName;
  readonly #rules: object[] = [];
  readonly #clients: AgentClient[] = [];
  readonly #calls = new FakeCalls(() => this.#decide);
  #decide: Decide;
  #client: AgentClient | undefined;
  #isReachable = true;

  constructor({ policy, agent = 'acme/test/agent' }: FakeGatewayOptions) {
    this.#policy = policy;
    this.#agent = agent;
    this.#decide = this.#compiled();
  }

  get client(): AgentClient {
    this.#client ??= this.clientOf(this.#agent);
    return this.#client;
  }

  clientOf(agent: AgentName, options: Omit<AgentClientOptions, 'address' | 'url' | 'fetch' | 'agent'> = {}) {
    const { deadlines, apiKey, credentialToken, ...rest } = options;
    const credential = apiKey === undefined ? { credentialToken: credentialToken ?? TOKEN } : { apiKey };
    const client = createAgentClient({
      ...rest,
      ...credential,
      url: 'http://gateway.test',
      fetch: this.fetch,
      agent,
      deadlines: { ...QUICK, ...deadlines },
    });
    this.#clients.push(client);
    return client;
  }

  readonly fetch: Fetch = async (url, { body, signal }) => {
    signal?.throwIfAborted();
    if (!this.#isReachable) throw Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } });
    const [, method = ''] = /\/svc\.governance\.v1\.\w+\/(\w+)$/.exec(url) ?? [];
    const request = JSON.parse(new TextDecoder().decode(body as Uint8Array<ArrayBuffer>)) as JsonObject;
    try {
      return Response.json(await untilAborted(signal, this.#calls.answer(method, request, signal)));
    } catch (error) {
      if (!(error instanceof FakeRefusal)) throw error;
      const { status, code, fault, message } = error;
      return Response.json({ code, message }, { status, headers: { 'svc-code': fault } });
    }
  };

  allow(action: string, resource = '*', { obligations }: { readonly obligations?: readonly Obligation[] } = {}): void {
    const written = obligations?.map(({ id, type, properties }) => ({ id, type, ...properties }));
    this.#add({ effect: 'allow', actions: [action], resources: [resource], ...(written && { obligations: written }) });
  }

  deny(action: string, resource = '*', { reason }: { readonly reason?: string } = {}): void {
    this.#add({ effect: 'deny', actions: [action], resources: [resource], reason });
  }

  requireApproval(action: string, resource = '*', { reason }: { readonly reason?: string } = {}): void {
    this.#add({ effect: 'require_approval', actions: [action], resources: [resource], reason });
  }

  get checks(): readonly JsonObject[] {
    return this.#calls.checks as readonly JsonObject[];
  }

  get ops(): readonly FakeOp[] {
    return this.#calls.ops;
  }

  get usage(): readonly JsonObject[] {
    return this.#calls.usage as readonly JsonObject[];
  }

  get approvals(): readonly FakeApproval[] {
    return this.#calls.people.all;
  }

  async pendingApproval(ms = 10_000): Promise<FakeApproval> {
    const find = (): FakeApproval | undefined => this.approvals.find(({ state }) => state === 'pending');
    await this.#calls.people.until(() => find() !== undefined, ms);
    const found = find();
    if (found === undefined) throw new Error(`no approval was asked for within ${ms} ms`);
    return found;
  }

  decide(approvalId: string, decision: 'approve' | 'deny', reason = ''): void {
    const { opId } = this.#calls.people.change(
      approvalId,
      'pending',
      decision === 'approve' ? 'approved' : 'denied',
      reason,
    );
    if (decision === 'deny') this.terminate(opId);
  }

  pause(opId: string): void {
    this.#calls.signal(opId, 'paused');
  }

  resume(opId: string): void {
    this.#calls.signal(opId, 'running');
  }

  terminate(opId: string): void {
    this.#calls.signal(opId, 'terminated');
  }

  setReachable(isReachable: boolean): void {
    this.#isReachable = isReachable;
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  #add(rule: object): void {
    this.#rules.push({ id: `rule-${this.#rules.length + 1}`, ...rule });
    this.#decide = this.#compiled();
  }

  /** JSON is YAML, too. */
  #compiled(): Decide {
    const own = { name: 'test-rules', scope: 'global', rules: this.#rules };
    return deciderOf([
      ...(this.#policy === undefined ? [] : [{ file: 'policy', text: this.#policy }]),
      ...(this.#rules.length === 0 ? [] : [{ file: TEST_RULES, text: JSON.stringify(own) }]),
    ]);
  }
}

/** A call that is given up does not wait for people. */
function untilAborted<T>(signal: AbortSignal | null | undefined, promise: Promise<T>): Promise<T> {
  if (signal == null) return promise;
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    promise.then(resolve, reject);
  });
}

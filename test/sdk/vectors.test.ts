/** The vectors that both SDKs run: sdk/vectors. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ActionDeniedError,
  type AgentClient,
  type AgentClientOptions,
  createAgentClient,
  GatewayError,
  type Op,
  OpTerminatedError,
} from '../../sdk/typescript/src/index.ts';
import { PACKAGE_ROOT } from '../../src/app/package-files.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { policyFile } from '../support/policies.ts';

type Step = Readonly<Record<string, any>>;
type Vectors = {
  readonly policy: string;
  readonly cases: readonly { readonly name: string; readonly options?: Step; readonly steps: readonly Step[] }[];
};

const FOLDER = join(PACKAGE_ROOT, 'sdk', 'vectors');
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));

/** Beside what a step does. */
const ASIDE = new Set(['expect', 'body', 'raises', 'logged', 'meanwhile']);

const camel = (name: string): string => name.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
/** The names of one level: what is in attributes and properties stays. */
const inCamel = (fields: Step): any =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [camel(name), value]));

/** `check_timeout` in seconds is `deadlines.checkMs`. */
function optionsOf(options: Step): Partial<AgentClientOptions> {
  const deadlines: Record<string, number> = {};
  const others: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(options)) {
    const [, of] = /^(\w+)_timeout$/.exec(name) ?? [];
    if (of === undefined) others[camel(name)] = value;
    else deadlines[`${of}Ms`] = value * 1_000;
  }
  return { ...others, deadlines };
}

/** A gateway that can be stopped and started at the same addresses. */
class Restartable {
  now!: TestGateway;
  #approver: string | undefined;
  readonly #dataDir = mkdtempSync(join(tmpdir(), 'svc-vectors-'));
  readonly #env: Record<string, string>;

  constructor(policyPath: string) {
    this.#env = { SVC_POLICY_PATH: policyPath };
  }

  async start(): Promise<void> {
    this.now = await startTestGateway({ env: this.#env, dataDir: this.#dataDir });
    this.#env['SVC_HTTP_ADDR'] = this.now.url.replace('http://', '');
    this.#env['SVC_GRPC_ADDR'] = this.now.grpc;
  }

  async approver(): Promise<string> {
    this.#approver ??= (
      await this.now.call('POST', '/api/v1/iam/api-keys', { name: 'boss', scopes: ['admin'] })
    ).body.key;
    return this.#approver as string;
  }

  async end(): Promise<void> {
    await this.now?.stop();
    rmSync(this.#dataDir, { recursive: true, force: true });
  }
}

/** Runs the steps of one case. */
class Actor {
  readonly #gateway: Restartable;
  readonly #client: AgentClient;
  readonly #agentId: string;
  #starting: Promise<void> | undefined;

  constructor(gateway: Restartable, client: AgentClient, agentId: string) {
    this.#gateway = gateway;
    this.#client = client;
    this.#agentId = agentId;
  }

  async do(steps: readonly Step[], op?: Op): Promise<void> {
    for (const step of steps) await this.#step(step, op);
  }

  /** A gateway that is starting is not left behind. */
  settled(): Promise<void> {
    return this.#starting ?? Promise.resolve();
  }

  async #step(step: Step, op: Op | undefined): Promise<void> {
    const names = Object.keys(step).filter((name) => !ASIDE.has(name));
    switch (names[0]) {
      case 'check':
        return this.#called(step, () => this.#client.check(inCamel(step['check'])));
      case 'complete': {
        const { opId, ...outcome } = inCamel(step['complete']);
        return this.#called(step, () => this.#client.complete(opId, outcome));
      }
      case 'usage':
        return this.#called(step, () => this.#client.recordUsage(inCamel(step['usage'])));
      case 'run':
        return this.#run(step);
      case 'checkpoint':
        return this.#checkpoint(step, op!);
      case 'operator': {
        const path = `/api/v1/ops/${op!.opId}/${step['operator']}`;
        expect((await this.#gateway.now.call('POST', path)).status).toBe(200);
        return;
      }
      case 'asked':
        return void (await this.#asked());
      case 'decide': {
        const path = `/api/v1/approvals/${await this.#asked()}/${step['decide']}`;
        const decided = await this.#gateway.now.call('POST', path, { reason: 'x' }, await this.#gateway.approver());
        expect(decided.status).toBe(200);
        return;
      }
      case 'gateway':
        return this.#power(step['gateway']);
      case 'wait':
        return void (await sleep(step['wait'] * 1_000));
      case 'fail':
        throw new Error(`broken promise: ${step['fail']}`);
      default:
        throw new Error(`unknown step: ${names.join(', ')}`);
    }
  }

  async #called(step: Step, call: () => Promise<unknown>): Promise<void> {
    const wanted = step['expect'];
    if (wanted.error !== undefined) {
      const error = await call().then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(GatewayError);
      expect((error as GatewayError).code).toBe(wanted.error);
      return;
    }
    const answer = await call();
    if (answer !== undefined) matches(answer as Step, wanted);
  }

  async #run(step: Step): Promise<void> {
    let opId = '';
    const running = this.#client.run(inCamel(step['run']), async (op) => {
      opId = op.opId;
      await this.do(step['body'] ?? [], op);
      if (step['raises'] !== undefined) throw new RangeError(step['raises']);
    });
    const ended = running.then(() => ({ ends: 'returned' }), endOf);
    await this.do(step['meanwhile'] ?? []);
    matches(await ended, step['expect']);
    if (step['logged'] === undefined) return;
    const completed = await eventually(async () => {
      const { entries } = (await this.#gateway.now.call('GET', `/api/v1/logs?op_id=${opId}`)).body;
      const found = entries.find((entry: Step) => entry['event_type'] === 'OpCompleted');
      if (found === undefined) throw new Error('it is not complete yet');
      return found;
    });
    expect(completed.payload.outcome).toBe(step['logged']);
  }

  async #checkpoint(step: Step, op: Op): Promise<void> {
    if (step['checkpoint'] === 'raises') {
      await expect(op.checkpoint()).rejects.toThrow(OpTerminatedError);
      throw op.signal.reason;
    }
    const beganMs = performance.now();
    await Promise.all([op.checkpoint(), this.do(step['meanwhile'] ?? [], op)]);
    expect(performance.now() - beganMs).toBeGreaterThan(400);
  }

  /** The request that the agent waits for. */
  #asked(): Promise<string> {
    return eventually(async () => {
      const { approvals } = (await this.#gateway.now.call('GET', '/api/v1/approvals?state=pending')).body;
      const found = approvals.find((each: any) => each.agent.agent_id === this.#agentId);
      if (found === undefined) throw new Error('nothing is asked yet');
      return found.id as string;
    });
  }

  async #power(verb: 'stop' | 'start' | 'restart'): Promise<void> {
    if (verb !== 'start') await this.#gateway.now.stop();
    if (verb === 'start') await this.#gateway.start();
    if (verb === 'restart') this.#starting = sleep(300).then(() => this.#gateway.start());
  }
}

function endOf(error: unknown): Step {
  if (error instanceof ActionDeniedError) return { ends: 'denied', cause: error.cause, unreachable: error.unreachable };
  if (error instanceof OpTerminatedError) return { ends: 'terminated' };
  if (error instanceof RangeError) return { ends: 'raised' };
  throw error;
}

/** Where `true` is wanted of what differs each time, it is only to be there. */
function matches(answer: Step, wanted: Step): void {
  for (const [name, value] of Object.entries(wanted)) {
    const got = answer[camel(name)];
    if (value === true && name !== 'unreachable') expect(got, name).toBeDefined();
    else expect(got, name).toEqual(value);
  }
}

describe.each(FILES)('vectors of %s', (file) => {
  const { policy, cases } = JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Vectors;
  let gateway: Restartable;
  beforeAll(async () => {
    gateway = new Restartable(policyFile(policy, afterAll).path);
    await gateway.start();
  });
  afterAll(() => gateway?.end());

  test.each(cases.map((each, at) => ({ ...each, at })))('$name', async ({ options = {}, steps, at }) => {
    const agentId = `${file}-${at}`;
    const client = createAgentClient({
      address: gateway.now.grpc,
      agent: { orgId: 'acme', teamId: 'vectors', agentId },
      apiKey: ADMIN_KEY,
      onWarning: () => {},
      ...optionsOf(options),
    } as AgentClientOptions);
    const actor = new Actor(gateway, client, agentId);
    try {
      await actor.do(steps);
    } finally {
      await actor.settled();
      await client.close();
    }
  });
});

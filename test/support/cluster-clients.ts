/** Clients of a cluster that fails: what they ask and are answered is kept, to be judged afterwards. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { type CheckCall, ClusterHistory, type ContestCall, type StopCall } from './cluster-history.ts';
import { eventually } from './eventually.ts';
import type { FaultyCluster, FaultyGateway } from './faulty-cluster.ts';
import { ADMIN_KEY } from './gateway.ts';

const CHECK = '/svc.governance.v1.PolicyService/CheckAction';
const ANSWER_WITHIN_MS = 5_000;
const REGISTERED_WITHIN_MS = 90_000;
const GOOD_FOR_A_RETRY = new Set([429, 500, 502, 503, 504]);

export type ClusterAgent = {
  readonly org: string;
  readonly name: string;
  readonly token: string;
  /** The cost of each of its checks, in micro-dollars. */
  readonly cost: number;
  /** The subject of its checks. Default: `web`. */
  readonly resource?: string | undefined;
};

type Answer = { readonly status: number; readonly body: any; readonly unconfirmed: readonly string[] };

export class ClusterClients {
  readonly history = new ClusterHistory();
  readonly counts = { cutOff: 0, unconfirmed: 0 };
  /** Each has won a token, and nobody has changed that since. */
  readonly winners: ClusterAgent[] = [];
  readonly #cluster: FaultyCluster;
  readonly #random: () => number;
  #made = 0;

  constructor(cluster: FaultyCluster, random: () => number) {
    this.#cluster = cluster;
    this.#random = random;
  }

  async register(org: string, name: string, cost: number, resource?: string): Promise<ClusterAgent> {
    const agent = { org_id: org, team_id: 'search', agent_id: name };
    return eventually(async () => {
      const answer = await this.#ask(this.#anywhere(), 'POST', '/api/v1/agents', { agent });
      expect(answer?.body.credential_token).toBeDefined();
      return { org, name, token: answer!.body.credential_token as string, cost, resource };
    }, REGISTERED_WITHIN_MS);
  }

  /** Checks a new operation, unless `traceId` names one. */
  async check(gateway: FaultyGateway, agent: ClusterAgent, traceId = this.#newTrace()) {
    const { org, name, token, cost, resource = 'web' } = agent;
    const call: CheckCall = this.history.add({
      kind: 'check',
      gateway: gateway.name,
      org,
      agent: name,
      token,
      cost,
      opId: `${traceId}:s`,
      askedMs: performance.now(),
    });
    const body = {
      agent: { orgId: org, teamId: 'search', agentId: name },
      credentialToken: token,
      traceId,
      spanId: 's',
      action: 'tool.call',
      resource,
      estimatedCostUsd: cost / 1_000_000,
    };
    const answer = await this.#ask(gateway, 'POST', CHECK, body, null);
    if (answer?.body.decision === undefined) return { call, reason: undefined };
    call.decision = answer.body.decision === 'DECISION_ALLOW' ? 'allow' : 'deny';
    if (answer.body.auditId !== undefined) call.auditId = Number(answer.body.auditId);
    call.answeredMs = performance.now();
    return { call, reason: answer.body.reason as string };
  }

  /** Some of what is allowed is spent, and reported until that is answered; the money of the rest comes back. */
  async work(agent: ClusterAgent, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const gateway = this.#anywhere();
      const { call } = await this.check(gateway, agent);
      if (call.decision !== 'allow') await sleep(20);
      else if (this.#random() < 0.3) await this.#spend(agent, gateway, call.opId, isOver);
      else await this.#complete(agent, gateway, call.opId);
    }
  }

  async #spend(agent: ClusterAgent, home: FaultyGateway, opId: string, isOver: () => boolean): Promise<void> {
    const usageId = `usage-${opId}`;
    while (!isOver()) {
      const { org, cost } = agent;
      const usage = this.history.add({ kind: 'usage' as const, org, usageId, cost, askedMs: performance.now() });
      const at = this.#random() < 0.7 ? home : this.#anywhere();
      const answer = await this.#ask(at, 'POST', '/api/v1/usage', {
        agent: { org_id: org, team_id: 'search', agent_id: agent.name },
        cost_usd: cost / 1_000_000,
        usage_id: usageId,
        ...(at === home ? { op_id: opId } : {}),
      });
      if (answer?.status === 200) return void Object.assign(usage, { answeredMs: performance.now() });
      await sleep(50);
    }
  }

  async #complete({ org }: ClusterAgent, home: FaultyGateway, opId: string): Promise<void> {
    const complete = this.history.add({ kind: 'complete' as const, opId, askedMs: performance.now() });
    const answer = await this.#ask(home, 'POST', `/api/v1/ops/${opId}/complete?org_id=${org}`, {});
    if (answer?.status === 200) Object.assign(complete, { answeredMs: performance.now() });
  }

  /** Halts orgs, deregisters agents, pauses operations and has tokens contested, and tries each at every gateway. */
  async operate(name: string, isOver: () => boolean): Promise<void> {
    for (let nth = 0; !isOver(); nth += 1) {
      const agent = await this.register(`${name}-${nth}`, `${name}-${nth}-agent`, 0);
      if (isOver()) return;
      if (nth % 4 === 0) await this.#halt(agent);
      else if (nth % 4 === 1) await this.#contest(agent);
      else if (nth % 4 === 2) await this.#pause(agent);
      else await this.#deregister(agent);
    }
  }

  /** At two gateways at once: its token is replaced, others want one token, and it is removed and registered. */
  async #contest(agent: ClusterAgent): Promise<void> {
    const { org, name, token } = agent;
    const rotated = ['x', 'y'].map((letter) => ({ ...agent, token: `${letter}-${token}` }));
    if (!(await this.#compete('agent', rotated, [token]))) return;
    const wanted = `wanted-${token}`;
    const rivals = ['a', 'b'].map((letter) => ({ org, name: `${name}-${letter}`, token: wanted, cost: 0 }));
    await this.#compete('token', rivals, []);
    const [first, second] = this.#twoGateways();
    const removal = { kind: 'rotation', askedMs: performance.now() } as const;
    const stops = rotated.map((each) => this.history.add<StopCall>({ ...removal, of: each.token }));
    const answers = await Promise.all([
      this.#claim(first, { ...agent, token: `last-${token}` }),
      this.#ask(second, 'DELETE', `/api/v1/agents/${org}/search/${name}`),
    ]);
    const unconfirmed = unconfirmedOf(answers);
    if (unconfirmed === undefined || !answers.some(isDone)) return;
    for (const stop of stops) Object.assign(stop, { answeredMs: performance.now(), unconfirmed });
    await this.#useAll(rotated);
  }

  /** Registers both at two gateways at once. False: what became of these is not certain. */
  async #compete(
    of: 'token' | 'agent',
    rivals: readonly ClusterAgent[],
    replaced: readonly string[],
  ): Promise<boolean> {
    const askedMs = performance.now();
    const named = rivals.map(({ name, token }) => ({ agent: name, token }));
    const contest = this.history.add<ContestCall>({ kind: 'contest', of, rivals: named, askedMs });
    const stops = replaced.map((token) => this.history.add<StopCall>({ kind: 'rotation', of: token, askedMs }));
    const gateways = this.#twoGateways();
    const answers = await Promise.all(rivals.map((rival, at) => this.#claim(gateways[at]!, rival)));
    contest.accepted = answers.filter(isDone).length;
    if (of === 'token' && contest.accepted === 1) this.winners.push(rivals[answers.findIndex(isDone)]!);
    const unconfirmed = unconfirmedOf(answers);
    if (unconfirmed === undefined) return false;
    const answered = { answeredMs: performance.now(), unconfirmed };
    for (const call of [contest, ...(contest.accepted > 0 ? stops : [])]) Object.assign(call, answered);
    await this.#useAll([...rivals, ...replaced.map((token) => ({ ...rivals[0]!, token }))]);
    return true;
  }

  #claim(gateway: FaultyGateway, { org, name, token }: ClusterAgent): Promise<Answer | undefined> {
    const agent = { org_id: org, team_id: 'search', agent_id: name };
    return this.#ask(gateway, 'POST', '/api/v1/agents', { agent, credential_token: token });
  }

  async #useAll(agents: readonly ClusterAgent[]): Promise<void> {
    const { gateways } = this.#cluster;
    await Promise.all(agents.flatMap((agent) => gateways.map((gateway) => this.check(gateway, agent))));
  }

  async #halt(agent: ClusterAgent): Promise<void> {
    const use = () => Promise.all(this.#cluster.gateways.map((gateway) => this.check(gateway, agent)));
    const ask = () => this.#ask(this.#anywhere(), 'POST', '/api/v1/halts', { scope: `org:${agent.org}`, reason: 'x' });
    const stopped = await this.#stop({ kind: 'halt', of: agent.org }, ask, use);
    if (stopped === undefined) return;
    stopped.call.releasedMs = performance.now();
    await this.#ask(this.#anywhere(), 'POST', `/api/v1/halts/${stopped.body.halt.id}/release`, { reason: 'over' });
  }

  async #deregister(agent: ClusterAgent): Promise<void> {
    const use = () => Promise.all(this.#cluster.gateways.map((gateway) => this.check(gateway, agent)));
    const path = `/api/v1/agents/${agent.org}/search/${agent.name}`;
    await this.#stop({ kind: 'revocation', of: agent.name }, () => this.#ask(this.#anywhere(), 'DELETE', path), use);
  }

  /** Its agent tries to go on at all gateways, also at those that it does not live at. */
  async #pause(agent: ClusterAgent): Promise<void> {
    const traceId = this.#newTrace();
    const { call } = await this.check(this.#anywhere(), agent, traceId);
    if (call.decision !== 'allow') return;
    const order = (verb: string) =>
      this.#ask(this.#anywhere(), 'POST', `/api/v1/ops/${call.opId}/${verb}?org_id=${agent.org}`, {});
    const use = () => Promise.all(this.#cluster.gateways.map((gateway) => this.check(gateway, agent, traceId)));
    const stopped = await this.#stop({ kind: 'pause', of: call.opId }, () => order('pause'), use);
    if (stopped === undefined) return;
    stopped.call.releasedMs = performance.now();
    await order('resume');
  }

  /** `use` is tried before, while it is not certain what holds, and once it is answered. */
  async #stop(
    { kind, of }: Pick<StopCall, 'kind' | 'of'>,
    ask: () => Promise<Answer | undefined>,
    use: () => Promise<unknown>,
  ): Promise<{ readonly call: StopCall; readonly body: any } | undefined> {
    if (kind !== 'pause') await use();
    const call: StopCall = this.history.add({ kind, of, askedMs: performance.now() });
    const answer = await ask();
    if (answer === undefined || answer.status >= 400) return undefined;
    // A change that could not be written stands at one gateway, and the answer says so: nothing is certain of the
    // others.
    if (answer.unconfirmed.includes('database')) return undefined;
    Object.assign(call, { answeredMs: performance.now(), unconfirmed: answer.unconfirmed });
    this.counts.unconfirmed += answer.unconfirmed.length;
    for (let again = 0; again < 3; again += 1) await use();
    return { call, body: answer.body };
  }

  /** Undefined where no answer came, or one that does not say what became of it. */
  async #ask(
    gateway: FaultyGateway,
    method: string,
    path: string,
    body?: object,
    bearer: string | null = ADMIN_KEY,
  ): Promise<Answer | undefined> {
    const url = gateway.running?.url;
    if (url === undefined) return undefined;
    try {
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      });
      const text = await response.text();
      if (GOOD_FOR_A_RETRY.has(response.status)) return undefined;
      const unconfirmed = response.headers.get('svc-unconfirmed')?.split(', ') ?? [];
      return { status: response.status, body: text === '' ? undefined : JSON.parse(text), unconfirmed };
    } catch {
      this.counts.cutOff += 1;
      return undefined;
    }
  }

  #anywhere(): FaultyGateway {
    const { gateways } = this.#cluster;
    return gateways[Math.floor(this.#random() * gateways.length)]!;
  }

  #twoGateways(): readonly [FaultyGateway, FaultyGateway] {
    const { gateways } = this.#cluster;
    const first = Math.floor(this.#random() * gateways.length);
    const second = (first + 1 + Math.floor(this.#random() * (gateways.length - 1))) % gateways.length;
    return [gateways[first]!, gateways[second]!];
  }

  #newTrace(): string {
    this.#made += 1;
    return `t${this.#made}`;
  }
}

const isDone = (answer: Answer | undefined): boolean => answer !== undefined && answer.status < 300;

/** The gateways that the answers name. Undefined: one of them does not say what became of what was asked. */
function unconfirmedOf(answers: readonly (Answer | undefined)[]): readonly string[] | undefined {
  const names: string[] = [];
  for (const answer of answers) {
    if (answer === undefined || answer.unconfirmed.includes('database')) return undefined;
    names.push(...answer.unconfirmed);
  }
  return names;
}

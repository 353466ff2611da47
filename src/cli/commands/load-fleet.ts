/** The agents of a load: registered for it, named so that everybody sees what they are, and removed afterwards. */
import { randomBytes } from 'node:crypto';
import type { AgentIdentity } from '../../core/base/ids.ts';
import { type Checks, checksOf } from '../../load/checks.ts';
import { HttpLane } from '../../load/http-lane.ts';
import type { Answer } from '../../load/lane.ts';
import { CliError } from '../errors.ts';
import type { Api } from '../remote/api.ts';
import { wireAgent } from './listing.ts';

/** The team of the agents, and their org where the caller names none. */
export const LOAD_NAME = 'svc-load';
const AT_ONCE = 16;

export type FleetPlan = {
  readonly org: string;
  readonly agents: number;
  readonly action: string;
  readonly resource: string;
};

export type Fleet = {
  readonly checks: Checks;
  register(signal: AbortSignal): Promise<void>;
  /** Completes the operations that these checks began. Answers how many were running. */
  complete(numbers: readonly number[], connections: number): Promise<number>;
  /** Answers which agents are left, because the gateway refused or did not answer. */
  remove(): Promise<readonly AgentIdentity[]>;
};

export function fleetOf(api: Api, { org, agents: count, action, resource }: FleetPlan): Fleet {
  const run = randomBytes(8).toString('hex');
  const agents = Array.from({ length: count }, (_, nth) => ({
    agent: { orgId: org, teamId: LOAD_NAME, agentId: `load-${run.slice(0, 6)}-${nth + 1}` },
    credentialToken: randomBytes(24).toString('hex'),
  }));
  const checks = checksOf({ agents, run, action, resource });
  const registered = new Set<AgentIdentity>();
  return {
    checks,
    register: (signal) =>
      inTurn(agents, AT_ONCE, async ({ agent, credentialToken }) => {
        if (signal.aborted) return;
        await api.post('/api/v1/agents', 'agent', { agent: wireAgent(agent), credential_token: credentialToken });
        registered.add(agent);
      }),
    complete: async (numbers, connections) => {
      const url = new URL(`${api.target.apiUrl}/svc.governance.v1.AgentService/CompleteOp`);
      const read = (): Answer => ({ kind: 'allow', reason: '' });
      const lanes = Array.from({ length: connections }, () => new HttpLane({ url, bodyOf: checks.completionOf, read }));
      const idle = [...lanes];
      let completed = 0;
      await inTurn(numbers, connections, async (nth) => {
        const lane = idle.pop()!;
        const { kind } = await new Promise<Answer>((resolve) => lane.send(nth, resolve));
        if (kind === 'allow') completed += 1;
        idle.push(lane);
      });
      for (const lane of lanes) lane.close();
      return completed;
    },
    remove: async () => {
      const left: AgentIdentity[] = [];
      await inTurn([...registered], AT_ONCE, async (agent) => {
        const path = [agent.orgId === '' ? '-' : agent.orgId, agent.teamId, agent.agentId].map(encodeURIComponent);
        await api.order('DELETE', `/api/v1/agents/${path.join('/')}`).catch((error: unknown) => {
          if (!(error instanceof CliError)) throw error;
          left.push(agent);
        });
      });
      return left;
    },
  };
}

/** Runs at most `atOnce` tasks at a time; starts none after the first failure. */
async function inTurn<T>(items: readonly T[], atOnce: number, task: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  let hasFailed = false;
  const work = async (): Promise<void> => {
    while (next < items.length && !hasFailed) {
      const item = items[next]!;
      next += 1;
      await task(item).catch((error: unknown) => {
        hasFailed = true;
        throw error;
      });
    }
  };
  const settled = await Promise.allSettled(Array.from({ length: Math.min(atOnce, items.length) }, work));
  const failure = settled.find((each) => each.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}

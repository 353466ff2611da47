/** A steady stream of policy checks against a gateway under test, and a record of every answer that arrived. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ServingGateway } from './gateway.ts';

export const LOAD_AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
export const LOAD_TOKEN = 'crawler-token-0123456789-0123456789-0123';
const CHECK = '/svc.governance.v1.PolicyService/CheckAction';

export type Answered = {
  readonly opId: string;
  /** By performance.now(). */
  readonly sentAtMs: number;
  readonly status: number;
  readonly decision: string;
  readonly reason: string;
  readonly auditId: number;
};

export type Load = {
  readonly answered: Answered[];
  /** The name of the error of each call whose connection failed. */
  readonly failed: string[];
  /** The same with what caused it, and when, for people. */
  readonly failures: string[];
  readonly pending: () => number;
  /** Sends no more; resolves when every call has been answered or has failed. */
  stop(): Promise<void>;
};

export const registerLoadAgent = (gateway: ServingGateway, bearer?: string) =>
  gateway.call(
    'POST',
    '/svc.governance.v1.AgentService/RegisterAgent',
    { agent: LOAD_AGENT, credentialToken: LOAD_TOKEN },
    bearer,
  );

/** After `pacedAfter` answers it leaves the processor to what the test still waits for. */
export function startLoad(gateway: ServingGateway, name: string, lanes = 16, pacedAfter = 400): Load {
  const answered: Answered[] = [];
  const failed: string[] = [];
  const failures: string[] = [];
  let isStopped = false;
  let sent = 0;
  let pending = 0;
  const lane = async (): Promise<void> => {
    while (!isStopped) {
      sent += 1;
      pending += 1;
      const opId = `${name}-${sent}:s`;
      const sentAtMs = performance.now();
      try {
        const response = await fetch(gateway.url + CHECK, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            agent: LOAD_AGENT,
            credentialToken: LOAD_TOKEN,
            traceId: opId.slice(0, -2),
            spanId: 's',
            action: 'tool.call',
            resource: 'web_search',
          }),
          signal: AbortSignal.timeout(30_000),
        });
        const body = (await response.json()) as { decision?: string; reason?: string; auditId?: string; code?: string };
        answered.push({
          opId,
          sentAtMs,
          status: response.status,
          decision: body.decision ?? body.code ?? '',
          reason: body.reason ?? '',
          auditId: Number(body.auditId ?? 0),
        });
      } catch (error) {
        failed.push(error instanceof Error ? error.name : String(error));
        failures.push(failureOf(error, sentAtMs));
        await sleep(10);
      }
      pending -= 1;
      if (answered.length > pacedAfter) await sleep(40);
    }
  };
  const lanesOver = Promise.all(Array.from({ length: lanes }, lane));
  return {
    answered,
    failed,
    failures,
    pending: () => pending,
    stop: async () => {
      isStopped = true;
      await lanesOver;
    },
  };
}

function failureOf(error: unknown, sentAtMs: number): string {
  const { cause } = error as { cause?: { code?: string; message?: string; socket?: object } };
  const afterMs = Math.round(performance.now() - sentAtMs);
  const why = cause === undefined ? '' : `: ${cause.code} ${cause.message} ${JSON.stringify(cause.socket ?? {})}`;
  return `sent at ${Math.round(sentAtMs)} ms, failed ${afterMs} ms later: ${String(error)}${why}`;
}

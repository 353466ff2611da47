/** Whether a load was sent as asked, who was the limit where it was not, and which goals were missed. */
import type { Measured } from './open-loop.ts';

export type Goals = {
  /** In milliseconds. */
  readonly p99Ms: number | undefined;
  readonly errors: number | undefined;
};

export type Verdict = {
  /** Why the rate was not reached: undefined where it was. */
  readonly limit: 'client' | 'gateway' | undefined;
  /** A sentence for each thing that was asked for and not reached. */
  readonly missed: readonly string[];
  /** The client came so late itself that the waits are in part its own. */
  readonly isClientLate: boolean;
};

/** The rate is reached where at most this share was unsent at the end, or what comes due in this time. */
const UNSENT_SHARE = 0.01;
const UNSENT_SECS = 0.1;
const BUSY = 0.75;
const LATE_MS = 1;

const shown = (count: number): string => count.toLocaleString('en');
export const msText = (ms: number): string =>
  `${ms >= 100 ? Math.round(ms).toLocaleString('en') : ms.toPrecision(3)} ms`;
export const percentText = (share: number): string => `${Math.round(share * 100)} %`;

export function verdictOf(
  measured: Measured,
  { rate, connections, goals }: { readonly rate: number; readonly connections: number; readonly goals: Goals },
): Verdict {
  const { due, unsent, waits, errors, client, reasons } = measured;
  const isReached = unsent <= Math.max(due * UNSENT_SHARE, rate * UNSENT_SECS);
  const isClientLate = client.lateP99Ms > LATE_MS && client.lateP99Ms > waits.p99 / 2;
  const limit = isReached ? undefined : client.busy > BUSY || isClientLate ? 'client' : 'gateway';
  const left = `${shown(unsent)} of ${shown(due)} checks were not sent by the end`;
  const missed: string[] = [];
  if (limit === 'client')
    missed.push(
      `the rate was not reached: ${left}; this client, not the gateway, was the limit (busy ${percentText(client.busy)}, ${msText(client.lateP99Ms)} late)`,
    );
  if (limit === 'gateway')
    missed.push(
      `the rate was not reached: ${left}, because all ${shown(connections)} connections waited for the gateway`,
    );
  if (goals.p99Ms !== undefined && (waits.p99 > goals.p99Ms || measured.answered === 0))
    missed.push(
      measured.answered === 0
        ? `no check was answered, so that --p99 ${goals.p99Ms}ms is not met`
        : `p99 was ${msText(waits.p99)}, more than the ${goals.p99Ms} ms of --p99`,
    );
  if (goals.errors !== undefined && errors > goals.errors) {
    const most = reasons.find(({ kind }) => kind === 'error')?.reason ?? '';
    missed.push(`${shown(errors)} checks failed, more than the ${shown(goals.errors)} of --errors; most: ${most}`);
  }
  return { limit, missed, isClientLate };
}

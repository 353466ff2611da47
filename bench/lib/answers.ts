/**
 * Whether a load was answered as its figures suppose: its clients look no further than the status, and at what came.
 */

/** The path of a check over Connect. */
export const CHECK_PATH = '/svc.governance.v1.PolicyService/CheckAction';

/**
 * Asks the question of the load once more: a gateway that denies all, as with a full disk, is fast, and one that
 * refuses says why.
 */
export async function expectAllowed(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  allowed = /"(DECISION|EFFECT)_ALLOW"/,
): Promise<void> {
  const answer = await fetch(url, { method: 'POST', headers, body }).then(
    async (response) => ({ status: response.status, text: await response.text() }),
    (fault: Error) => ({ status: 0, text: String(fault.cause ?? fault) }),
  );
  if (answer.status !== 200 || !allowed.test(answer.text))
    throw new Error(`at the end of the load, a check was answered: ${answer.status} ${answer.text}`.slice(0, 500));
}

/**
 * The waits in milliseconds, in ascending order, of a log of h2load, and how many of the checks that were due have not
 * succeeded.
 */
export function readH2loadLog(log: string, due: number): { readonly waits: Float64Array; readonly failed: number } {
  const rows = log
    .split('\n')
    .map((row) => row.split('\t'))
    .filter(([, status]) => status === '200');
  // A check that was never answered has no row.
  return {
    waits: Float64Array.from(rows, ([, , microseconds]) => Number(microseconds) / 1000).sort(),
    failed: due - rows.length,
  };
}

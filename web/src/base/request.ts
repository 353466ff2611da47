/** Speaks to the gateway that served this page, and to nobody else. */
import { learnTime } from './clock.ts';

/** An error answer of the gateway: the fields of its problem document. */
export class Problem extends Error {
  /** 0: there was no answer. */
  readonly status: number;
  readonly code: string;
  readonly body: Readonly<Record<string, unknown>>;

  constructor(status: number, body: Readonly<Record<string, unknown>>) {
    super(String(body.detail ?? body.title ?? `the gateway answered ${status}`));
    this.status = status;
    this.code = String(body.code ?? '');
    this.body = body;
  }
}

let onUnconfirmed: (gateways: readonly string[]) => void = () => undefined;

/** Sets who is told which gateways do not act by what was ordered yet. */
export function whenUnconfirmed(listener: (gateways: readonly string[]) => void): void {
  onUnconfirmed = listener;
}

/** An answer that has not come by then never will: a line that is cut far away looks open for a quarter of an hour. */
const ANSWER_WITHIN_MS = 60_000;

export type Asked = {
  readonly body?: unknown;
  readonly bearer?: string | undefined;
  /** A file is answered as it is. */
  readonly isFile?: boolean;
};

/** Resolves with the parsed answer; rejects with a Problem. */
export async function request(
  method: string,
  path: string,
  { body, bearer, isFile = false }: Asked = {},
): Promise<any> {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), ANSWER_WITHIN_MS);
  try {
    const response = await fetch(path, {
      method,
      headers: {
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      credentials: 'same-origin',
      signal: patience.signal,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch(() => {
      throw new Problem(0, {
        detail: patience.signal.aborted ? notInTime(method) : 'Cannot reach the gateway. Check your connection.',
      });
    });
    learnTime(response.headers.get('date'));
    const unconfirmed = response.headers.get('svc-unconfirmed');
    if (unconfirmed !== null) onUnconfirmed(unconfirmed.split(/, */));
    if (isFile && response.ok) {
      clearTimeout(timer); // it may take long, now that it has begun
      // However large it is, it need not fit into the memory of the page.
      return await response.blob().catch(() => {
        throw cutOff(method);
      });
    }
    return await answerOf(response, method);
  } finally {
    clearTimeout(timer);
  }
}

async function answerOf(response: Response, method: string): Promise<any> {
  const text = await response.text().catch(() => undefined);
  if (response.ok && text === undefined) throw cutOff(method);
  const parsed = parse(text ?? '');
  if (!response.ok) throw new Problem(response.status, parsed ?? {});
  return parsed;
}

const cutOff = (method: string): Problem => new Problem(0, { detail: `The response was cut off. ${whatNow(method)}` });

const notInTime = (method: string): string => `The gateway did not respond in time. ${whatNow(method)}`;

const whatNow = (method: string): string =>
  method === 'GET' ? 'Try again.' : 'The change may still have been made: check before you try again.';

function parse(text: string): any {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem(0, { detail: 'The response did not come from the gateway. Check for a proxy in between.' });
  }
}

export type Query = Readonly<Record<string, string | number | null | undefined>>;

/** As `?a=1&b=2`; empty values are left out. */
export function queryOf(values: Query): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value));
  const text = search.toString();
  return text === '' ? '' : `?${text}`;
}

/** A sentence for people; anything but a Problem is a defect, and is thrown on. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Problem)) throw error;
  // A sentence begins with a capital; the name of a field, `expires_at: …`, does not.
  const message = error.message.replace(/^[a-z]+(?= )/, (word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`);
  const retry = error.body.retry_after_secs;
  if (typeof retry !== 'number' || retry <= 60) return message;
  const [seconds, minutes] = [`${retry} seconds`, `${Math.ceil(retry / 60)} minutes`];
  return message.includes(seconds) ? message.replace(seconds, minutes) : `${message} (try again in ${minutes})`;
}

/** Whether it may succeed later: not what the gateway refuses, which it would refuse again. */
export const mayPass = (problem: unknown): problem is Problem =>
  problem instanceof Problem && (problem.status === 0 || problem.status === 429 || problem.status >= 500);

/** Speaks to the gateway that served this page, and to nobody else. */
import { learnTime } from './clock.js';

/** What the gateway answered instead of what was asked for: the fields of its problem document. */
export class Problem extends Error {
  /**
   * @param {number} status 0: there was no answer
   * @param {Readonly<Record<string, unknown>>} body
   */
  constructor(status, body) {
    super(String(body.detail ?? body.title ?? `the gateway answered ${status}`));
    this.status = status;
    this.code = String(body.code ?? '');
    this.body = body;
  }
}

/** @type {(gateways: readonly string[]) => void} */
let onUnconfirmed = () => {};

/** @param {(gateways: readonly string[]) => void} listener called when gateways do not act by what was ordered yet */
export function whenUnconfirmed(listener) {
  onUnconfirmed = listener;
}

/**
 * What has not been answered by then never will be: a line that is cut far away looks open for a quarter of an hour.
 */
const ANSWER_WITHIN_MS = 60_000;

/**
 * Resolves with the parsed answer; rejects with a Problem.
 *
 * @param {string} method
 * @param {string} path
 * @param {{ body?: unknown, bearer?: string | undefined, isFile?: boolean }} [options] a file is answered as it is
 * @returns {Promise<any>}
 */
export async function request(method, path, { body, bearer, isFile = false } = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (bearer !== undefined) headers.authorization = `Bearer ${bearer}`;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), ANSWER_WITHIN_MS);
  try {
    const response = await fetch(path, {
      method,
      headers,
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
    const text = await response.text().catch(() => undefined);
    if (response.ok && text === undefined) throw cutOff(method);
    const parsed = parse(text ?? '');
    if (!response.ok) throw new Problem(response.status, parsed ?? {});
    return parsed;
  } finally {
    clearTimeout(timer);
  }
}

/** @param {string} method */
const cutOff = (method) => new Problem(0, { detail: `The response was cut off. ${whatNow(method)}` });

/** @param {string} method */
const notInTime = (method) => `The gateway did not respond in time. ${whatNow(method)}`;

/** @param {string} method */
const whatNow = (method) =>
  method === 'GET' ? 'Try again.' : 'The change may still have been made: check before you try again.';

/** @param {string} text */
function parse(text) {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    throw new Problem(0, { detail: 'The response did not come from the gateway. Check for a proxy in between.' });
  }
}

/**
 * @param {readonly (readonly [name: string, value: string | number | null | undefined])[]} pairs empty ones are left
 * out
 */
export function query(pairs) {
  const search = new URLSearchParams();
  for (const [name, value] of pairs)
    if (value !== null && value !== undefined && value !== '') search.set(name, String(value));
  const text = search.toString();
  return text === '' ? '' : `?${text}`;
}

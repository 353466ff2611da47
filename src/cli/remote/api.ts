/** The gateway as a client command sees it: authenticated requests, sessions renewed on the way, refusals as errors. */
import type { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { type Answer, isSuccess, unconfirmedIn } from '../../client/answer.ts';
import { CliError, RefusedError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { note } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { isRows, type Row } from '../terminal/table.ts';
import {
  type ApiCall,
  isPage,
  jsonOf,
  misspoken,
  NO_GATEWAY_ADVICE,
  problemIn,
  type Query,
  retryAfterSecsOf,
  send,
  waitAdvice,
} from './http.ts';
import { isRunningOut, notLoggedIn, renew } from './session.ts';
import { readSession, type Session } from './session-file.ts';
import { resolveTarget, type Target } from './target.ts';

export const MAX_PAGE = 1000;

export type ListOptions = {
  readonly query?: Query;
  /** No more items than this. */
  readonly limit?: number;
  /** Stops after the page whose last item satisfies this. */
  readonly isEnough?: (last: Row) => boolean;
};

export type List = {
  readonly rows: readonly Row[];
  readonly nextCursor: string | null;
  /** Gateways of the cluster that did not answer, so that their rows are missing. */
  readonly incomplete: readonly string[];
};

const ADVICE: Readonly<Record<string, string>> = {
  not_found: 'Check the name; the `ls` commands list what exists.',
  ambiguous: 'Say which org with --org, or which gateway of a cluster with --op-home.',
  invalid_transition: 'See its state with `svc ops show`.',
  invalid_argument: 'Run the command with --help to see what it accepts.',
  policy_invalid: 'The previous policies stay in force. Find all mistakes with `svc policy validate`.',
  use_publish: 'Run `svc policy publish <file or folder>`.',
  internal: 'See the log of the gateway for the cause.',
};

/** Tells that a listing of the cluster is incomplete. */
export const missingNote = (gateways: readonly string[]): string =>
  `${printable(gateways.join(', '))} did not answer; the list is incomplete.`;

const adviceFor = (code: string | undefined, answer: Answer): string | undefined =>
  waitAdvice(answer) ?? (code === undefined ? NO_GATEWAY_ADVICE : ADVICE[code]);

/** A change counts where it was made, and these gateways of the cluster do not act by it yet. */
export function unconfirmedNote(gateways: readonly string[]): string {
  const others = gateways.filter((name) => name !== 'database');
  return [
    ...(others.length === 0
      ? []
      : [
          `${printable(others.join(', '))} did not confirm this in time, and will follow on reaching the database again.`,
        ]),
    ...(others.length === gateways.length
      ? []
      : ['The database could not be reached: the change takes effect at all gateways once it is written there.']),
  ].join(' ');
}

/** For what programs read: an answer that names such gateways has them as `unconfirmed`. */
export const unconfirmedOf = ({ unconfirmed }: Row): Row => (unconfirmed === undefined ? {} : { unconfirmed });

export type ApiOptions = {
  /**
   * Waits when the gateway says that there were too many requests, for as long as it says, and tries again: for
   * commands of many requests.
   */
  readonly isPatient?: boolean;
  /** Warns of gateways that do not act by what was ordered; on standard error, unless a view shows it otherwise. */
  readonly warn?: (text: string) => void;
};

/**
 * Speaks as the stored session, else with the raw key, else without a credential; the server decides (docs/spec.md,
 * Credentials of the command line).
 */
export class Api {
  readonly target: Target;
  readonly #isPatient: boolean;
  readonly #warn: (text: string) => void;
  /** Gateways that were named already: of many orders, most name the same. */
  readonly #unconfirmed = new Set<string>();
  #session: Session | undefined;
  #renewing: Promise<Session> | undefined;
  #hasReportedLimit = false;

  constructor(target: Target, session: Session | undefined, { isPatient = false, warn }: ApiOptions = {}) {
    this.target = target;
    this.#session = session;
    this.#isPatient = isPatient;
    this.#warn = warn ?? ((text) => note(`warning: ${text}`));
  }

  static async of({ globals, env }: Invocation, options?: ApiOptions): Promise<Api> {
    const target = await resolveTarget(globals, env);
    const session = await readSession(target.label, target.apiUrl).catch((error: unknown) => {
      if (!(error instanceof CliError) || target.apiKey === undefined) throw error;
      note(`warning: ${error.message}; using the API key instead.`);
      return undefined;
    });
    if (session !== undefined && globals.apiKey !== undefined && session.sourceKey !== target.apiKey) {
      note(`note: --api-key is ignored because there is a session for ${target.label}; end it with \`svc logout\`.`);
    }
    return new Api(target, session, options);
  }

  /**
   * An answer without `field`, or one of them, is refused as not being the gateway's: a proxy's page would pass for
   * success.
   */
  get = (path: string, field: string | readonly string[], query: Query = {}): Promise<Row> =>
    this.#json({ method: 'GET', path, query }, ...[field].flat());
  /** A field of the body that is undefined is not sent. */
  post = (path: string, field: string, body?: unknown): Promise<Row> =>
    this.#json({ method: 'POST', path, body }, field);
  put = (path: string, field: string, body?: unknown): Promise<Row> => this.#json({ method: 'PUT', path, body }, field);
  /** For routes that answer without content. */
  order = async (method: 'POST' | 'DELETE', path: string): Promise<Row> => {
    const answer = await this.#answer({ method, path });
    if (answer.status !== 204) throw this.#misspoken();
    return this.#confirmation(answer);
  };

  /** The items of the list under `key`, from as many pages as they take. */
  async list(
    path: string,
    key: string,
    { query = {}, limit = Infinity, isEnough = () => false }: ListOptions = {},
  ): Promise<List> {
    const rows: Row[] = [];
    const incomplete = new Set<string>();
    let cursor: string | null = null;
    do {
      const page = await this.get(path, key, {
        ...query,
        per_page: Math.min(MAX_PAGE, limit - rows.length),
        cursor: cursor ?? undefined,
      });
      const items = page[key];
      const next = typeof page.next_cursor === 'string' ? page.next_cursor : null;
      // A page that leads to itself would be asked for without end.
      if (!isRows(items) || (next !== null && next === cursor)) throw this.#misspoken();
      rows.push(...items);
      for (const name of Array.isArray(page.incomplete) ? page.incomplete : []) incomplete.add(String(name));
      cursor = next;
    } while (cursor !== null && rows.length < limit && !isEnough(rows.at(-1) ?? {}));
    return { rows, nextCursor: cursor, incomplete: [...incomplete] };
  }

  /** The body of the answer, which is of this media type. */
  stream = (path: string, mediaType: string, query: Query = {}): Promise<Readable> =>
    this.#stream({ method: 'GET', path, query }, mediaType);
  streamOf = (path: string, mediaType: string, body: unknown): Promise<Readable> =>
    this.#stream({ method: 'POST', path, body }, mediaType);

  async #stream(call: ApiCall, mediaType: string): Promise<Readable> {
    const { headers, body } = await this.#answer({ ...call, isStream: true });
    const missing = headers['svc-incomplete'];
    if (typeof missing === 'string') note(missingNote(missing.split(', ')));
    if (body !== undefined && headers['content-type']?.startsWith(mediaType) === true) return body;
    body?.destroy();
    throw this.#misspoken();
  }

  /** The bearer for the Authorization header. A session about to expire is renewed first. */
  async bearer(): Promise<string | undefined> {
    if (this.#session === undefined) return this.target.apiKey;
    if (isRunningOut(this.#session, Date.now())) await this.renew();
    return this.#session.token;
  }

  /** Runs once for all concurrent requests that need it. False if there is no session to renew. */
  async renew(): Promise<boolean> {
    if (this.#session === undefined) return false;
    this.#renewing ??= renew(this.target, this.#session).finally(() => {
      this.#renewing = undefined;
    });
    this.#session = await this.#renewing;
    return true;
  }

  async #json(call: ApiCall, ...fields: readonly string[]): Promise<Row> {
    const answer = await this.#answer(call);
    const body = jsonOf(this.target.apiUrl, answer);
    if (typeof body !== 'object' || body === null || !fields.some((field) => field in body)) throw this.#misspoken();
    return { ...body, ...this.#confirmation(answer) };
  }

  /** Each gateway that does not act by an order yet is named once. */
  #confirmation(answer: Answer): Row {
    const unconfirmed = unconfirmedIn(answer);
    const fresh = unconfirmed.filter((name) => !this.#unconfirmed.has(name));
    for (const name of fresh) this.#unconfirmed.add(name);
    if (fresh.length > 0) this.#warn(unconfirmedNote(fresh));
    return unconfirmed.length === 0 ? {} : { unconfirmed };
  }

  #misspoken = (): CliError => misspoken(this.target.apiUrl);

  async #answer(call: ApiCall): Promise<Answer> {
    for (;;) {
      const answer = await this.#send(call);
      if (isSuccess(answer)) return answer;
      const refused = this.refusalOf(answer);
      const waitSecs =
        this.#isPatient && refused instanceof RefusedError && refused.refusal.code === 'rate_limited'
          ? refused.refusal.retryAfterSecs
          : undefined;
      if (waitSecs === undefined) throw refused;
      if (!this.#hasReportedLimit) note('The gateway limits the request rate; continuing as fast as it allows.');
      this.#hasReportedLimit = true;
      await setTimeout(waitSecs * 1000);
    }
  }

  async #send(call: ApiCall): Promise<Answer> {
    const bearer = await this.bearer();
    const first = await send(this.target, call, bearer);
    if (first.status !== 401) return first;
    // Renews once after a 401, unless another request has done so meanwhile; a second 401 is final.
    const isRenewed = (await this.bearer()) !== bearer || (await this.renew());
    return isRenewed ? send(this.target, call, await this.bearer()) : first;
  }

  /** Turns the gateway's refusal into an error for the person who asked. */
  refusalOf(answer: Answer): CliError {
    const { status, detail, code } = problemIn(answer);
    switch (isPage(answer) ? undefined : status) {
      case 401:
        return notLoggedIn(
          this.target.label,
          this.#session === undefined && this.target.apiKey === undefined
            ? 'this requires a session or an API key'
            : `the gateway rejected the ${this.#session === undefined ? 'API key' : 'credential'}`,
        );
      case 403:
        return new CliError(
          detail,
          code === 'insufficient_scope' ? 'Run `svc login` with an API key that has this scope.' : undefined,
        );
      default:
        return new RefusedError(detail, adviceFor(code, answer), {
          status,
          code,
          retryAfterSecs: retryAfterSecsOf(answer),
        });
    }
  }
}

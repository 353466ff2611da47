/** Operations as people name them: by the beginnings of both halves of their ids, `4bf92f:00f067`. */
import { append } from '../../core/base/lists.ts';
import { cutText } from '../../core/base/text.ts';
import { CliError, RefusedError } from '../errors.ts';
import type { Api } from '../remote/api.ts';
import type { Row } from '../terminal/table.ts';

/** Ids that are as short as this stay whole. */
const SHORT_ENOUGH = 17;
/** The shortest half of a shortened id: as much as people compare at a glance. */
const LEAST_HALF = 6;
/** As many are looked through for an id that was shortened: a hundred pages. */
const MAX_LISTED = 100_000;
const MAX_NAMED = 5;

const halvesOf = (opId: string): readonly [trace: string, span: string] => {
  const colon = opId.indexOf(':');
  return colon === -1 ? [opId, ''] : [opId.slice(0, colon), opId.slice(colon + 1)];
};

const shortened = (opId: string, length: number): string =>
  opId.length <= SHORT_ENOUGH
    ? opId
    : halvesOf(opId)
        .map((half) => cutText(half, length))
        .join(':');

/** For each long id the shortest beginnings, of at least six characters, that tell it from the others. */
export function shortIds(opIds: Iterable<string>): ReadonlyMap<string, string> {
  const short = new Map<string, string>();
  let left = [...new Set(opIds)];
  for (let length = LEAST_HALF; left.length > 0; length += 2) {
    const byShort = new Map<string, string[]>();
    for (const opId of left) append(byShort, shortened(opId, length), opId);
    left = [];
    for (const [text, same] of byShort) {
      if (same.length === 1) short.set(same[0]!, text);
      else left.push(...same);
    }
  }
  return short;
}

/**
 * Returns the operations that a shortened id means. A half that equals a whole one excludes those that it only begins.
 */
function meantBy(text: string, opIds: readonly string[]): readonly string[] {
  const [trace, span] = halvesOf(text);
  const beginning = opIds.filter((opId) => {
    const [ofTrace, ofSpan] = halvesOf(opId);
    return ofTrace.startsWith(trace) && ofSpan.startsWith(span);
  });
  const ofTrace = beginning.filter((opId) => halvesOf(opId)[0] === trace);
  const left = ofTrace.length > 0 ? ofTrace : beginning;
  const ofSpan = left.filter((opId) => halvesOf(opId)[1] === span);
  return ofSpan.length > 0 ? ofSpan : left;
}

/** Two orgs may use one id, and two gateways of a cluster. Undefined: any. */
export type OpPlace = { readonly org_id: string | undefined; readonly op_home?: string | undefined };

/** Finds the operations of shortened ids. They are listed once, on first demand. */
export class OpNames {
  readonly #api: Api;
  readonly #place: OpPlace;
  #listed: Promise<readonly string[]> | undefined;

  constructor(api: Api, place: OpPlace) {
    this.#api = api;
    this.#place = place;
  }

  /**
   * Asks about the operation of this id or, where there is none, about the one that it is short for. Throws the refusal
   * if there is neither, and an error that names them if there are several.
   */
  async ask<T>(text: string, ask: (opId: string) => Promise<T>): Promise<T> {
    try {
      return await ask(text);
    } catch (error) {
      if (!(error instanceof RefusedError) || error.refusal.code !== 'not_found' || !text.includes(':')) throw error;
      const opId = await this.find(text);
      if (opId === undefined) throw error;
      return ask(opId);
    }
  }

  async find(text: string): Promise<string | undefined> {
    this.#listed ??= this.#list();
    const [only, ...others] = meantBy(text, await this.#listed);
    if (only === undefined || others.length === 0) return only;
    const named = [only, ...others].slice(0, MAX_NAMED).join(', ');
    throw new CliError(
      `${text} is short for ${others.length + 1} operations`,
      `Give more of the id: ${named}${others.length >= MAX_NAMED ? ' …' : ''}`,
    );
  }

  async #list(): Promise<readonly string[]> {
    const { org_id, op_home: home } = this.#place;
    const query = { org_id };
    const { rows, nextCursor } = await this.#api.list('/api/v1/ops', 'ops', { query, limit: MAX_LISTED });
    if (nextCursor !== null)
      throw new CliError(
        `there are more than ${MAX_LISTED} operations, too many to look for a shortened id`,
        'Give the whole id, or --org to look in one org only.',
      );
    // Two orgs may use the same id; which of them is meant is for the gateway to ask.
    const there = home === undefined ? rows : rows.filter(({ op_home }: Row) => op_home === home);
    return [...new Set(there.map(({ op_id: opId }: Row) => String(opId)))];
  }
}

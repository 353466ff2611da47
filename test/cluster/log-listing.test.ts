/** The audit logs of all gateways as one, whoever is silent, and whatever their clocks say. */
import { describe, expect, test } from 'vitest';
import { type LogRead, type LogSource, readLogExport, readLogPage } from '../../src/cluster/log-listing.ts';
import { fail, ok } from '../../src/core/base/result.ts';
import type { LogAsked } from '../../src/ports/cluster.ts';

const READ: LogRead = { filter: {}, orgId: null, most: 3, cursor: undefined };
const UNREACHABLE = fail({ kind: 'unreachable_gateway', gateway: 'two', retryAfterSecs: 1 } as const);

/** A log whose entries have these seconds as their times, the oldest first; their ids begin with 1. */
class Log implements LogSource {
  readonly name: string;
  readonly asked: LogAsked[] = [];
  isSilent = false;
  /** A search is cut after so many entries, found or not. */
  mostLookedAt = Infinity;
  readonly #seconds: number[];

  constructor(name: string, seconds: number[]) {
    this.name = name;
    this.#seconds = seconds;
  }

  append(second: number): void {
    this.#seconds.push(second);
  }

  read = async (asked: LogAsked) => {
    this.asked.push(asked);
    if (this.isSilent) return UNREACHABLE;
    const { before = Infinity, most, form } = asked;
    const older = this.#seconds.map((second, at) => ({ id: at + 1, second })).filter(({ id }) => id < before);
    const looked = older.reverse().slice(0, this.mostLookedAt);
    const found = looked.filter(({ second }) => asked.filter.actor === undefined || second % 2 === 0);
    const shown = found.slice(0, most);
    const last = found.length > most ? shown.at(-1) : looked.length < older.length ? looked.at(-1) : undefined;
    const lines = shown.map(({ id, second }) => this.lineOf(id, second));
    const text = form === 'lines' ? lines.join('\n') : lines.map((line) => `${line}\n`).join('');
    const head = form === 'csv' && asked.before === undefined ? 'head\n' : '';
    return ok({ text: head + text, before: last?.id });
  };

  lineOf = (id: number, second: number): string =>
    `{"id":${id},"timestamp":"2026-01-01T00:00:0${second}.000Z","gateway":"${this.name}"}`;
}

const seconds = (lines: readonly string[]) =>
  lines.map((line) => {
    const { timestamp, gateway } = JSON.parse(line) as { timestamp: string; gateway: string };
    return `${gateway} ${timestamp.slice(18, 19)}`;
  });

/** All pages, each asked for at the next of the gateways. */
async function pagesOf(logs: readonly Log[], read: Partial<LogRead> = {}) {
  const pages: string[][] = [];
  let cursor: string | undefined;
  for (let at = 0; ; at += 1) {
    const own = logs[at % logs.length]!;
    const page = await readLogPage(
      own,
      logs.filter((log) => log !== own),
      { ...READ, ...read, cursor },
    );
    if (!page.ok) throw new Error(page.fault.kind);
    pages.push(seconds(page.value.lines));
    cursor = page.value.next;
    if (cursor === undefined) return pages;
  }
}

describe('a page of the logs of all gateways', () => {
  test('is merged by time, and its cursor goes on at any gateway', async () => {
    const logs = [new Log('one', [1, 4, 7]), new Log('two', [2, 3, 8]), new Log('three', [5])];
    expect(await pagesOf(logs)).toEqual([['two 8', 'one 7', 'three 5'], ['one 4', 'two 3', 'two 2'], ['one 1']]);
  });

  test('has no entry twice or left out where a clock was set back or others append', async () => {
    const [one, two] = [new Log('one', [6, 7, 2, 3]), new Log('two', [1, 4, 5])];
    const first = await readLogPage(one, [two], READ);
    if (!first.ok) throw new Error(first.fault.kind);
    expect(seconds(first.value.lines)).toEqual(['two 5', 'two 4', 'one 3']);
    one.append(8);
    two.append(9);
    const second = await readLogPage(two, [one], { ...READ, most: 9, cursor: first.value.next });
    expect(second.ok && [seconds(second.value.lines), second.value.next]).toEqual([
      ['one 2', 'one 7', 'one 6', 'two 1'],
      undefined,
    ]);
  });

  test('ends where a search was cut, so that nothing newer comes later', async () => {
    const [one, two] = [new Log('one', [2, 4]), new Log('two', [1, 6, 1, 1])];
    two.mostLookedAt = 2; // finds neither of the newest
    expect(await pagesOf([one, two], { filter: { actor: 'even' } })).toEqual([[], ['two 6', 'one 4', 'one 2']]);
  });

  test('names a gateway that is silent, and has its entries once it answers', async () => {
    const [one, two] = [new Log('one', [1, 3, 5]), new Log('two', [2, 4])];
    two.isSilent = true;
    const first = await readLogPage(one, [two], { ...READ, most: 2 });
    if (!first.ok) throw new Error(first.fault.kind);
    expect([seconds(first.value.lines), first.value.incomplete]).toEqual([['one 5', 'one 3'], ['two']]);
    two.isSilent = false;
    const second = await readLogPage(one, [two], { ...READ, most: 9, cursor: first.value.next });
    expect(second.ok && [seconds(second.value.lines), second.value.incomplete]).toEqual([
      ['two 4', 'two 2', 'one 1'],
      [],
    ]);
  });

  test('ends where only silent gateways have more', async () => {
    const [one, two] = [new Log('one', [1]), new Log('two', [2])];
    two.isSilent = true;
    const page = await readLogPage(one, [two], READ);
    expect(page.ok && [page.value.next, page.value.incomplete]).toEqual([undefined, ['two']]);
  });

  test('names a gateway that has left while it was listed', async () => {
    const [one, two] = [new Log('one', [1, 3]), new Log('two', [2, 4])];
    const first = await readLogPage(one, [two], { ...READ, most: 1 });
    if (!first.ok) throw new Error(first.fault.kind);
    const second = await readLogPage(one, [], { ...READ, cursor: first.value.next });
    expect(second.ok && [seconds(second.value.lines), second.value.incomplete]).toEqual([['one 3', 'one 1'], ['two']]);
  });

  test('fails where the own log cannot be read, and for what is no cursor', async () => {
    const [one, two] = [new Log('one', [1]), new Log('two', [2])];
    one.isSilent = true;
    expect(await readLogPage(one, [two], READ)).toBe(UNREACHABLE);
    const encoded = (raw: unknown) => Buffer.from(JSON.stringify(raw)).toString('base64url');
    for (const cursor of ['x', encoded({}), encoded([['one']]), encoded([['one', -1]]), encoded([['one', 1.5]])])
      expect(await readLogPage(two, [], { ...READ, cursor })).toMatchObject({ fault: { field: 'cursor' } });
  });

  test('asks others for less than they could send at once', async () => {
    const [one, two] = [new Log('one', [1]), new Log('two', [2])];
    await readLogPage(one, [two], { ...READ, most: 1_000 });
    expect([one.asked[0]?.most, two.asked[0]?.most]).toEqual([1_000, 250]);
  });
});

describe('an export of the logs of all gateways', () => {
  const begin = (own: LogSource, others: readonly LogSource[], form: 'ndjson' | 'csv' = 'ndjson') =>
    readLogExport(own, others, form, { ...READ, most: 2 });

  test('has one log after the other, and the head of a table once', async () => {
    const logs = [new Log('one', [1, 4, 7]), new Log('two', [2, 3]), new Log('three', [5])];
    const [own, ...others] = logs;
    let piece = await begin(own!, others, 'csv');
    let text = '';
    for (;;) {
      if (!piece.ok) throw new Error(piece.fault.kind);
      expect(piece.value.incomplete).toEqual([]);
      text += piece.value.text;
      const { next } = piece.value;
      if (next === undefined) break;
      piece = await readLogExport(own!, others, 'csv', { ...READ, most: 2, cursor: next });
    }
    const [head, ...lines] = text.trimEnd().split('\n');
    expect([head, seconds(lines)]).toEqual(['head', ['one 7', 'one 4', 'one 1', 'two 3', 'two 2', 'three 5']]);
  });

  test('names those that are silent when it begins, and does without them', async () => {
    const [one, two] = [new Log('one', [1]), new Log('two', [2])];
    two.isSilent = true;
    const piece = await begin(one, [two]);
    expect(piece.ok && [piece.value.incomplete, piece.value.next]).toEqual([['two'], undefined]);
  });

  test('ends with a fault where a gateway falls silent or leaves later', async () => {
    const [one, two] = [new Log('one', [1]), new Log('two', [2])];
    const piece = await begin(one, [two]);
    if (!piece.ok) throw new Error(piece.fault.kind);
    const further = { ...READ, cursor: piece.value.next };
    expect(await readLogExport(one, [], 'ndjson', further)).toEqual(UNREACHABLE);
    two.isSilent = true;
    expect(await readLogExport(one, [two], 'ndjson', further)).toEqual(UNREACHABLE);
  });
});

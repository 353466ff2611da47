import { describe, expect, test } from 'vitest';
import { OpNames, shortIds } from '../../src/cli/commands/op-name.ts';
import { RefusedError } from '../../src/cli/errors.ts';
import type { Api } from '../../src/cli/remote/api.ts';

/** The part of the gateway's client that lists operations. */
const listing = (opIds: readonly string[], nextCursor: string | null = null) =>
  ({ list: async () => ({ rows: opIds.map((op_id) => ({ op_id })), nextCursor }) }) as unknown as Api;

const NOT_FOUND = new RefusedError('not found', undefined, {
  status: 404,
  code: 'not_found',
  retryAfterSecs: undefined,
});
const among = (text: string, opIds: readonly string[]) =>
  new OpNames(listing(opIds), { org_id: undefined }).ask(text, async (opId) => {
    if (!opIds.includes(opId)) throw NOT_FOUND;
    return opId;
  });

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const IDS = [
  `${TRACE}:00f067aa0ba902b7`,
  `${TRACE}:00f067aa0ba90300`,
  `${TRACE}:a1b2c3d4e5f60718`,
  't:1',
  't:12',
  'abcd:12345678901234',
  'abcdef:123456xyz90123',
];

describe('ids of operations', () => {
  test('are shortened to six characters of each half, or as many as tell them apart', () => {
    expect([...shortIds(IDS).values()].sort()).toEqual(
      [
        '4bf92f3577b34d:00f067aa0ba902',
        '4bf92f3577b34d:00f067aa0ba903',
        '4bf92f:a1b2c3',
        't:1',
        't:12',
        'abcd:123456',
        'abcdef:123456',
      ].sort(),
    );
    expect([...shortIds([`${'😀'.repeat(9)}:1`, 't:1', 't:1'])]).toEqual([
      [`${'😀'.repeat(9)}:1`, '😀😀😀:1'],
      ['t:1', 't:1'],
    ]);
  });

  test('are found by what they were shortened to, each its own', async () => {
    for (const [opId, short] of shortIds(IDS)) expect([short, await among(short, IDS)]).toEqual([short, opId]);
  });

  test('are refused with their matches if ambiguous; unknown ones stay unknown', async () => {
    await expect(among('4bf92f:00f0', IDS)).rejects.toMatchObject({
      message: '4bf92f:00f0 is short for 2 operations',
      advice: `Give more of the id: ${IDS[0]}, ${IDS[1]}`,
    });
    await expect(among('nothing:1', IDS)).rejects.toBe(NOT_FOUND);
    await expect(new OpNames(listing(IDS, 'more'), { org_id: undefined }).find('t:1')).rejects.toMatchObject({
      message: 'there are more than 100000 operations, too many to look for a shortened id',
    });
  });
});

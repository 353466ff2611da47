import { describe, expect, test } from 'vitest';
import { isRefusal, isShutOut, meansUnreachable } from '../../../src/stores/postgres/errors.ts';

const errorOf = (code: string | undefined): Error & { code?: unknown } =>
  Object.assign(new Error('said the server'), code === undefined ? {} : { code });

describe('postgres errors', () => {
  test.each([
    ['no answer in time, as the driver says', undefined],
    ['a refused connection', 'ECONNREFUSED'],
    ['a broken pipe, whose name is as long as a SQLSTATE', 'EPIPE'],
    ['a broken connection', '08006'],
    ['a changed password', '28P01'],
    ['a full disk', '53100'],
    ['too many connections', '53300'],
    ['a statement time-out', '57014'],
    ['a shutdown', '57P01'],
    ['a disk that fails', '58030'],
    ['a standby', '25006'],
    ['an idle transaction', '25P03'],
    ['no such database', '3D000'],
    ['a serialization failure', '40001'],
    ['a deadlock', '40P01'],
    ['a lock time-out', '55P03'],
  ])('%s (%s) is an outage that is retried', (_, code) => {
    expect({ meansUnreachable: meansUnreachable(errorOf(code)), isRefusal: isRefusal(errorOf(code)) }).toEqual({
      meansUnreachable: true,
      isRefusal: false,
    });
  });

  test.each([
    ['no such schema', '3F000'],
    ['no such table', '42P01'],
    ['no right to it', '42501'],
  ])('%s (%s) keeps a gateway from starting', (_, code) => expect(isRefusal(errorOf(code))).toBe(true));

  test.each([
    ['a second row of one key', '23505'],
    ['a mistake in a statement', '42601'],
    ['a value that does not fit', '22023'],
    ['a statement after one that failed', '25P02'],
  ])('%s (%s) is a bug, and no outage', (_, code) => {
    expect({
      isUnreachable: meansUnreachable(errorOf(code)),
      isRefusal: isRefusal(errorOf(code)),
      meansUnreachable: meansUnreachable(new TypeError('of the driver')),
    }).toEqual({ isUnreachable: false, isRefusal: false, meansUnreachable: false });
  });

  test('a server that rejects everybody is distinguished from one that is away', () => {
    expect(
      ['28P01', '28000', '3D000', '08006', '53300', 'ECONNREFUSED', undefined].filter((code) =>
        isShutOut(errorOf(code)),
      ),
    ).toEqual(['28P01', '28000', '3D000']);
  });
});

import { describe, expect, test } from 'vitest';
import { unconfirmedHeaders } from '../../../src/doors/shared/unconfirmed.ts';

describe('the header with gateways that do not act by an answer yet', () => {
  test('names them', () => {
    expect(unconfirmedHeaders({ unconfirmed: ['one', 'two'] })).toEqual([['svc-unconfirmed', 'one, two']]);
    expect(unconfirmedHeaders({ unconfirmed: [] })).toEqual([]);
  });

  test('stays short however many there are', () => {
    const unconfirmed = Array.from({ length: 2_000 }, (_, at) => `gateway-${at}`);
    const [[, names] = []] = unconfirmedHeaders({ unconfirmed });
    expect(names).toMatch(/^gateway-0, .*gateway-19, and 1980 more$/);
  });
});

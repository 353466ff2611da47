import { describe, expect, test } from 'vitest';
import { missingParts } from '../../../src/stores/embedded/missing-parts.ts';

const REMEDY = 'if a restore left it out, stop the gateway and restore all parts from the same backup';
const WHOLE = {
  dataDir: '/data',
  found: { store: true, signingKey: true },
  entries: 9,
  agents: 1,
  apiKeys: 1,
  hasDatabase: true,
  isKeyGiven: false,
};

describe('half restored', () => {
  test('accepts a store without keys beside a database, and reports an empty database', () => {
    expect(missingParts(WHOLE)).toEqual([]);
    expect(missingParts({ ...WHOLE, agents: 0, found: { store: false, signingKey: true } })).toEqual([
      `/data/store was missing and starts over, without the previous registrations and spend: ${REMEDY}`,
    ]);
    expect(missingParts({ ...WHOLE, apiKeys: 0 })).toEqual([
      `the database in SVC_DATABASE_URL was empty and starts over, without the previous accounts and API keys: ${REMEDY}`,
    ]);
  });

  test("nothing is missed by a first gateway, a joining one, or an operator's key", () => {
    const first = { ...WHOLE, found: { store: false, signingKey: false }, entries: 0, agents: 0, apiKeys: 0 };
    expect(missingParts(first)).toEqual([]);
    expect(missingParts({ ...first, hasDatabase: false })).toEqual([]);
    expect(missingParts({ ...first, apiKeys: 5 })).toEqual([]);
    expect(missingParts({ ...WHOLE, found: { store: true, signingKey: false }, isKeyGiven: true })).toEqual([]);
  });

  test('an audit log without entries is missed where the store was in use', () => {
    const empty = { ...WHOLE, entries: 0 };
    const missed = [`/data/audit was empty and starts over at entry 1: ${REMEDY}`];
    expect(missingParts(empty)).toEqual(missed);
    expect(missingParts({ ...empty, apiKeys: 0, hasDatabase: false })).toEqual(missed);
    expect(missingParts({ ...empty, agents: 0, hasDatabase: false })).toEqual(missed);
    expect(missingParts({ ...empty, agents: 0 })).toEqual([]);
  });
});

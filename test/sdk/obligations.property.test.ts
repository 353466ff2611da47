import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { editedAttributes } from '../../sdk/typescript/src/obligations.ts';
import type { JsonObject, Obligation } from '../../sdk/typescript/src/types.ts';
import { enforceOnArguments } from '../../src/core/check/obligations.ts';
import { runs } from '../support/runs.ts';

// Few names, so that paths often lead somewhere.
const name = fc.constantFrom('a', 'b', '0', '1', '*', '__proto__', 'constructor', 'toString');
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join('.'));
const scalar = fc.oneof(fc.integer(), fc.constantFrom('x', '7', '900', ''), fc.boolean(), fc.constant(null));
const { json } = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 4 },
    scalar,
    fc.array(tie('json'), { maxLength: 3 }),
    fc.dictionary(name, tie('json'), { maxKeys: 3 }),
  ),
}));
const obligation = fc.oneof(
  fc.record({ paths: fc.array(path, { minLength: 1, maxLength: 2 }) }).map((properties) => ['redact', properties]),
  fc.record({ path, value: scalar }).map((properties) => ['set', properties]),
  fc.record({ path, max: fc.integer() }).map((properties) => ['cap', properties]),
) as fc.Arbitrary<[string, JsonObject]>;

describe('obligations', () => {
  test('mean the same to the SDK and to the gateway, and change nothing in place', () => {
    fc.assert(
      fc.property(
        fc.dictionary(name, json, { maxKeys: 4 }),
        fc.array(obligation, { maxLength: 4 }),
        (attributes, given) => {
          const obligations: Obligation[] = given.map(([type, properties], n) => ({ id: `o${n}`, type, properties }));
          const before = JSON.stringify(attributes);
          const edited = editedAttributes(attributes as JsonObject, obligations);
          const enforced = enforceOnArguments(attributes, obligations);
          expect(enforced.ok && JSON.stringify(enforced.value)).toBe(JSON.stringify(edited));
          expect(JSON.stringify(attributes)).toBe(before);
          if (edited !== attributes) expect(JSON.stringify(edited)).not.toBe(before);
        },
      ),
      { numRuns: runs(500) },
    );
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });
});

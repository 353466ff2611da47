import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { CheckAnswer, CheckCommand } from '../../src/core/commands.ts';
import { OP_STATES } from '../../src/core/ops/op-state.ts';
import { decodeToIo, decodeToMain, encode, encodeToIo, encodeToMain } from '../../src/threads/codec.ts';
import type { IoToMain, MainToDoors, MainToIo } from '../../src/threads/protocol.ts';
import { CODE_POINT } from '../support/code-point.ts';
import { runs } from '../support/runs.ts';

const text = fc.string({ unit: CODE_POINT, maxLength: 40 });
const identity = fc.record({ orgId: text, teamId: text, agentId: text });
const principal = fc.record({
  subject: text,
  scopes: fc.subarray(['read', 'write', 'admin'] as const),
  orgId: fc.option(text),
});
const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined });
const wellFormed = (value: unknown): boolean =>
  JSON.stringify(value) === JSON.stringify(JSON.parse(Buffer.from(JSON.stringify(value)).toString()));

// Values that pass the edge: JSON has one zero, and no key may be __proto__.
const attributes = fc
  .dictionary(fc.string(), fc.jsonValue())
  .filter((value) => !JSON.stringify(value).includes('__proto__'))
  .map((value) => JSON.parse(JSON.stringify(value)) as object);

const check = fc
  .record({
    type: fc.constant('check' as const),
    agent: identity,
    credential: optional(text),
    principal: optional(principal),
    opId: text,
    action: text,
    resource: text,
    attributes: optional(attributes),
    estimatedCostMicroUsd: fc.nat(1e12),
    caller: optional(identity),
    dryRun: fc.boolean(),
    supportedObligations: optional(fc.array(text, { minLength: 1, maxLength: 4 })),
    home: optional(text),
  } satisfies Record<keyof CheckCommand, fc.Arbitrary<unknown>>)
  .filter(wellFormed) as fc.Arbitrary<unknown> as fc.Arbitrary<CheckCommand>;

const HIDE = [{ id: 'a', type: 'redact', properties: { paths: ['x.y'] } }];
const CAP = [{ id: 'a', type: 'cap', properties: { path: 'x', max: 5 } }];

describe('codec', () => {
  test('checks and other messages cross in one batch, in order and unchanged', () => {
    const other = fc.constantFrom<IoToMain>(
      { type: 'interest', interest: 'all' },
      {
        type: 'command',
        id: 3,
        command: {
          type: 'get-op',
          principal: { subject: 'key:a', scopes: ['read'], orgId: null },
          opId: 't:s' as never,
        },
      },
      { type: 'call', id: 4, name: 'listPolicies', input: { perPage: 10, nested: { a: [1, 'two', null, true] } } },
    );
    const message = fc.oneof(
      fc.tuple(fc.nat(), check).map(([id, command]): IoToMain => ({ type: 'command', id, command })),
      other,
    );
    fc.assert(
      fc.property(fc.array(message, { maxLength: 20 }), (messages) => {
        expect(decodeToMain(encodeToMain(messages))).toEqual(messages);
      }),
      { numRuns: runs(100) },
    );
  });

  test('answers cross unchanged, packed or not', () => {
    const answer = fc
      .record({
        decision: fc.constantFrom('allow', 'deny'),
        reason: text,
        policy: optional(text),
        ruleId: optional(text),
        opState: optional(fc.constantFrom(...OP_STATES)),
        // The same list or another one: answers share a verdict only with the same.
        obligations: optional(fc.constantFrom(HIDE, [...HIDE], CAP)),
        remedy: optional(fc.constantFrom('ask', 'wait')),
      })
      .filter(wellFormed) as fc.Arbitrary<CheckAnswer>;
    const message = fc.oneof(
      fc.tuple(fc.nat(), answer, fc.integer({ min: -1, max: 1_000 })).map(
        ([id, value, auditIndex]): MainToDoors => ({
          type: 'command-reply',
          id,
          reply: { ok: true, value },
          auditIndex,
        }),
      ),
      fc.constantFrom<MainToDoors>(
        { type: 'command-reply', id: 1, reply: { ok: false, fault: { kind: 'audit_unavailable' } }, auditIndex: -1 },
        { type: 'command-reply', id: 2, reply: { ok: true, value: undefined } as never, auditIndex: 0 },
        { type: 'call-reply', id: 3, reply: { ok: true, value: [] } },
        { type: 'drain', graceMs: 10 },
      ),
    );
    fc.assert(
      fc.property(fc.array(message, { maxLength: 20 }), fc.array(message, { maxLength: 3 }), (plain, replies) => {
        const held: MainToIo = { type: 'held', batch: -7, firstId: 2 ** 40, failures: 2, replies };
        const messages: MainToIo[] = [...plain, held, { type: 'not-recorded', from: -8 }, ...plain];
        expect(decodeToIo(encodeToIo(messages))).toEqual(messages);
      }),
      { numRuns: runs(100) },
    );
  });

  test('a key named like part of a prototype stays a key and changes no prototype', () => {
    const attributes = JSON.parse(
      '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}',
    ) as Record<string, unknown>;
    const command = {
      type: 'check',
      agent: { orgId: 'a', teamId: 'b', agentId: 'c' },
      credential: undefined,
      principal: undefined,
      opId: 't:s',
      action: 'x',
      resource: 'y',
      attributes,
      estimatedCostMicroUsd: 0,
      caller: undefined,
      dryRun: false,
    } as unknown as CheckCommand;
    decodeToMain(encodeToMain([{ type: 'command', id: 1, command }]));
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test('each batch has its own bytes: a later message does not overwrite them', () => {
    const first = encode({ a: 1 });
    const copy = Buffer.from(first);
    encode({ b: 'x'.repeat(1_000) });
    expect(Buffer.from(first)).toEqual(copy);
    expect(first.byteLength).toBe(first.buffer.byteLength);
  });
});

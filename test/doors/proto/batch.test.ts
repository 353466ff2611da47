import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BatchDecode, binaryBatch, jsonBatch } from '../../../src/doors/proto/batch.ts';
import { binaryCodec, emptyMessage } from '../../../src/doors/proto/binary.ts';
import { jsonCodec } from '../../../src/doors/proto/json.ts';
import type { CheckActionRequest, JsonObject } from '../../../src/doors/proto/messages.ts';
import { messageShape } from '../../../src/doors/proto/schema.ts';
import { runs } from '../../support/runs.ts';

const SLICE_BYTES = 100;

/** All checks of a batch, slice by slice; or the first fault. */
function readAll(decode: BatchDecode, body: Buffer): unknown {
  const batch = decode(body);
  if (!batch.ok) return batch.fault;
  const slices = batch.value.slices.map((read) => read());
  const requests = slices.flatMap((slice) => (slice.ok ? slice.value : []));
  const refused = slices.find((slice) => !slice.ok);
  return refused === undefined ? { count: requests.length, requests } : refused.fault;
}
const readJson = (text: string): unknown => readAll(jsonBatch(SLICE_BYTES, SLICE_BYTES), Buffer.from(text));

// Texts with what the cutting must not mistake for the end of an item.
const text = fc
  .oneof(
    fc.string({ maxLength: 20 }),
    fc.constantFrom('', '"', '\\', '\\"', ']}', '{"requests":[', ',', '[[', 'ä€😀', '\u2028\n\t'),
  )
  .filter((value) => Buffer.from(value).toString() === value);
const attributes = fc.dictionary(
  text.filter((key) => key !== '__proto__'),
  fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null), fc.array(text, { maxLength: 3 })),
) as fc.Arbitrary<JsonObject>;
const request: fc.Arbitrary<CheckActionRequest> = fc.record({
  agent: fc.option(fc.record({ orgId: text, teamId: text, agentId: text }), { nil: undefined }),
  credentialToken: text,
  traceId: text,
  spanId: text,
  action: text,
  resource: text,
  attributes: fc.option(attributes, { nil: undefined }),
  estimatedCostUsd: fc.double({ noNaN: true, noDefaultInfinity: true }),
  caller: fc.constant(undefined),
  dryRun: fc.boolean(),
  correlationId: text,
  supportedObligations: fc.array(text, { maxLength: 2 }),
  opHome: text,
});
const requests = fc.array(request, { maxLength: 12 });

describe('batch', () => {
  test('a batch read in slices holds the checks of one read at once, in either format', () => {
    const json = jsonCodec('BatchCheckActionsRequest');
    const binary = binaryCodec('BatchCheckActionsRequest');
    fc.assert(
      fc.property(requests, fc.constantFrom(undefined, 1, '\t'), (list, indent) => {
        const body = Buffer.from(
          JSON.stringify(JSON.parse(json.encode({ requests: list }) || '{}'), undefined, indent),
        );
        const bytes = binary.encode({ requests: list });
        for (const [decode, once, message] of [
          [jsonBatch(SLICE_BYTES, SLICE_BYTES), json.decode, body],
          [binaryBatch(SLICE_BYTES, SLICE_BYTES), binary.decode, bytes],
        ] as const) {
          const whole = once(message);
          expect(readAll(decode, message)).toEqual(
            whole.ok ? { count: list.length, requests: whole.value.requests } : whole.fault,
          );
        }
      }),
      { numRuns: runs(100) },
    );
  });

  test('a slice exceeds its size by at most a check, and a usual batch is one slice', () => {
    const item = { traceId: 't', spanId: 's', action: 'tool.call', resource: 'x'.repeat(60) };
    const body = Buffer.from(
      JSON.stringify({ requests: [item, item, item, { ...item, resource: 'x'.repeat(500) }, item] }),
    );
    const sizes = (decode: BatchDecode) => {
      const batch = decode(body);
      if (!batch.ok) throw new Error(JSON.stringify(batch.fault));
      return batch.value.slices.map((read) => {
        const slice = read();
        return slice.ok ? slice.value.length : slice.fault;
      });
    };
    expect(sizes(jsonBatch(260, 260))).toEqual([2, 1, 1, 1]);
    expect(sizes(jsonBatch(10_000, 260))).toEqual([5]);
    expect(sizes(jsonBatch())).toEqual([5]);
  });

  test('a check of a large batch has no more values than a single one', () => {
    const many = `{"attributes":{"a":[${'0,'.repeat(30_000)}0]}}`;
    expect(readJson(`{"requests":[{},${many}]}`)).toEqual({
      kind: 'invalid_argument',
      field: 'body',
      problem: 'has more values than the limits on attributes allow',
    });
  });

  test('a batch of nothing but brackets is refused unparsed; many short lists are read', () => {
    for (const [open, close, times] of [
      ['[', ']', 130_000],
      ['{"":', '}', 52_000],
    ] as const) {
      const deep = Buffer.from(`{"requests":[{},{"attributes":{"a":${open.repeat(times)}0${close.repeat(times)}}}]}`);
      expect(readAll(jsonBatch(), deep)).toEqual({
        kind: 'invalid_argument',
        field: 'body',
        problem: 'has more values than the limits on attributes allow',
      });
    }
    const short = { attributes: { matrix: Array.from({ length: 3_000 }, () => [1]) } };
    expect(
      readAll(jsonBatch(), Buffer.from(JSON.stringify({ requests: Array.from({ length: 10 }, () => short) }))),
    ).toMatchObject({ count: 10 });
  });

  test('a mistake in a large batch is named as in a small one', () => {
    const filler = `{"resource":"${'x'.repeat(SLICE_BYTES)}"}`;
    const invalid = (field: string, problem: string) => ({ kind: 'invalid_argument', field, problem });
    expect(readJson(`{"requests":[${filler},{"agent":{"orgId":1}}]}`)).toEqual(
      invalid('requests[1].agent.org_id', 'must be a string'),
    );
    expect(readJson(`{"requests":[${filler},{"nope":1}]}`)).toEqual(
      invalid('requests[1].nope', 'is not a field of CheckActionRequest'),
    );
    expect(readJson(`{"requests":[${filler},null]}`)).toEqual(invalid('requests[1]', 'must be an object'));
    expect(readJson(`{"requests":[${filler},]}`)).toMatchObject({
      field: 'body',
      problem: expect.stringContaining('is not valid JSON') as string,
    });
    expect(readJson(`{"requests":[${filler},{]}`)).toMatchObject({ field: 'body' });
    expect(readJson(`{"requests":[${filler},{"action":"\\ud800"}]}`)).toEqual(
      invalid('body', 'has a string with an unpaired surrogate'),
    );
    for (const frame of [
      `[${filler}]`,
      `{"requests":[${filler}]]`,
      `{"requests":[${filler}}}`,
      `{"requests":[${filler}]`,
      `{"requests":[${filler}]}]`,
      `{"requests":[${filler}],"more":1}`,
      `{"request":[${filler}]}`,
    ]) {
      expect(readJson(frame)).toEqual(invalid('body', 'must be {"requests":[…]} and nothing else'));
    }
    const bytes = binaryCodec('BatchCheckActionsRequest').encode({
      requests: [
        {
          ...(emptyMessage(messageShape('CheckActionRequest')) as CheckActionRequest),
          resource: 'x'.repeat(SLICE_BYTES),
        },
      ],
    });
    expect(
      readAll(
        binaryBatch(SLICE_BYTES, SLICE_BYTES),
        Buffer.concat([bytes, Buffer.from([0x0a, 0x03, 0x2a, 0x01, 0xff])]),
      ),
    ).toEqual(invalid('requests[1].action', 'is not valid UTF-8'));
    expect(
      readAll(binaryBatch(SLICE_BYTES, SLICE_BYTES), Buffer.concat([bytes, Buffer.from([0x0a, 0x09, 0x00])])),
    ).toMatchObject({ field: 'message', problem: 'is truncated or has a wrong length' });
  });

  test('accepts the maximum of checks in a large batch and refuses one more', () => {
    const json = (items: number) => readJson(JSON.stringify({ requests: Array.from({ length: items }, () => ({})) }));
    const binary = (items: number) =>
      readAll(binaryBatch(SLICE_BYTES, SLICE_BYTES), Buffer.alloc(2 * items, Buffer.from([0x0a, 0])));
    for (const read of [json, binary]) {
      expect(read(1000)).toMatchObject({ count: 1000 });
      expect(read(1001)).toEqual({ kind: 'invalid_argument', field: 'requests', problem: 'must have 1 to 1000 items' });
    }
  });

  test('a check in a batch may be as large as a single one, and a larger one is named', () => {
    const MIB = 1_048_576;
    const item = (bytes: number) => `{"resource":"${'x'.repeat(bytes - 15)}"}`;
    const read = (...items: string[]) => readAll(jsonBatch(), Buffer.from(`{"requests":[${items.join()}]}`));
    expect(read('{}', item(MIB), item(MIB), '{}')).toMatchObject({ count: 4 });
    expect(read('{}', item(MIB), item(MIB + 1), '{}')).toEqual({
      kind: 'invalid_argument',
      field: 'requests[2]',
      problem: 'must be at most 1048576 bytes',
    });
    expect(read(item(MIB), '{}', '{"nope":1}')).toMatchObject({ field: 'requests[2].nope' });
  });

  test('a list that is far too long is refused before it is read, in a batch of any size', () => {
    const TOO_MANY = {
      ok: false,
      fault: { kind: 'invalid_argument', field: 'requests', problem: 'must have 1 to 1000 items' },
    };
    // Items behind the first thousand are no checks, and are not looked at.
    const bytes = (items: number) =>
      Buffer.concat([Buffer.alloc(2 * items, Buffer.from([0x0a, 0])), Buffer.from([0x0a, 0x02, 0x0a, 0x7f])]);
    const json = (items: number) => Buffer.from(`{"requests":[${'{},'.repeat(items)}{"nope":1}]}`);
    for (const items of [1000, 80_000, 1_000_000]) {
      expect(binaryBatch()(bytes(items))).toEqual(TOO_MANY);
      expect(jsonBatch()(json(items))).toEqual(TOO_MANY);
    }
    expect(jsonBatch()(json(999))).toMatchObject({ fault: { field: 'requests[999].nope' } });
  });
});

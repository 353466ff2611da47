import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { binaryCodec, emptyMessage } from '../../../src/doors/proto/binary.ts';
import type { MessageName, Messages } from '../../../src/doors/proto/messages.ts';
import { type FieldShape, type MessageShape, messageShape, protoRoot } from '../../../src/doors/proto/schema.ts';
import { runs } from '../../support/runs.ts';
import { messageOf } from './arbitrary.ts';

const type = (name: string) => protoRoot.lookupType(`svc.governance.v1.${name}`);

/** Every message of the schema: of what it declares, only messages have fields. */
const declared = (
  protoRoot.lookup('svc.governance.v1')?.toJSON() as { readonly nested: Readonly<Record<string, object>> }
).nested;
const NAMES = Object.keys(declared).filter((name) => 'fields' in declared[name]!) as MessageName[];

/** Converts to the types of the reference library: enum numbers, no `undefined`, Struct as its own message. */
function forReference(shape: MessageShape, message: Record<string, unknown>): Record<string, unknown> {
  const convert = (field: FieldShape, value: unknown): unknown => {
    if (field.kind === 'enum') return field.shape.numberByWord.get(value as string);
    if (field.kind === 'timestamp')
      return { seconds: Math.floor((value as number) / 1000), nanos: ((value as number) % 1000) * 1e6 };
    if (field.kind === 'message') return forReference(field.shape, value as Record<string, unknown>);
    if (field.kind === 'struct') return structForReference(value as Record<string, unknown>);
    return value;
  };
  return Object.fromEntries(
    shape.fields.flatMap((field) => {
      const value = message[field.name];
      if (value === undefined) return [];
      return [
        [field.name, field.repeated ? (value as unknown[]).map((item) => convert(field, item)) : convert(field, value)],
      ];
    }),
  );
}
const structForReference = (value: Record<string, unknown>): object => ({
  fields: Object.fromEntries(Object.entries(value).map(([key, item]) => [key, valueForReference(item)])),
});
function valueForReference(value: unknown): object {
  if (value === null) return { nullValue: 0 };
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'number') return { numberValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (Array.isArray(value)) return { listValue: { values: value.map(valueForReference) } };
  return { structValue: structForReference(value as Record<string, unknown>) };
}

describe('binary', () => {
  test.each(NAMES)('%s written by the gateway reads the same in another implementation and back', (name) => {
    const shape = messageShape(name);
    const codec = binaryCodec(name);
    fc.assert(
      fc.property(messageOf(shape), (message) => {
        const bytes = codec.encode(message as Messages[typeof name] as never);
        expect(codec.decode(bytes)).toEqual({ ok: true, value: message });
        const reference = type(name);
        const foreign = reference.fromObject(forReference(shape, message));
        expect(reference.toObject(reference.decode(bytes))).toEqual(
          reference.toObject(reference.decode(reference.encode(foreign).finish())),
        );
        expect(codec.decode(reference.encode(foreign).finish())).toEqual({ ok: true, value: message });
      }),
      { numRuns: runs(40) },
    );
  });

  test('a stream of checks has the fields of the unary check, for one codec', () => {
    const fields = (name: string) =>
      messageShape(name).fields.map(({ name, number, kind }) => `${number} ${name} ${kind}`);
    expect(fields('StreamCheckActionsRequest')).toEqual(fields('CheckActionRequest'));
    const alone = fields('CheckActionResponse');
    expect(fields('StreamCheckActionsResponse')).toEqual([...alone.slice(0, 8), '9 error message', ...alone.slice(8)]);
  });

  const { decode, encode } = binaryCodec('CheckActionRequest');
  const empty = emptyMessage(messageShape('CheckActionRequest')) as Messages['CheckActionRequest'];

  test('truncated or changed bytes are an answer, never a crash', () => {
    const bytes = encode({
      ...empty,
      agent: { orgId: 'acme', teamId: 'search', agentId: 'a' },
      traceId: 't',
      attributes: { a: [1, { b: 'ü' }] },
    });
    fc.assert(
      fc.property(fc.nat({ max: bytes.length - 1 }), fc.nat({ max: 255 }), fc.boolean(), (at, byte, cut) => {
        const broken = Buffer.from(cut ? bytes.subarray(0, at) : bytes);
        if (!cut) broken[at] = byte;
        expect(decode(broken)).toHaveProperty('ok');
      }),
      { numRuns: runs(500) },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300, size: 'max' }), (noise) => {
        expect(decode(noise)).toHaveProperty('ok');
      }),
      { numRuns: runs(500) },
    );
  });

  test.each([
    ['a length that reaches past the end', [0x1a, 0x05, 0x61], 'message', 'is truncated or has a wrong length'],
    [
      'a nested message that reaches past its parent',
      [0x0a, 0x02, 0x0a, 0x02, 0x61, 0x62],
      'message',
      'is truncated or has a wrong length',
    ],
    [
      'a varint that never ends',
      [0x50, ...Array<number>(11).fill(0xff)],
      'message',
      'has a number of more than 64 bits',
    ],
    ['bytes that are not UTF-8', [0x1a, 0x02, 0xc3, 0x28], 'trace_id', 'is not valid UTF-8'],
    ['a wire type that does not exist', [0x1f], 'message', 'has a field with unknown wire type 7'],
    [
      'a field of number 0, as in a message that is filled up with zeros,',
      [0x1a, 0x01, 0x74, 0x00, 0x00],
      'message',
      'has a field with number 0',
    ],
    ['a group that is closed by another', [0xa3, 0x06, 0xac, 0x06], 'message', 'has mismatched groups'],
    [
      'a nest of groups that would exhaust the stack',
      Array.from({ length: 20_000 }, (_, at) => (at % 2 === 0 ? 0xa3 : 0x06)),
      'message',
      'has groups nested too deeply',
    ],
    [
      'an attribute that is no number',
      [0x3a, 0x10, 0x0a, 0x0e, 0x0a, 0x01, 0x61, 0x12, 0x09, 0x11, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f],
      'attributes',
      'has a number that is not finite',
    ],
    [
      'an attribute that is infinite',
      [0x3a, 0x10, 0x0a, 0x0e, 0x0a, 0x01, 0x61, 0x12, 0x09, 0x11, 0, 0, 0, 0, 0, 0, 0xf0, 0x7f],
      'attributes',
      'has a number that is not finite',
    ],
    [
      'an attribute named __proto__',
      [0x3a, 0x11, 0x0a, 0x0f, 0x0a, 0x09, ...Buffer.from('__proto__'), 0x12, 0x02, 0x08, 0x00],
      'attributes',
      'has a key named __proto__',
    ],
    ['an attribute without a value', [0x3a, 0x05, 0x0a, 0x03, 0x0a, 0x01, 0x61], 'attributes.a', 'has no value'],
  ])('%s is refused', (_what, bytes, field, problem) => {
    expect(decode(Buffer.from(bytes))).toEqual({ ok: false, fault: { kind: 'invalid_argument', field, problem } });
  });

  test('a number that is too large is refused in the same words as in JSON', () => {
    expect(
      binaryCodec('AckOpControlRequest').decode(Buffer.from([0x20, ...Array<number>(7).fill(0x80), 0x10])),
    ).toEqual({
      ok: false,
      fault: {
        kind: 'invalid_argument',
        field: 'sequence',
        problem: 'must be a whole number from 0 to 9007199254740991',
      },
    });
  });

  test('fields of a newer schema are skipped, also groups and within attributes', () => {
    const newer = [0xa0, 0x06, 0x87, 0x01, 0xa5, 0x06, 0, 0, 0, 0]; // a number of two bytes, and one of 32 bits
    const within = (...bytes: number[]): number[] => [bytes.length, ...bytes];
    const list = within(...newer, 0x0a, 0x02, 0x20, 0x01);
    const attributes = within(
      ...newer,
      0x0a,
      ...within(0x0a, 0x01, 0x61, ...newer, 0x12, ...within(...newer, 0x32, ...list)),
    );
    expect(decode(Buffer.from([...newer, 0x1a, 0x01, 0x74, 0x3a, ...attributes]))).toEqual({
      ok: true,
      value: { ...empty, traceId: 't', attributes: { a: [true] } },
    });
    const bytes = Buffer.from([
      0x1a,
      0x01,
      0x74,
      0xa0,
      0x06,
      0x07,
      0xa3,
      0x06,
      0x08,
      0x01,
      0xa4,
      0x06,
      0xaa,
      0x06,
      0x01,
      0x00,
      0xa1,
      0x06,
      ...Array<number>(8).fill(0),
    ]);
    expect(decode(bytes)).toEqual({ ok: true, value: { ...empty, traceId: 't' } });
  });

  const nested = (depth: number): Record<string, unknown> => (depth === 1 ? {} : { a: nested(depth - 1) });
  const referenceBytes = (attributes: Record<string, unknown>) => {
    const reference = type('CheckActionRequest');
    return reference.encode(reference.fromObject({ attributes: structForReference(attributes) })).finish();
  };

  test('attributes may be 32 deep and have 1000 keys, and not one more', () => {
    expect(decode(referenceBytes(nested(32)))).toMatchObject({ ok: true });
    expect(decode(referenceBytes(nested(33)))).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'attributes', problem: 'is nested more than 32 levels deep' },
    });
    const keys = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, true]));
    expect(decode(referenceBytes(keys(1000)))).toMatchObject({ ok: true });
    expect(decode(referenceBytes({ a: keys(999), b: 1 }))).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'attributes', problem: 'has more than 1000 keys' },
    });
    expect(decode(referenceBytes({ a: Array<number>(10_001).fill(0) }))).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'attributes', problem: 'has more than 10000 list items' },
    });
  });

  test('attributes in parts are merged, within the limits of a single one', () => {
    const part = (prefix: string, count: number, value: unknown) =>
      referenceBytes(Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, value])));
    expect(decode(Buffer.concat([referenceBytes({ a: 1, b: 1 }), referenceBytes({ b: 2, c: 2 })]))).toEqual({
      ok: true,
      value: { ...empty, attributes: { a: 1, b: 2, c: 2 } },
    });
    expect(decode(Buffer.concat([part('a', 500, true), part('b', 500, true)]))).toMatchObject({ ok: true });
    expect(decode(Buffer.concat([part('a', 500, true), part('b', 501, true)]))).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'attributes', problem: 'has more than 1000 keys' },
    });
    expect(decode(Buffer.concat([part('a', 1, Array(6000).fill(0)), part('b', 1, Array(6000).fill(0))]))).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'attributes', problem: 'has more than 10000 list items' },
    });
  });

  test.each([
    ['empty parts of attributes', '3a00'],
    ['parts of an agent', '0a00'],
    ['actions that are no ASCII', '2a02c3a9'],
    ['fields that nobody knows', 'f80700'],
    ['groups within groups', '7b7b7c7c'],
  ])('a megabyte of %s is refused at its 32,769th field', (_name, hex) => {
    const full = referenceBytes(Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`k${index}`, true])));
    expect(decode(Buffer.concat([full, Buffer.alloc(1_000_000, Buffer.from(hex, 'hex'))]))).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'message', problem: 'has more than 32768 fields' },
    });
  });

  test('attributes at all of their limits, in many parts, are within the limit on fields', () => {
    const part = (attributes: Record<string, unknown>) => referenceBytes(attributes);
    const keys = Array.from({ length: 990 }, (_, nth) => [`k${nth}`, true] as const);
    const lists = [0, 1, 2, 3].map((nth) => [`l${nth}`, Array.from({ length: 2_500 }, () => 'é')] as const);
    const read = decode(Buffer.concat([...keys, ...lists].map(([key, value]) => part({ [key]: value }))));
    expect(Object.keys((read.ok && read.value.attributes) || {})).toHaveLength(994);
  });

  test.each([9_007_199_254_740_992, -9_007_199_254_740_992, 1e21])(
    'the whole number %d is refused: approvals could not tell it from the next',
    (number) => {
      expect(decode(referenceBytes({ a: [number] }))).toEqual({
        ok: false,
        fault: {
          kind: 'invalid_argument',
          field: 'attributes',
          problem: 'has a whole number beyond 2^53-1, which is not exact; send it as a string',
        },
      });
      expect(decode(referenceBytes({ a: [9_007_199_254_740_991, 0.5, 1.5e-9] })).ok).toBe(true);
    },
  );

  test('10,000 levels of attributes are refused without exhausting the stack', () => {
    const prefixes: Buffer[] = [];
    let length = 0;
    const wrap = (...head: number[]) => {
      const varint = [];
      for (let rest = length; ; rest >>>= 7) {
        varint.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
        if (rest <= 0x7f) break;
      }
      const prefix = Buffer.from([...head, ...varint]);
      length += prefix.length;
      prefixes.push(prefix);
    };
    for (let depth = 0; depth < 10_000; depth++) {
      wrap(42);
      wrap(10, 1, 97, 18);
      wrap(10);
    }
    wrap(0x3a);
    const bytes = Buffer.concat(prefixes.reverse());
    expect(decode(bytes)).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'attributes', problem: 'is nested more than 32 levels deep' },
    });
  });

  test('a malformed item of a batch is named by its position', () => {
    const reference = type('BatchCheckActionsRequest');
    const good = reference.encode(reference.fromObject({ requests: [{ traceId: 't' }] })).finish();
    const bad = Buffer.from([0x0a, 0x04, 0x1a, 0x02, 0xc3, 0x28]);
    expect(binaryCodec('BatchCheckActionsRequest').decode(Buffer.concat([good, good, bad]))).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'requests[2].trace_id', problem: 'is not valid UTF-8' },
    });
  });
});

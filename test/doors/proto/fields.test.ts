/** Messages without a schema, as strangers send them. */
import { describe, expect, test } from 'vitest';
import { field, fieldsOf, limitSize, messageIn, pairsIn, textOf } from '../../../src/doors/proto/fields.ts';
import { attempt } from '../../../src/doors/proto/schema.ts';

const refusal = (problem: string) => ({ ok: false, fault: { kind: 'invalid_argument', field: 'message', problem } });
const repeated = (hex: string, count: number) => Buffer.from(hex.repeat(count), 'hex');

describe('fields of a message without a schema', () => {
  test('are those that are asked for, the last of each as protobuf has it', () => {
    const bytes = Buffer.concat([field(1, 'a'), field(2, 'skipped'), field(1, 'b'), field(3, field(4, 'inner'))]);
    const fields = fieldsOf(bytes, 1, 3);
    expect([...fields.keys()]).toEqual([1, 3]);
    expect(textOf(fields, 1)).toBe('b');
    expect(textOf(messageIn(fields, 3, 4), 4)).toBe('inner');
    expect(textOf(messageIn(fields, 9, 1), 1)).toBe('');
  });

  test('lie in the message, which is not copied', () => {
    const bytes = field(1, 'content');
    expect(fieldsOf(bytes, 1).get(1)?.[0]?.buffer).toBe(bytes.buffer);
  });

  test('may come 200 times each, and not once more', () => {
    expect(pairsIn(fieldsOf(repeated('1a00', 200), 3), 3)).toHaveLength(200);
    expect(attempt(() => fieldsOf(repeated('1a00', 201), 3))).toEqual(refusal('has field 3 more than 200 times'));
  });

  test('are counted also where nobody asks for them', () => {
    expect(fieldsOf(repeated('1a00', 32_768), 4).size).toBe(0);
    expect(attempt(() => fieldsOf(repeated('1a00', 32_769), 4))).toEqual(refusal('has more than 32768 fields'));
  });

  test('have a limit on their bytes together', () => {
    const fields = fieldsOf(Buffer.concat([field(1, 'abc'), field(1, 'def'), field(2, 'g')]), 1, 2);
    expect(attempt(() => limitSize(fields, 7)).ok).toBe(true);
    expect(attempt(() => limitSize(fields, 6))).toEqual(refusal('has more than 6 bytes besides its content'));
  });
});

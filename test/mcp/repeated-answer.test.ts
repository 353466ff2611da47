import { describe, expect, test } from 'vitest';
import { FROM_UPSTREAM } from '../../src/mcp/json-bounds.ts';
import { MessageReader } from '../../src/mcp/repeated-answer.ts';

const RESULT = { tools: [{ name: 'echo', description: 'é"x'.repeat(500), inputSchema: { type: 'object' } }] };
const first = (id: unknown, result: object = RESULT) => JSON.stringify({ jsonrpc: '2.0', id, result });
const last = (id: unknown, result: object = RESULT) => JSON.stringify({ result, jsonrpc: '2.0', id });

describe('answers that come again', () => {
  const read = (reader: MessageReader, line: string): any => {
    const found = reader.read(Buffer.from(line));
    return 'message' in found ? found.message : undefined;
  };

  test.each([
    ['first', first],
    ['last', last],
  ])('are read once where their id is %s', (_where, line) => {
    const reader = new MessageReader(FROM_UPSTREAM);
    const one = read(reader, line(9));
    const other = read(reader, line(10));
    expect(other).toEqual({ jsonrpc: '2.0', id: 10, result: RESULT });
    expect(other.result).toBe(one.result);
  });

  test('are read anew where anything else is different', () => {
    const reader = new MessageReader(FROM_UPSTREAM);
    read(reader, first(1));
    for (const line of [
      first(2, { tools: [{ ...RESULT.tools[0], description: 'é"y'.repeat(500) }] }),
      first('2'),
      last(2),
      `${first(2).slice(0, -1)},"id":3}`,
      `${first(2).slice(0, -1)},"_meta":{}}`,
      ` ${first(2)}`,
    ])
      expect(read(reader, line)).toEqual(JSON.parse(line));
  });

  test('are not taken for earlier ones if a second id counts', () => {
    const reader = new MessageReader(FROM_UPSTREAM);
    const twice = (id: number) => `${first(id).slice(0, -1)},"id":3}`;
    expect(read(reader, twice(1)).id).toBe(3);
    expect(read(reader, twice(2)).id).toBe(3);
  });

  test('are no answers if they are no messages, and throw if they are no JSON', () => {
    const reader = new MessageReader(FROM_UPSTREAM);
    expect(reader.read(Buffer.from(first(1, [])))).toEqual({ value: { jsonrpc: '2.0', id: 1, result: [] } });
    expect(() => reader.read(Buffer.from(first(1).slice(0, -2)))).toThrow(SyntaxError);
    expect(read(reader, first(2))).toEqual({ jsonrpc: '2.0', id: 2, result: RESULT });
  });
});

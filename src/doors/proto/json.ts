/**
 * The proto3 JSON mapping of every message. Strict on the way in: an unknown field, a wrong type or attributes beyond
 * their limits are refused with the path of the field. On the way out: lowerCamelCase, enum names, uint64 as string,
 * defaults left out, but `decision` always said.
 */

import { isUtf8 } from 'node:buffer';
import type { Result } from '../../core/base/result.ts';
import { quote } from '../../core/base/text.ts';
import type { Fault } from '../../core/fault.ts';
import { MAX_BATCH_ITEMS } from '../shared/limits.ts';
import { emptyMessage } from './binary.ts';
import { readCheckActionRequestJson, writeCheckActionResponseJson } from './check-json.ts';
import { hasMoreMarks, MAX_MARKS } from './json-list.ts';
import {
  jsonList,
  jsonObject,
  readAgentIdJson,
  readBoolJson,
  readDoubleJson,
  readStringJson,
  readStructJson,
  readWholeJson,
  unknownField,
} from './json-values.ts';
import type { MessageName, Messages } from './messages.ts';
import { attempt, type FieldShape, Malformed, type MessageShape, messageShape, tooMany } from './schema.ts';
import { limitsOf } from './struct.ts';
import { readTimestampJson, timestampText } from './timestamp.ts';

// From the bytes of a body to a JSON value.

const LONE_SURROGATE = /\p{Cs}/u;

/**
 * Parses a body. Refuses what is not UTF-8, not JSON, holds half a character, or more values than a message at its
 * limits.
 */
export const parseJson = (body: Buffer): unknown => parseJsonText(textOf(body), 0);

/** The text of a body, which must be UTF-8. */
export function textOf(body: Buffer): string {
  const text = body.toString('utf8');
  // Decoding replaces invalid UTF-8 by U+FFFD; only a body that contains one, perhaps legitimately, needs the strict
  // check.
  if (text.includes('\ufffd') && !isUtf8(body)) throw new Malformed('body', 'is not valid UTF-8');
  return text;
}

/** Parses a text that begins at the character `from` of the body. `maxMarks`: as `hasMoreMarks` counts them. */
export function parseJsonText(text: string, from: number, maxMarks = MAX_MARKS): unknown {
  if (hasMoreMarks(text, maxMarks)) throw new Malformed('body', 'has more values than the limits on attributes allow');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // The engine's own message quotes the body, which may hold a credential.
    const position = /at position (\d+)/.exec(String(error))?.[1];
    throw new Malformed(
      'body',
      position === undefined ? 'is not valid JSON' : `is not valid JSON, at character ${from + Number(position)}`,
    );
  }
  // Only an escape can smuggle in half of a surrogate pair, which protobuf cannot carry.
  if (text.includes('\\u')) refuseLoneSurrogates(value);
  return value;
}

function refuseLoneSurrogates(root: unknown): void {
  // Without recursion: nothing has limited the depth yet.
  const waiting = [root];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === 'string') {
      if (LONE_SURROGATE.test(value)) throw new Malformed('body', 'has a string with an unpaired surrogate');
    } else if (Array.isArray(value)) {
      for (const item of value) waiting.push(item);
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, item] of Object.entries(value)) waiting.push(key, item);
    }
  }
}

type Message = Record<string, unknown>;

export type JsonCodec<T> = {
  readonly decode: (body: Buffer) => Result<T, Fault>;
  readonly encode: (message: T) => string;
};

export function jsonCodec<N extends MessageName>(name: N): JsonCodec<Messages[N]> {
  const shape = messageShape(name);
  // A batch has as many values as fit into its size: see batch.ts.
  const maxMarks = name === 'BatchCheckActionsRequest' || name === 'BatchCheckActionsResponse' ? Infinity : MAX_MARKS;
  return {
    decode: (body) => attempt(() => readMessage(parseJsonText(textOf(body), 0, maxMarks), shape, '') as Messages[N]),
    encode: (message) => writeMessage(message, shape),
  };
}

function readMessage(value: unknown, shape: MessageShape, path: string): object {
  if (shape.name === 'CheckActionRequest') return readCheckActionRequestJson(value, path);
  const source = jsonObject(value, path);
  const message = emptyMessage(shape);
  for (const [key, item] of Object.entries(source)) {
    const field = shape.byName.get(key);
    if (field === undefined) throw unknownField(path, key, shape.name);
    if (key !== field.name && Object.hasOwn(source, field.name))
      throw new Malformed(path + key, 'is given under both of its names');
    if (item !== null)
      message[field.name] = field.repeated
        ? readList(item, field, path)
        : readValue(item, field, path, field.protoName);
  }
  return message;
}

function readList(value: unknown, field: FieldShape, path: string): unknown[] {
  const items = jsonList(value, path + field.protoName);
  if (items.length > MAX_BATCH_ITEMS) throw tooMany(path + field.protoName);
  return items.map((item, index) => {
    const name = `${field.protoName}[${index}]`;
    if (item === null) throw new Malformed(path + name, 'must not be null');
    return readValue(item, field, path, name);
  });
}

function readValue(value: unknown, field: FieldShape, path: string, name: string): unknown {
  switch (field.kind) {
    case 'string':
      return readStringJson(value, path, name);
    case 'bool':
      return readBoolJson(value, path, name);
    case 'double':
      return readDoubleJson(value, path, name);
    case 'uint32':
      return readWholeJson(value, path, name, 0xffff_ffff);
    case 'uint64':
      return readWholeJson(value, path, name, Number.MAX_SAFE_INTEGER);
    case 'struct':
      return readStructJson(value, path + name, limitsOf(field.protoName));
    case 'timestamp':
      return readTimestampJson(value, path, name);
    case 'message':
      return field.shape.name === 'AgentId'
        ? readAgentIdJson(value, path + name)
        : readMessage(value, field.shape, `${path}${name}.`);
    case 'enum': {
      const { wordByNumber, wordByName } = field.shape;
      const word =
        typeof value === 'number'
          ? wordByNumber.get(value)
          : typeof value === 'string'
            ? wordByName.get(value)
            : undefined;
      if (word === undefined)
        throw new Malformed(path + name, `must be one of ${field.shape.values.map((known) => known.name).join(', ')}`);
      return word;
    }
  }
}

function writeMessage(message: Message, shape: MessageShape): string {
  if (
    shape.name === 'CheckActionResponse' ||
    (shape.name === 'StreamCheckActionsResponse' && message['error'] === undefined)
  )
    return writeCheckActionResponseJson(message as Messages['CheckActionResponse']);
  const parts: string[] = [];
  for (const field of shape.fields) {
    const value = message[field.name];
    if (isLeftOut(field, value)) continue;
    const json = field.repeated
      ? `[${(value as readonly unknown[]).map((item) => writeValue(item, field)).join()}]`
      : writeValue(value, field);
    parts.push(`"${field.name}":${json}`);
  }
  return `{${parts.join()}}`;
}

function isLeftOut(field: FieldShape, value: unknown): boolean {
  if (value === undefined) return true;
  if (field.name === 'decision') return false;
  if (field.repeated) return (value as readonly unknown[]).length === 0;
  return !field.hasPresence && (value === '' || value === false || value === 0 || value === 'unspecified');
}

function writeValue(value: unknown, field: FieldShape): string {
  switch (field.kind) {
    case 'string':
      return quote(value as string);
    case 'bool':
    case 'uint32':
      return String(value);
    case 'double':
      return Number.isFinite(value) ? String(value) : `"${String(value)}"`;
    case 'uint64':
      return `"${String(value)}"`;
    case 'enum':
      return `"${field.shape.nameByWord.get(value as string) ?? ''}"`;
    case 'struct':
      return JSON.stringify(value);
    case 'timestamp':
      return `"${timestampText(value as number)}"`;
    case 'message':
      return writeMessage(value as Message, field.shape);
  }
}

/**
 * Every message to and from the protobuf wire format. A small interpreter walks the schema; the check has codecs of its
 * own.
 */

import { ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import { MAX_BATCH_ITEMS } from '../shared/limits.ts';
import { BinaryReader, MAX_FIELDS, NO_MAX_FIELDS, WIRE_BYTES, WIRE_FIXED64, WIRE_VARINT } from './binary-reader.ts';
import { BinaryWriter } from './binary-writer.ts';
import {
  readCheckActionRequest,
  readCheckActionResponse,
  writeCheckActionRequest,
  writeCheckActionResponse,
  writeStreamCheckActionsResponse,
} from './check-binary.ts';
import type { CheckActionRequest, JsonObject, MessageName, Messages } from './messages.ts';
import { type FieldShape, Malformed, type MessageShape, malformed, messageShape, tooMany } from './schema.ts';
import { allowanceFor, limitsOf, readStruct, writeStruct } from './struct.ts';
import { readTimestamp, writeTimestamp } from './timestamp.ts';

type Message = Record<string, unknown>;

const WIRE_TYPE = {
  bool: WIRE_VARINT,
  enum: WIRE_VARINT,
  uint32: WIRE_VARINT,
  uint64: WIRE_VARINT,
  double: WIRE_FIXED64,
  string: WIRE_BYTES,
  message: WIRE_BYTES,
  struct: WIRE_BYTES,
  timestamp: WIRE_BYTES,
} as const satisfies Record<FieldShape['kind'], number>;

const DEFAULT = {
  bool: false,
  enum: 'unspecified',
  uint32: 0,
  uint64: 0,
  double: 0,
  string: '',
  message: undefined,
  struct: undefined,
  timestamp: undefined,
} as const satisfies Record<FieldShape['kind'], unknown>;

/** The value of a field that was not sent. */
const defaultOf = (field: FieldShape): unknown =>
  field.repeated ? [] : field.hasPresence ? undefined : DEFAULT[field.kind];

const templates = new Map<MessageShape, Message>();

/** A message of which nothing was sent. */
export function emptyMessage(shape: MessageShape): Message {
  let template = templates.get(shape);
  if (template === undefined) {
    template = Object.fromEntries(shape.fields.map((field) => [field.name, defaultOf(field)]));
    templates.set(shape, template);
  }
  const message = { ...template };
  // Each message has lists of its own.
  for (const { repeated, name } of shape.fields) if (repeated) message[name] = [];
  return message;
}

const writer = new BinaryWriter();

type Write = (to: BinaryWriter, message: never) => void;
const HAND_WRITTEN: Readonly<
  Partial<Record<string, { readonly read?: (reader: BinaryReader) => object; readonly write: Write }>>
> = {
  CheckActionRequest: { read: readCheckActionRequest, write: writeCheckActionRequest },
  StreamCheckActionsRequest: { read: readCheckActionRequest, write: writeCheckActionRequest },
  CheckActionResponse: { read: readCheckActionResponse, write: writeCheckActionResponse },
  StreamCheckActionsResponse: { write: writeStreamCheckActionsResponse },
};

/**
 * A decoder and an encoder of one message. Encoding assumes a message of the right type: it is never a caller's input.
 */
export type BinaryCodec<T> = {
  readonly decode: (bytes: Uint8Array) => Result<T, Fault>;
  readonly encode: (message: T) => Buffer;
};

export function binaryCodec<N extends MessageName>(name: N): BinaryCodec<Messages[N]> {
  const shape = messageShape(name);
  // A batch has as many fields as fit into its size: see batch.ts.
  const maxFields =
    name === 'BatchCheckActionsRequest' || name === 'BatchCheckActionsResponse' ? NO_MAX_FIELDS : MAX_FIELDS;
  const read = (HAND_WRITTEN[name]?.read ?? ((reader) => readFields(reader, shape, emptyMessage(shape), ''))) as (
    reader: BinaryReader,
  ) => Messages[N];
  const write = writerOf(shape) as (to: BinaryWriter, message: Messages[N]) => void;
  return {
    decode: (bytes) => {
      try {
        const reader = new BinaryReader(
          Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
          maxFields,
        );
        const message = read(reader);
        reader.finish();
        return ok(message);
      } catch (error) {
        return malformed(error);
      }
    },
    encode: (message) => {
      writer.reset();
      write(writer, message);
      return writer.finish();
    },
  };
}

function readFields(reader: BinaryReader, shape: MessageShape, message: Message, path: string): Message {
  while (reader.position < reader.end) {
    const tag = reader.tag();
    const field = shape.byNumber.get(tag >>> 3);
    if (field === undefined || (tag & 7) !== WIRE_TYPE[field.kind]) {
      reader.skip(tag);
      continue;
    }
    if (!field.repeated) {
      message[field.name] = readValue(reader, field, message[field.name], path + field.protoName);
      continue;
    }
    const list = message[field.name] as unknown[];
    if (list.length === MAX_BATCH_ITEMS) throw tooMany(path + field.protoName);
    list.push(readValue(reader, field, undefined, `${path}${field.protoName}[${list.length}]`));
  }
  return message;
}

function readValue(reader: BinaryReader, field: FieldShape, known: unknown, path: string): unknown {
  switch (field.kind) {
    case 'string':
      return reader.string(path);
    case 'bool':
      return reader.bool();
    case 'double':
      return reader.double();
    case 'uint32':
      return reader.uint32();
    case 'uint64':
      return reader.uint64(path);
    case 'enum':
      return field.shape.wordByNumber.get(reader.uint32()) ?? 'unspecified';
    case 'struct':
      return inside(reader, () =>
        readStruct(reader, allowanceFor(path, limitsOf(field.protoName)), 1, known as JsonObject | undefined),
      );
    case 'timestamp':
      return inside(reader, () => readTimestamp(reader, path));
    case 'message':
      return inside(reader, () => readMessage(reader, field.shape, known as Message | undefined, path));
  }
}

function readMessage(reader: BinaryReader, shape: MessageShape, known: Message | undefined, path: string): object {
  const read = HAND_WRITTEN[shape.name]?.read;
  if (read === undefined) return readFields(reader, shape, known ?? emptyMessage(shape), `${path}.`);
  return at(path, () => read(reader));
}

/** A check that lies at `path` in a larger message, whose bytes are given. */
export function readItem(bytes: Buffer, path: string): CheckActionRequest {
  const reader = new BinaryReader(bytes);
  const request = at(path, () => readCheckActionRequest(reader));
  reader.finish();
  return request;
}

/** A hand-written reader does not know where its message lies. */
function at<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof Malformed && error.field !== 'message'
      ? new Malformed(`${path}.${error.field}`, error.problem)
      : error;
  }
}

function inside<T>(reader: BinaryReader, read: () => T): T {
  const outer = reader.open();
  const value = read();
  reader.close(outer);
  return value;
}

const writerOf = (shape: MessageShape): Write =>
  HAND_WRITTEN[shape.name]?.write ?? ((to: BinaryWriter, message: Message) => writeFields(to, shape, message));

function writeFields(to: BinaryWriter, shape: MessageShape, message: Message): void {
  for (const field of shape.fields) {
    const value = message[field.name];
    if (field.repeated) for (const item of value as readonly unknown[]) writeField(to, field, item);
    else if (value !== undefined && (field.hasPresence || !Object.is(value, DEFAULT[field.kind])))
      writeField(to, field, value);
  }
}

function writeField(to: BinaryWriter, field: FieldShape, value: unknown): void {
  to.uint32((field.number << 3) | WIRE_TYPE[field.kind]);
  switch (field.kind) {
    case 'string':
      return to.string(value as string);
    case 'bool':
      return to.uint32(value === true ? 1 : 0);
    case 'double':
      return to.double(value as number);
    case 'uint32':
      return to.uint32(value as number);
    case 'uint64':
      return to.uint64(value as number);
    case 'enum':
      return to.uint32(field.shape.numberByWord.get(value as string) ?? 0);
    case 'struct':
      return nested(to, () => writeStruct(to, value as JsonObject, allowanceFor(field.protoName)));
    case 'timestamp':
      return nested(to, () => writeTimestamp(to, value as number));
    case 'message':
      return nested(to, () => writerOf(field.shape)(to, value as never));
  }
}

function nested(to: BinaryWriter, write: () => void): void {
  const start = to.open();
  write();
  to.close(start);
}

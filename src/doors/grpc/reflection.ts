/**
 * Server reflection, so that a generic client can talk to the gateway without the .proto files. Both versions of the
 * service, v1 and v1alpha, have the same messages. The request comes back in every answer, as the protocol wants it.
 */

import { BinaryReader, WIRE_BYTES } from '../proto/binary-reader.ts';
import { field } from '../proto/fields.ts';
import { attempt } from '../proto/schema.ts';
import type { Method, Receiver } from './call.ts';
import type { Descriptors } from './descriptors.ts';
import { quoted } from './head.ts';
import type { Methods } from './method.ts';
import { CODE, grpcError } from './status.ts';

const SERVICES = ['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'];

/** The numbers of the fields of a ServerReflectionRequest. */
const ASKED = { fileByName: 3, fileWithSymbol: 4, fileWithExtension: 5, extensionsOf: 6, services: 7 } as const;
/** Field numbers of a ServerReflectionResponse. */
const ANSWER = { request: 2, files: 4, extensions: 5, services: 6, error: 7 } as const;

/** A name is short. Answers quote the whole request. */
const MAX_REQUEST_BYTES = 4 * 1024;

/** `services` are the names that are listed. */
export function reflectionService(services: readonly string[], descriptors: Descriptors): Methods {
  const list = field(ANSWER.services, Buffer.concat(services.map((name) => field(1, field(1, Buffer.from(name))))));
  const method: Method = {
    request: 'many',
    response: 'many',
    maxBytes: MAX_REQUEST_BYTES,
    open: (call): Receiver => ({
      receive: (bytes) => {
        const asked = attempt(() => readRequest(bytes));
        if (!asked.ok) return call.end(grpcError(asked.fault));
        const answer = asked.value.number === ASKED.services ? list : answerTo(asked.value, descriptors);
        // A client that asks on and reads no answers is not listened to any further.
        if (!call.write(Buffer.concat([field(ANSWER.request, bytes), answer]))) call.pause();
      },
      drained: () => call.resume(),
      halfClose: () => call.end(),
    }),
  };
  return new Map(SERVICES.map((service) => [`/${service}/ServerReflectionInfo`, method]));
}

type Asked = { readonly number: number; readonly text: string };

/** The last of the questions, as of the fields of a oneof; where there is none, its number is 0. */
function readRequest(bytes: Buffer): Asked {
  const reader = new BinaryReader(bytes);
  let asked: Asked = { number: 0, text: '' };
  while (reader.position < reader.end) {
    const tag = reader.tag();
    const number = tag >>> 3;
    if ((tag & 7) !== WIRE_BYTES || !Object.values<number>(ASKED).includes(number)) reader.skip(tag);
    else if (number === ASKED.fileWithExtension) asked = { number, text: textOfExtension(bytes, reader.span()) };
    else asked = { number, text: reader.string('message_request') };
  }
  reader.finish();
  return asked;
}

/** The type that is extended: field 1 of an ExtensionRequest. */
function textOfExtension(bytes: Buffer, { from, to }: { readonly from: number; readonly to: number }): string {
  const reader = new BinaryReader(bytes.subarray(from, to));
  let text = '';
  while (reader.position < reader.end) {
    const tag = reader.tag();
    if (tag >>> 3 === 1 && (tag & 7) === WIRE_BYTES) text = reader.string('containing_type');
    else reader.skip(tag);
  }
  return text;
}

function answerTo({ number, text }: Asked, descriptors: Descriptors): Buffer {
  const files = (found: readonly Buffer[] | undefined, what: string): Buffer =>
    found === undefined
      ? errorAnswer(CODE.not_found, `${what} not found: ${quoted(text)}`)
      : field(ANSWER.files, Buffer.concat(found.map((bytes) => field(1, bytes))));
  switch (number) {
    case ASKED.fileByName:
      return files(descriptors.withName(text), 'file');
    case ASKED.fileWithSymbol:
      return files(descriptors.withSymbol(text), 'symbol');
    case ASKED.fileWithExtension:
      return files(undefined, 'extension'); // the messages of the gateway have none
    case ASKED.extensionsOf:
      return descriptors.hasMessage(text)
        ? field(ANSWER.extensions, field(1, Buffer.from(text)))
        : errorAnswer(CODE.not_found, `type not found: ${quoted(text)}`);
    default:
      return errorAnswer(CODE.invalid_argument, 'the request asks for nothing that this service has');
  }
}

const errorAnswer = (code: number, message: string): Buffer =>
  field(ANSWER.error, Buffer.concat([Buffer.from([0x08, code]), field(2, Buffer.from(message))]));

/** Reads the head of a call: which method it is for, who asks, and how long it may take. */
import type { IncomingHttpHeaders } from 'node:http2';
import { cutText } from '../../core/base/text.ts';
import { LONGEST_TIMER_MS } from '../shared/limits.ts';
import { CODE, type GrpcStatus } from './status.ts';

export type Head = {
  /** The metadata of that name. Several are joined: together they are no credential. */
  readonly authorization: string | undefined;
  /** How long the client waits for the end of the call; Infinity: as long as it takes. */
  readonly timeoutMs: number;
  /** The compression of the call's messages; undefined: none may be compressed. */
  readonly encoding: string | undefined;
  /** The header of W3C Trace Context, as it came. */
  readonly traceparent: string | undefined;
};

/**
 * As HTTP/2 counts them: names, values and 32 bytes for each field. Clients are told the limit, so most of them fail a
 * larger call themselves; that of any other client is ended. The HTTP/2 library cannot read a single value over 64 KiB:
 * it ends the connection with all its calls.
 */
export const MAX_HEAD_BYTES = 16 * 1024;
const FIELD_BYTES = 32;

/**
 * With HPACK, one byte may stand for an earlier field of 4 KiB. Only a client that means to cost time sends this much,
 * and its next head would cost as much again.
 */
export const HOSTILE_HEAD_BYTES = 4 * MAX_HEAD_BYTES;

/**
 * `fields` has names and values in turns. Node.js enforces the limit only once the client has confirmed it.
 */
export function headBytesOf(fields: readonly string[]): number {
  let bytes = (fields.length / 2) * FIELD_BYTES;
  for (let at = 0; at < fields.length; at += 1) bytes += fields[at]!.length;
  return bytes;
}

/** Whether it is gRPC with messages of protobuf. */
export const isGrpc = (contentType: string | undefined): boolean =>
  contentType === 'application/grpc' || /^application\/grpc(\+proto)?\s*(;|$)/i.test(contentType ?? '');

/** The head, or what is wrong with it. `fields` has names and values in turns. */
export function readHead(headers: IncomingHttpHeaders, fields: readonly string[]): Head | GrpcStatus {
  const timeout = headers['grpc-timeout'] as string | undefined;
  const timeoutMs = timeoutOf(timeout);
  if (timeoutMs === undefined)
    return { code: CODE.internal, details: `Invalid grpc-timeout value "${quoted(timeout!)}"` };
  const encoding = headers['grpc-encoding'] as string | undefined;
  return {
    authorization: headers.authorization === undefined ? undefined : authorizationOf(headers.authorization, fields),
    timeoutMs,
    encoding: encoding === undefined || encoding === 'identity' ? undefined : quoted(encoding),
    traceparent: headers.traceparent as string | undefined,
  };
}

const UNIT_MS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1_000, m: 1, u: 1e-3, n: 1e-6 };

/**
 * Infinity where there is no deadline, and where no timer can wait for it: the client still keeps its own. Undefined
 * where it is malformed.
 */
function timeoutOf(header: string | undefined): number | undefined {
  if (header === undefined) return Infinity;
  const [, amount, unit] = /^(\d{1,8})([HMSmun])$/.exec(header) ?? [];
  if (amount === undefined) return undefined;
  const timeoutMs = Math.trunc(Number(amount) * UNIT_MS[unit!]!);
  return timeoutMs > LONGEST_TIMER_MS ? Infinity : timeoutMs;
}

/**
 * Node.js silently keeps only the first of several fields. A value that is not printable ASCII is not valid metadata,
 * so it is left out.
 */
function authorizationOf(first: string, fields: readonly string[]): string | undefined {
  let times = 0;
  for (let at = 0; at < fields.length; at += 2) if (fields[at] === 'authorization') times += 1;
  const value =
    times > 1 ? fields.filter((_, at) => at % 2 === 1 && fields[at - 1] === 'authorization').join(', ') : first;
  return /^[ -~]*$/.test(value) ? value : undefined;
}

const MAX_QUOTED = 64;
/** Makes the client's text safe to repeat in an answer. */
export const quoted = (text: string): string => cutText(text, MAX_QUOTED).replace(/[^ -~]/g, '?');

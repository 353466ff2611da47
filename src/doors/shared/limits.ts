import { MAX_COST_USD } from '../../core/base/money.ts';

// Limits on the fields of requests, worded as in refusals: the same over gRPC, Connect and the HTTP API.

export const MAX_ACTION_BYTES = 256;
export const MAX_RESOURCE_BYTES = 2048;
export const MAX_LABEL_BYTES = 256;
export const MAX_ERROR_BYTES = 1024;

export const NAME_RULE =
  'must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".."';
export const ORG_RULE = `${NAME_RULE} or "-"`;

/** Texts without any of these are the usual ones, and quickly recognised. */
const PLAIN_TEXT = /^[!-~]+$/;
const UNSEEN = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** Explains why an action is invalid, if it is: a rule for `x` must cover whatever looks like `x`. */
export function problemOfAction(action: string): string | undefined {
  if (action === '') return 'is required';
  if (isLongerThan(action, MAX_ACTION_BYTES)) return `must be at most ${MAX_ACTION_BYTES} bytes`;
  if (PLAIN_TEXT.test(action)) return undefined;
  if (UNSEEN.test(action)) return 'must not contain control or invisible characters';
  return action.trim() === action ? undefined : 'must not begin or end with whitespace';
}

const CONTROL = /\p{Cc}/u;
const CONTROL_IN_COMMAND = /[^\P{Cc}\t\n]/u;

/** Explains why a resource is invalid, if it is. Only a shell command may have several lines. */
export function problemOfResource(resource: string, action: string): string | undefined {
  if (isLongerThan(resource, MAX_RESOURCE_BYTES)) return `must be at most ${MAX_RESOURCE_BYTES} bytes`;
  if (resource === '' || PLAIN_TEXT.test(resource) || !CONTROL.test(resource)) return undefined;
  if (action !== 'process.exec') return 'must not contain control characters';
  return CONTROL_IN_COMMAND.test(resource)
    ? 'must not contain control characters other than line feeds and tabs'
    : undefined;
}

const OP_HALF = '1 to 256 bytes without whitespace, control or invisible characters, or ":"';
export const OP_HALF_RULE = `must be ${OP_HALF}`;
export const OP_ID_RULE = `must be <trace_id>:<span_id>, each ${OP_HALF}`;

export const COST_RULE = `must be a number from 0 to ${MAX_COST_USD}`;

export const USAGE_ID_RULE = `must be 1 to ${MAX_LABEL_BYTES} bytes`;
export const isUsageId = (text: string): boolean => text !== '' && !isLongerThan(text, MAX_LABEL_BYTES);

/**
 * A character takes at most three bytes for each of its UTF-16 units, so most texts are measured by their length alone.
 */
export const isLongerThan = (text: string, bytes: number): boolean =>
  text.length * 3 > bytes && Buffer.byteLength(text) > bytes;

/** Largest message of a method, in bytes; also the largest single check of a batch. */
export const MAX_MESSAGE_BYTES = 1024 * 1024;
/** Largest batch, in bytes. */
export const MAX_BATCH_BYTES = 4 * MAX_MESSAGE_BYTES;
/** Most checks in a batch, which is the only list of a request. */
export const MAX_BATCH_ITEMS = 1000;
/** The longest delay of a Node.js timer, in ms: nearly 25 days. A timer with a longer delay fires at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** A shutdown waits for an incoming request until it has stalled for this long. */
export const STALLED_MS = 2_000;

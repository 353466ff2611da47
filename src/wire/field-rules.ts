/** What the fields of requests must hold, as refusals say it: the same over gRPC, Connect and the HTTP API. */
import { MAX_COST_USD } from '../core/money.ts';

export const MAX_ACTION_BYTES = 256;
export const MAX_RESOURCE_BYTES = 2048;
export const MAX_LABEL_BYTES = 256;

export const NAME_RULE =
  'must be 1 to 256 bytes without whitespace, control or invisible characters, or "/", and must not be "." or ".."';
export const ORG_RULE = `${NAME_RULE} or "-"`;

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

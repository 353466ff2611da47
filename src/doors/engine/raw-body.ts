/** The JSON of a body for the doors that say in their own words what is wrong with it. */
import { fail, type Result } from '../../core/base/result.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import { parseJsonText, textOf } from '../proto/json.ts';
import { attempt } from '../proto/schema.ts';
import { MAX_MESSAGE_BYTES } from '../shared/limits.ts';
import type { RawRequest } from './route.ts';

/**
 * Faults: `payload_too_large`, or `invalid_argument`, also for the parts beside the body. `maxMarks`: how many values
 * it may hold, about.
 */
export function jsonOf({ body, headers }: RawRequest, maxMarks?: number): Result<unknown, Fault> {
  if (body.kind === 'refused') return body.refusal;
  if (body.kind === 'too-large') return fail({ kind: 'payload_too_large', limitBytes: MAX_MESSAGE_BYTES });
  const coding = headers.get('content-encoding') || 'identity';
  if (coding !== 'identity') return invalid('Content-Encoding', 'must be identity; send the body uncompressed');
  if (body.bytes.length === 0) return invalid('body', 'is required');
  return attempt(() => parseJsonText(textOf(body.bytes), 0, maxMarks));
}

/** Lets go of a body that was read, while its request is still to be answered. */
export function giveUp(body: RawRequest['body']): void {
  if (body.kind === 'whole') body.bytes = NO_BYTES;
}
const NO_BYTES = Buffer.alloc(0);

/** Whether the body is declared as JSON, in the only encoding that JSON has. */
export const isDeclaredJson = ({ headers }: RawRequest): boolean =>
  /^application\/json\s*(?:;\s*charset="?utf-8"?\s*)?$/i.test(headers.get('content-type') ?? '');

/**
 * The checks of a batch, read in slices: a large batch is up to a second of work for two threads, and others get their
 * turns between its slices. The format of the message is that of the schema's BatchCheckActionsRequest.
 */

import { ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import { MAX_BATCH_ITEMS, MAX_MESSAGE_BYTES } from '../shared/limits.ts';
import { binaryCodec, readItem } from './binary.ts';
import { BinaryReader, WIRE_BYTES } from './binary-reader.ts';
import { readCheckActionRequestJson } from './check-json.ts';
import { jsonCodec, parseJsonText, textOf } from './json.ts';
import { cutList, hasMoreBrackets, type ItemSpan, MAX_MARKS } from './json-list.ts';
import type { CheckActionRequest } from './messages.ts';
import { attempt, Malformed, tooMany } from './schema.ts';

export type CheckBatch = {
  /**
   * Each reads its part of the checks; none where there are no checks. A batch of usual size is a single slice, and
   * read already.
   */
  readonly slices: readonly (() => Result<readonly CheckActionRequest[], Fault>)[];
};

/**
 * A message of this size is worked on in one go, in bytes: a thousand plain checks are less. JSON is, if it is not all
 * brackets.
 */
const USUAL_BYTES = 256 * 1024;
/**
 * A larger one is worked on in slices of about this size: a few milliseconds each, even where every attribute has a
 * name of its own.
 */
const SLICE_BYTES = 64 * 1024;

export type BatchDecode = (body: Buffer) => Result<CheckBatch, Fault>;

/** Only tests give other sizes. */
export const jsonBatch =
  (usualBytes = USUAL_BYTES, sliceBytes = SLICE_BYTES): BatchDecode =>
  (body) =>
    body.length <= usualBytes && !hasMoreBrackets(body, MAX_MARKS)
      ? whole(usual.json(body))
      : attempt(() => {
          const text = textOf(body);
          const items = cutList(text, 'requests', MAX_BATCH_ITEMS);
          if (items === undefined) throw new Malformed('body', 'must be {"requests":[…]} and nothing else');
          if (items.length > MAX_BATCH_ITEMS) throw tooMany('requests');
          const read = ({ from, to }: ItemSpan, index: number): CheckActionRequest =>
            readCheckActionRequestJson(parseJsonText(text.slice(from, to), from), `requests[${index}].`);
          return inSlices(items, sliceBytes, read);
        });

export const binaryBatch =
  (usualBytes = USUAL_BYTES, sliceBytes = SLICE_BYTES): BatchDecode =>
  (body) =>
    body.length <= usualBytes
      ? whole(usual.binary(body))
      : attempt(() => {
          const bytes = Buffer.from(body); // the slices are read when the memory of the body may be in use for another
          const read = ({ from, to }: ItemSpan, index: number): CheckActionRequest =>
            readItem(bytes.subarray(from, to), `requests[${index}]`);
          return inSlices(spansOf(bytes), sliceBytes, read);
        });

const usual = {
  json: jsonCodec('BatchCheckActionsRequest').decode,
  binary: binaryCodec('BatchCheckActionsRequest').decode,
};

function whole(message: ReturnType<typeof usual.json>): Result<CheckBatch, Fault> {
  if (!message.ok) return message;
  const { requests } = message.value;
  return ok({ slices: requests.length === 0 ? [] : [() => ok(requests)] });
}

function inSlices(
  items: readonly ItemSpan[],
  sliceBytes: number,
  read: (item: ItemSpan, index: number) => CheckActionRequest,
): CheckBatch {
  const slices: CheckBatch['slices'][number][] = [];
  for (let first = 0; first < items.length; ) {
    const start = first;
    let end = start + 1;
    while (end < items.length && items[end]!.to - items[start]!.from <= sliceBytes) end += 1;
    slices.push(() =>
      attempt(() =>
        items.slice(start, end).map((item, index) => {
          // An item is one piece of work, however the batch is sliced.
          if (item.to - item.from > MAX_MESSAGE_BYTES)
            throw new Malformed(`requests[${start + index}]`, `must be at most ${MAX_MESSAGE_BYTES} bytes`);
          return read(item, start + index);
        }),
      ),
    );
    first = end;
  }
  return { slices };
}

const REQUESTS = (1 << 3) | WIRE_BYTES;

/** Refuses a list that is too long before its end: a message may hold two million empty checks. */
function spansOf(body: Buffer): readonly ItemSpan[] {
  const reader = new BinaryReader(body);
  const spans: ItemSpan[] = [];
  while (reader.position < reader.end) {
    const tag = reader.tag();
    if (tag !== REQUESTS) {
      reader.skip(tag);
      continue;
    }
    if (spans.length === MAX_BATCH_ITEMS) throw tooMany('requests');
    spans.push(reader.span());
  }
  return spans;
}

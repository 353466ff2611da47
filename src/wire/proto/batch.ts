/**
 * The checks of a batch, read in slices: a large batch is up to a second of work for two threads, and others get their turns between
 * its slices. The format of the message is that of the schema's BatchCheckActionsRequest.
 */
import type { Fault } from '../../core/fault.ts';
import type { Result } from '../../core/result.ts';
import { binaryCodec, readItem } from './binary.ts';
import { readCheckActionRequestJson } from './check-json.ts';
import { jsonCodec } from './json.ts';
import { cutList } from './json-list.ts';
import { parseJsonText, textOf } from './json-body.ts';
import { attempt, Malformed, MAX_ITEMS, tooMany } from './malformed.ts';
import type { CheckActionRequest } from './messages.ts';
import { Reader, WIRE_BYTES } from './reader.ts';

export type Batch = {
  /** How many checks it holds. */
  readonly count: number;
  /** Each reads its part of them. A batch of usual size is a single slice, and read already. */
  readonly slices: readonly (() => Result<readonly CheckActionRequest[], Fault>)[];
};

/** As large as a check may be that comes by itself, in bytes: one item is one piece of work, however the batch is sliced. */
const CHECK_BYTES = 1024 * 1024;
/** A message of this size is worked on in one go, in bytes: a thousand plain checks are less. */
const USUAL_BYTES = 256 * 1024;
/** As much of a larger one is, also in bytes: a few milliseconds where every attribute has a name of its own. */
const SLICE_BYTES = 64 * 1024;

export type BatchDecode = (body: Buffer) => Result<Batch, Fault>;

/** The sizes are others only in a test. */
export const jsonBatch = (usualBytes = USUAL_BYTES, sliceBytes = SLICE_BYTES): BatchDecode => (body) =>
  body.length <= usualBytes ? whole(usual.json(body)) : attempt(() => {
    const text = textOf(body);
    const items = cutList(text, 'requests', MAX_ITEMS);
    if (items === undefined) throw new Malformed('body', 'must be {"requests":[…]} and nothing else');
    if (items.length > MAX_ITEMS) throw tooMany('requests');
    const read = ({ from, to }: Span, index: number): CheckActionRequest => readCheckActionRequestJson(parseJsonText(text.slice(from, to), from), `requests[${index}].`);
    return inSlices(items, sliceBytes, read);
  });

export const binaryBatch = (usualBytes = USUAL_BYTES, sliceBytes = SLICE_BYTES): BatchDecode => (body) =>
  body.length <= usualBytes ? whole(usual.binary(body)) : attempt(() => {
    const bytes = Buffer.from(body); // the slices are read when the memory of the body may be in use for another
    const read = ({ from, to }: Span, index: number): CheckActionRequest => readItem(bytes.subarray(from, to), `requests[${index}]`);
    return inSlices(spansOf(bytes), sliceBytes, read);
  });

const usual = { json: jsonCodec('BatchCheckActionsRequest').decode, binary: binaryCodec('BatchCheckActionsRequest').decode };

function whole(message: ReturnType<typeof usual.json>): Result<Batch, Fault> {
  if (!message.ok) return message;
  const { requests } = message.value;
  return { ok: true, value: { count: requests.length, slices: [() => ({ ok: true, value: requests })] } };
}

/** Where an item lies in the message. */
type Span = { readonly from: number; readonly to: number };

function inSlices(items: readonly Span[], sliceBytes: number, read: (item: Span, index: number) => CheckActionRequest): Batch {
  const slices: Batch['slices'][number][] = [];
  for (let first = 0; first < items.length;) {
    const start = first;
    let end = start + 1;
    while (end < items.length && items[end]!.to - items[start]!.from <= sliceBytes) end += 1;
    slices.push(() => attempt(() => items.slice(start, end).map((item, index) => {
      if (item.to - item.from > CHECK_BYTES) throw new Malformed(`requests[${start + index}]`, 'is larger than a check may be that comes by itself');
      return read(item, start + index);
    })));
    first = end;
  }
  return { count: items.length, slices };
}

const REQUESTS = (1 << 3) | WIRE_BYTES;

/** Refuses a list that is too long before its end: a message may hold two million empty checks. */
function spansOf(body: Buffer): readonly Span[] {
  const reader = new Reader(body);
  const spans: Span[] = [];
  while (reader.position < reader.end) {
    const tag = reader.uint32();
    if (tag !== REQUESTS) {
      reader.skip(tag);
      continue;
    }
    if (spans.length === MAX_ITEMS) throw tooMany('requests');
    const outer = reader.open();
    spans.push({ from: reader.position, to: reader.end });
    reader.position = reader.end;
    reader.close(outer);
  }
  return spans;
}

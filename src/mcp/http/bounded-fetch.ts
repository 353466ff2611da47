/** `fetch` that follows no redirect, and reads no answer, and no event of a stream, without a bound. */
import { FROM_UPSTREAM, JsonMeter } from '../json-bounds.ts';

const MAX_BYTES = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

/** A redirect could lead to an address that only this machine can reach, with the credentials of another. */
export async function boundedFetch(url: string | URL, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, { ...init, redirect: 'error' });
  if (response.body === null) return response;
  const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true;
  return new Response(response.body.pipeThrough(bounded(isStream)), {
    status: response.status,
    statusText: response.statusText,
    headers: response.headers,
  });
}

/** Limits each event of a stream to this many bytes and values: it ends with an empty line. */
function bounded(isStream: boolean): TransformStream<Uint8Array, Uint8Array> {
  let size = 0;
  const meter = new JsonMeter(FROM_UPSTREAM);
  return new TransformStream({
    transform: (piece, controller) => {
      size += piece.length;
      if (size > MAX_BYTES) return controller.error(new Error(`an answer of more than ${MAX_BYTES} bytes`));
      const at = isStream ? endOfEventIn(piece) : -1;
      const isBounded = meter.take(at === -1 ? piece : piece.subarray(0, at));
      if (at !== -1) {
        size = piece.length - at;
        meter.restart();
      }
      if (!isBounded || (at !== -1 && !meter.take(piece.subarray(at))))
        return controller.error(new Error('an answer with too many values, or too deep'));
      controller.enqueue(piece);
    },
  });
}

function endOfEventIn(piece: Uint8Array): number {
  for (let at = piece.lastIndexOf(NEWLINE); at > 0; at = piece.lastIndexOf(NEWLINE, at - 1))
    if (piece[at - 1] === NEWLINE || (piece[at - 1] === 0x0d && piece[at - 2] === NEWLINE)) return at;
  return -1;
}

/** `svc hooks run`: hands an event to the gateway, and its answer to the coding agent. */
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isMapping } from '../core/base/mapping.ts';

/** As the gateway takes it. */
const MAX_EVENT_BYTES = 1024 * 1024;
const MAX_ANSWER_BYTES = 4 * MAX_EVENT_BYTES;

export type Question = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly event: Buffer;
  readonly timeoutMs: number;
};

export async function readEvent(input: AsyncIterable<Buffer>): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of input) {
    size += piece.length;
    if (size > MAX_EVENT_BYTES) throw new Error(`the event has more than ${MAX_EVENT_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** The answer, which is a JSON object. Rejects for anything else, with the reason. */
export async function ask(question: Question): Promise<string> {
  const { status, text } = await post(question);
  const answer: unknown = jsonIn(text);
  if (status === 200 && isMapping(answer)) return text;
  const detail = isMapping(answer) && 'detail' in answer ? `: ${String(answer.detail)}` : '';
  throw new Error(`the gateway answered ${status}${detail}`);
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Not `fetch`, which gives up on a held answer after five minutes. */
function post({
  url,
  headers,
  event,
  timeoutMs,
}: Question): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const send = url.startsWith('https:') ? httpsRequest : httpRequest;
    const sent = send(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', 'content-length': event.length },
    });
    const timer = setTimeout(() => sent.destroy(new Error('the gateway did not answer in time')), timeoutMs);
    const fail = (error: Error): void => {
      clearTimeout(timer);
      reject(error);
    };
    sent.on('error', fail);
    sent.on('response', (response) => {
      const pieces: Buffer[] = [];
      let size = 0;
      response.on('data', (piece: Buffer) => {
        size += piece.length;
        if (size > MAX_ANSWER_BYTES) sent.destroy(new Error('the answer of the gateway is too long'));
        else pieces.push(piece);
      });
      response.on('error', fail);
      response.on('end', () => {
        clearTimeout(timer);
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(pieces).toString() });
      });
    });
    sent.end(event);
  });
}

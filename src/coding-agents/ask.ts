/** `svc hooks run`: hands an event to the gateway, and its answer to the coding agent. */
import { Connection, type Gateway, type HttpCall } from '../client/connection.ts';
import { unreachableText } from '../client/faults.ts';
import { mappingIn } from '../core/base/mapping.ts';

/** As the gateway takes it. */
const MAX_EVENT_BYTES = 1024 * 1024;
const MAX_ANSWER_BYTES = 4 * MAX_EVENT_BYTES;

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
export async function ask(gateway: Gateway, call: HttpCall, withinMs: number): Promise<string> {
  const connection = new Connection(gateway);
  try {
    const { status, text } = await connection.ask(call, { withinMs, maxBytes: MAX_ANSWER_BYTES }).catch((error) => {
      throw new Error(unreachableText(gateway.apiUrl, error));
    });
    const answer = mappingIn(text);
    if (status === 200 && answer !== undefined) return text;
    const detail = answer?.detail === undefined ? '' : `: ${String(answer.detail)}`;
    throw new Error(`the gateway answered ${status}${detail}`);
  } finally {
    connection.close();
  }
}

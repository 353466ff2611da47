/** An HTTP server's answer. Not a `Response`: loading fetch takes longer than all else that a short command does. */
import { once } from 'node:events';
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';

export type Answer = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** There is more of it than the caller reads. */
  readonly isCut: boolean;
  /** Given instead of the text, for a caller that reads it piece by piece. */
  readonly body?: IncomingMessage;
};

/** Sends the request, and resolves with the head of the answer. If the connection breaks later, the body fails. */
export async function messageTo(
  request: ClientRequest,
  content: string | Buffer | undefined,
): Promise<IncomingMessage> {
  request.on('error', () => undefined);
  request.end(content);
  const [message] = (await once(request, 'response')) as [IncomingMessage];
  return message;
}

/** Reads the body, but little beyond `maxBytes`. Rejects when the connection breaks before its end. */
export function wholeAnswer(message: IncomingMessage, maxBytes = Infinity): Promise<Answer> {
  const pieces: Buffer[] = [];
  let size = 0;
  const answer = (isCut: boolean): Answer => {
    const text = Buffer.concat(pieces).toString('utf8');
    return { status: statusOf(message), headers: message.headers, text, isCut };
  };
  return new Promise((resolve, reject) => {
    message.on('data', (piece: Buffer) => {
      pieces.push(piece);
      size += piece.length;
      if (size <= maxBytes) return;
      resolve(answer(true));
      message.destroy();
    });
    message.once('end', () => resolve(answer(false)));
    message.on('error', reject);
  });
}

export const unreadAnswer = (message: IncomingMessage): Answer => ({
  status: statusOf(message),
  headers: message.headers,
  text: '',
  isCut: false,
  body: message,
});

export const statusOf = ({ statusCode = 502 }: IncomingMessage): number => statusCode;

/** Gateways of a cluster that do not act by what was answered yet; `database`: it is not written yet. */
export function unconfirmedIn({ headers }: Answer): readonly string[] {
  const names = headers['svc-unconfirmed'];
  return typeof names === 'string' ? names.split(/, */).filter((name) => name !== '') : [];
}

export const isSuccess = ({ status }: Answer): boolean => status >= 200 && status < 300;

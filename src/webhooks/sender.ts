/** Calls a webhook, signed as Standard Webhooks wants it (docs/webhooks.md). */
import { createHmac } from 'node:crypto';
import type { Delivery, Failure } from './delivery.ts';
import { NoAddress, type PostOptions, post, textOf } from './post.ts';

export type Call = {
  readonly url: string;
  readonly secret: string;
  /** The id of the message: the same for each attempt. */
  readonly id: string;
  readonly body: string;
};

export type SenderOptions = PostOptions & { readonly nowMs: () => number };

/** Makes one attempt. Never rejects, and takes no longer than its time-out. */
export async function sendCall(call: Call, options: SenderOptions): Promise<Delivery> {
  try {
    const headers = { 'content-type': 'application/json', ...signatureHeaders(call, options.nowMs()) };
    const { status } = await post({ url: call.url, headers, body: call.body }, options);
    if (status >= 200 && status < 300) return { isDelivered: true };
    const isRedirect = status >= 300 && status < 400;
    return failed(isRedirect ? `answered ${status}; redirects are not followed` : `answered ${status}`);
  } catch (error) {
    if (error instanceof NoAddress) return { ...failed(error.message), shown: NOT_OF_THE_INTERNET };
    return failed(textOf(error));
  }
}

/** The same for a name that does not exist and for one that leads inside: whoever may ask learns no internal names. */
const NOT_OF_THE_INTERNET = 'its name leads to no address of the internet';

const failed = (reason: string): Failure => ({ isDelivered: false, reason });

export function signatureHeaders(
  { secret, id, body }: Pick<Call, 'secret' | 'id' | 'body'>,
  nowMs: number,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(nowMs / 1000));
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatureOf(secret, `${id}.${timestamp}.${body}`),
  };
}

function signatureOf(secret: string, content: string): string {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  return `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
}

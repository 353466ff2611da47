/** Sends entries as calls of HTTP: a message of Standard Webhooks for each batch, or OTLP logs. */
import { createHash } from 'node:crypto';
import { isMapping, mappingIn } from '../../core/base/mapping.ts';
import { rfc3339 } from '../../core/base/time.ts';
import { type PostOptions, post, textOf } from '../../webhooks/post.ts';
import { signatureHeaders } from '../../webhooks/sender.ts';
import { Refused, type SinkEntry, type SinkTarget, type SinkTls } from '../sink.ts';
import { readTls } from '../tls.ts';

export type CallOptions = Pick<PostOptions, 'version' | 'resolve' | 'timeoutMs'>;

type Sink = { readonly url: string; readonly headers: Readonly<Record<string, string>>; readonly tls: SinkTls };

export type HttpSink = Sink & { readonly secret: string | undefined };

/** JSON of an entry in the format of the sink. */
type Render = (entry: SinkEntry) => string;

export function httpTarget({ secret, ...sink }: HttpSink, render: Render, options: CallOptions): SinkTarget {
  const send = async (id: string, body: string): Promise<void> => {
    const signed = secret === undefined ? { 'webhook-id': id } : signatureHeaders({ secret, id, body }, Date.now());
    await call(sink, { headers: signed, body, wantsText: false }, options);
  };
  return {
    rewindMs: 0,
    send: (entries) => {
      const body = `{"type":"audit.entries","timestamp":"${rfc3339(Date.now())}","data":{"entries":[${entries.map(render).join()}]}}`;
      return send(batchId(entries), body);
    },
    test: () => send(`test_${Date.now()}`, `{"type":"audit.test","timestamp":"${rfc3339(Date.now())}","data":{}}`),
  };
}

/** The same for the same entries, so that a receiver may know a batch that it is sent again. */
function batchId(entries: readonly SinkEntry[]): string {
  const [first, last] = [entries[0]!, entries.at(-1)!];
  const digest = createHash('sha256').update(first.line).update(last.line).digest('hex').slice(0, 16);
  return `audit_${first.id}_${last.id}_${digest}`;
}

/** `logsOf`: the body of the request. */
export function otlpTarget(
  sink: Sink,
  logsOf: (entries: readonly SinkEntry[] | 'test') => string,
  options: CallOptions,
): SinkTarget {
  const send = async (entries: readonly SinkEntry[] | 'test'): Promise<void> => {
    const text = await call(sink, { headers: {}, body: logsOf(entries), wantsText: true }, options);
    const rejected = rejectedIn(text);
    if (rejected !== undefined) throw new Refused(`the collector rejected entries: ${rejected}`);
  };
  return { rewindMs: 0, send, test: () => send('test') };
}

/** Why a collector has not taken all of a request that it answered with 200. */
function rejectedIn(text: string): string | undefined {
  const partial = mappingIn(text)?.partialSuccess; // it may answer nothing
  if (!isMapping(partial) || !(Number(partial.rejectedLogRecords) > 0)) return undefined;
  const { rejectedLogRecords: count, errorMessage: message } = partial;
  return `${Number(count)}${typeof message === 'string' && message !== '' ? ` (${message.slice(0, 200)})` : ''}`;
}

type Call = { readonly headers: Readonly<Record<string, string>>; readonly body: string; readonly wantsText: boolean };

/** The operator has chosen where it goes, so it may be in the gateway's network. Rejects unless the answer is 2xx. */
async function call(
  { url, headers, tls }: Sink,
  { headers: own, body, wantsText }: Call,
  options: CallOptions,
): Promise<string> {
  const request = {
    url,
    headers: { ...headers, ...own, 'content-type': 'application/json' },
    body,
    tls: readTls(tls),
    wantsText,
  };
  const answer = await post(request, { ...options, isPrivateAllowed: true }).catch((error: unknown) => {
    throw new Error(textOf(error));
  });
  const { status, retryAfterSecs, text } = answer;
  if (status >= 200 && status < 300) return text;
  const isRedirect = status >= 300 && status < 400;
  throw new Refused(isRedirect ? `answered ${status}; redirects are not followed` : `answered ${status}`, {
    isTooLarge: status === 413,
    ...(retryAfterSecs !== undefined && { retryAfterMs: retryAfterSecs * 1000 }),
  });
}

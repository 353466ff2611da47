import type { MessagePort } from 'node:worker_threads';
import { createResolve } from '../../webhooks/resolve.ts';
import { type Call, sendCall } from '../../webhooks/sender.ts';
import { answerQuestions } from '../thread-link.ts';

/** With the time to sign; undefined: that of the machine. */
export type TimedCall = Call & { readonly atMs: number | undefined };

export type WebhookThreadOptions = { readonly isPrivateAllowed: boolean; readonly version: string };

/** The thread that makes the calls of webhooks: neither their TLS nor a slow receiver takes time from checks. */
export function runWebhookThread(main: MessagePort, options: WebhookThreadOptions): void {
  const resolve = createResolve();
  answerQuestions(main, ({ atMs, ...call }: TimedCall) =>
    sendCall(call, { ...options, resolve, nowMs: () => atMs ?? Date.now() }),
  );
}

import type { MessagePort } from 'node:worker_threads';
import { createResolve } from '../../webhooks/resolve.ts';
import { type Call, sendCall } from '../../webhooks/sender.ts';
import { answerQuestions } from '../thread-link.ts';

export type WebhookThreadOptions = { readonly isPrivateAllowed: boolean; readonly version: string };

/** The thread that makes the calls of webhooks: neither their TLS nor a slow receiver takes time from checks. */
export function runWebhookThread(main: MessagePort, options: WebhookThreadOptions): void {
  const resolve = createResolve();
  answerQuestions(main, (call: Call) => sendCall(call, { ...options, resolve, nowMs: Date.now }));
}

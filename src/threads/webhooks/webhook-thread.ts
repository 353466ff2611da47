import type { MessagePort } from 'node:worker_threads';
import type { Delivery } from '../../webhooks/delivery.ts';
import { createResolve } from '../../webhooks/resolve.ts';
import { type Call, sendCall } from '../../webhooks/sender.ts';

export type WebhookThreadOptions = { readonly isPrivateAllowed: boolean; readonly version: string };
export type WebhookRequest = { readonly number: number; readonly call: Call };
export type WebhookReply = { readonly number: number; readonly delivery: Delivery };

/** The thread that makes the calls of webhooks: neither their TLS nor a slow receiver takes time from checks. */
export function runWebhookThread(main: MessagePort, options: WebhookThreadOptions): void {
  const resolve = createResolve();
  main.on('message', ({ number, call }: WebhookRequest) => {
    void sendCall(call, { ...options, resolve, nowMs: Date.now }).then((delivery) =>
      main.postMessage({ number, delivery } satisfies WebhookReply),
    );
  });
}

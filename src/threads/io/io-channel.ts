import type { MessagePort } from 'node:worker_threads';
import type { AgentIdentity, SecretDigest } from '../../core/base/ids.ts';
import { type Outlet, toThread } from '../batcher.ts';
import { decodeToIo, encodeToMain } from '../codec.ts';
import type { IoNotice, IoToMain, MainToDoors } from '../protocol.ts';
import { HeldAnswers } from './held-answers.ts';

export type IoReceiver = {
  receive(messages: readonly MainToDoors[]): void;
  /** Answers whose entries are recorded. `firstId` is the id of the first of these entries. */
  release(firstId: number, replies: readonly MainToDoors[]): void;
};

/** Connects the doors with the rest of the gateway, in another thread or in this one. */
export type IoChannel = {
  readonly outlet: Outlet<IoToMain>;
  notify(notice: IoNotice): void;
  /** See `Link`: only for doors in the thread that decides. */
  ownerOf?(credential: SecretDigest): AgentIdentity | undefined;
  /** Call it once. */
  deliverTo(receiver: IoReceiver): void;
};

/** For doors in a thread of their own. Answers to what is recorded are held until the counters call it written. */
export function channelOver(main: MessagePort, auditCounters: SharedArrayBuffer): IoChannel {
  return {
    outlet: toThread(main, encodeToMain),
    notify: (notice) => main.postMessage(notice),
    deliverTo: (receiver) => {
      const held = new HeldAnswers({
        counters: auditCounters,
        release: (firstId, replies) => receiver.release(firstId, replies),
      });
      main.on('message', (bytes: Uint8Array) => receiver.receive(held.take(decodeToIo(bytes))));
    },
  };
}

import type { MessagePort } from 'node:worker_threads';
import { type Outlet, toThread } from '../batcher.ts';
import { decodeRelease, decodeToIo, encodeToMain } from '../codec.ts';
import type { IoNotice, IoToMain, MainToIo } from '../protocol.ts';

export type IoReceiver = {
  receive(messages: readonly MainToIo[]): void;
  /** Answers whose entries are recorded. `firstId` is the id of the first of these entries. */
  release(firstId: number, replies: readonly MainToIo[]): void;
};

/** What connects the doors with the rest of the gateway, in another thread or in this one. */
export type IoChannel = {
  readonly outlet: Outlet<IoToMain>;
  notify(notice: IoNotice): void;
  /** Call it once. */
  deliverTo(receiver: IoReceiver): void;
};

/** For doors in a thread of their own: commands go to the main thread, and answers come from it or the audit thread. */
export function channelOver(main: MessagePort, audit: MessagePort): IoChannel {
  return {
    outlet: toThread(main, encodeToMain),
    notify: (notice) => main.postMessage(notice),
    deliverTo: (receiver) => {
      const listenTo = (port: MessagePort): void => {
        port.on('message', (bytes: Uint8Array) => {
          const { firstId, replies } = decodeRelease(bytes);
          receiver.release(firstId, decodeToIo(replies));
        });
      };
      listenTo(audit);
      main.on('message', (message: Uint8Array | MessagePort) => {
        if (message instanceof Uint8Array) receiver.receive(decodeToIo(message));
        else listenTo(message); // a new audit thread, in place of one that died
      });
    },
  };
}

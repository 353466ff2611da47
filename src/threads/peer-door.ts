import { withinThread } from './batcher.ts';
import type { IoChannel, IoReceiver } from './io/io-channel.ts';
import { IoLink, type Notification } from './io/io-link.ts';
import type { IoThreads } from './main/io-threads.ts';
import type { Switchboard } from './main/switchboard.ts';
import { PEERS } from './protocol.ts';

export type PeerDoorOptions = {
  readonly threads: IoThreads;
  readonly switchboard: Pick<Switchboard, 'receive'>;
  readonly maxPending: number;
  readonly onMessage: (message: Notification) => void;
};

/**
 * The other gateways of a cluster, as one more I/O thread: what they send is decided, recorded and answered as what
 * comes through any door.
 */
export function openPeerDoor({ threads, switchboard, maxPending, onMessage }: PeerDoorOptions): IoLink {
  let receiver: IoReceiver | undefined;
  const channel: IoChannel = {
    outlet: withinThread((messages) => switchboard.receive(PEERS, messages)),
    notify: () => undefined,
    deliverTo: (given) => {
      receiver = given;
    },
  };
  threads.connectDoors(
    PEERS,
    withinThread((messages) => receiver?.receive(messages)),
    (firstId, replies) => receiver?.release(firstId, replies),
  );
  const link: IoLink = new IoLink(channel, {
    maxPending,
    onMessage: (message) =>
      message.type === 'confirm' ? link.notify({ type: 'confirmed', number: message.number }) : onMessage(message),
  });
  return link;
}

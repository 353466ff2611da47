import { existsSync, readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { fileURLToPath } from 'node:url';
import { withinThread } from './batcher.ts';
import type { IoChannel, IoReceiver } from './io/io-channel.ts';
import type { IoThreads } from './main/io-threads.ts';
import type { Switchboard } from './main/switchboard.ts';
import type { IoId, IoNotice, LocalStart } from './protocol.ts';

export type LocalDoorsOptions = {
  /** In place of the id of an I/O thread. */
  readonly io: IoId;
  readonly threads: IoThreads;
  readonly switchboard: Switchboard;
  readonly start: LocalStart;
  readonly onNotice: (notice: IoNotice) => void;
};

/** Doors in the main thread. */
export type LocalDoors = { close(): void };

/**
 * Opens the doors in the main thread, for machines with few cores: there, waking two other threads costs more than all
 * else that a check needs. Requests and answers still go through the switchboard in batches, but nothing is encoded.
 * Rejects where an address is taken.
 */
export async function openLocalDoors(options: LocalDoorsOptions): Promise<LocalDoors> {
  const { io, threads, switchboard, start, onNotice } = options;
  // Loaded only here: otherwise the main thread needs no protocol.
  const { openDoorsHere } = await import('./io/io-thread.ts');
  let isOpen = true;
  let receiver: IoReceiver | undefined;
  const channel: IoChannel = {
    outlet: withinThread((messages) => {
      // Requests of doors that were closed for a defect would be answered to nobody.
      if (isOpen) switchboard.receive(io, messages);
    }),
    notify: onNotice,
    ownerOf: (credential) => (isOpen ? switchboard.ownerOf(credential) : undefined),
    deliverTo: (given) => {
      receiver = given;
    },
  };
  threads.connectDoors(
    io,
    withinThread((messages) => receiver?.receive(messages)),
    (firstId, replies) => receiver?.release(firstId, replies),
  );
  const disconnect = (): void => {
    if (isOpen) switchboard.disconnect(io);
    isOpen = false;
  };
  try {
    const closeDoors = await openDoorsHere(channel, start);
    return {
      close: () => {
        disconnect();
        closeDoors();
      },
    };
  } catch (error) {
    disconnect();
    throw error;
  }
}

/** The gateway's code, as stacks name it: with its URL or, below a library, its path. */
const ROOTS = [new URL('..', import.meta.url).href, fileURLToPath(new URL('..', import.meta.url))];
const OF_DOORS = /^(?:doors|threads\/io)\//;

/**
 * Whether an exception that nobody caught came from the doors: from their code, or from that of Node.js and the
 * libraries. Library code without a frame of ours on the stack belongs to a connection.
 */
export function isOfDoors(error: unknown): boolean {
  const frames = (error instanceof Error ? (error.stack ?? '') : '').split('\n').filter((line) => /^\s+at /.test(line));
  const own = frames.flatMap((frame) => placeIn(frame) ?? [])[0];
  return own === undefined || OF_DOORS.test(own);
}

/** The path of the frame's source below the root; undefined where it is not the gateway's. */
function placeIn(frame: string): string | undefined {
  const root = ROOTS.find((each) => frame.includes(each));
  if (root === undefined) return undefined;
  const place = frame.slice(frame.indexOf(root) + root.length);
  const source = sourceOf(place);
  if (source === undefined) return place;
  return source.includes('/node_modules/') ? undefined : source.slice(source.lastIndexOf('/src/') + '/src/'.length);
}

/** Looks up a place of a bundle in its source map, since bundles hold the code of many files; undefined without one. */
function sourceOf(place: string): string | undefined {
  const [, file = '', line, column] = /^([^:]+):(\d+):(\d+)/.exec(place) ?? [];
  const map = `${ROOTS[1]}${file}.map`;
  if (!existsSync(map)) return undefined;
  const entry = new SourceMap(JSON.parse(readFileSync(map, 'utf8')) as SourceMapPayload).findEntry(
    Number(line) - 1,
    Number(column) - 1,
  );
  return 'originalSource' in entry ? entry.originalSource : undefined;
}

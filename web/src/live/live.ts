/** The live state of this page: the operations, and notices that something else has changed. */
import { signal } from '@preact/signals';
import { nowMs } from '../base/clock.ts';
import type { Frame } from './frame.ts';
import { type LiveStatus, LiveStream } from './live-stream.ts';
import { OpsModel } from './ops-model.ts';

export const model = new OpsModel();
export const status = signal<LiveStatus>('connecting');
/** Grows when the operations have changed, at most ten times a second. */
export const opsVersion = signal(0);
/** Grows when the stream is open again: what is read on request may have changed meanwhile. */
export const connections = signal(0);
/** Grows every second, for what shows how long ago something was. */
export const seconds = signal(0);

const REFRESH_MS = 100;

let stream: LiveStream | undefined;
let clock: ReturnType<typeof setInterval> | undefined;
let isDue = false;
const listeners = new Set<(frame: Frame) => void>();

/** Calls the listener for every frame that is not about an operation; returns how to stop that. */
export function onEvent(listener: (frame: Frame) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** However often the operations change meanwhile, what shows them is drawn once. */
export function opsChanged(): void {
  if (isDue) return;
  isDue = true;
  setTimeout(() => {
    isDue = false;
    opsVersion.value += 1;
  }, REFRESH_MS);
}

export function startLive(): void {
  stopLive();
  model.clear();
  stream = new LiveStream({
    onOpen: (snapshot) => {
      model.begin(snapshot, nowMs());
      opsChanged();
    },
    onFrame: (frame) => {
      if (frame.event_type === 'ops_change') {
        model.apply(frame, nowMs());
        opsChanged();
      } else for (const listener of listeners) listener(frame);
    },
    onStatus: (now) => {
      status.value = now;
      if (now === 'live') connections.value += 1;
      opsChanged();
    },
  });
  stream.start();
  clock = setInterval(() => {
    model.expire(nowMs());
    seconds.value += 1;
  }, 1_000);
}

export function stopLive(): void {
  stream?.stop();
  stream = undefined;
  clearInterval(clock);
  status.value = 'connecting';
  model.clear();
}

export const retryNow = (): void => stream?.retry();

/** Whether what is here is how it is now, still on its way, or known at all. */
export type Knowledge = { readonly isLive: boolean; readonly isReading: boolean; readonly isKnown: boolean };

export function knowledgeOfOps(): Knowledge {
  const isLive = status.value === 'live';
  const isReading = isLive ? model.isFilling(nowMs()) : status.value === 'connecting' && model.size === 0;
  return { isLive, isReading, isKnown: isLive ? !isReading : model.size > 0 };
}

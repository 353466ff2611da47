import { createHmac, timingSafeEqual } from 'node:crypto';
import { mappingIn } from '../core/base/mapping.ts';
import type { ClusterMessage, RunId } from '../ports/cluster.ts';

export type FramesOptions = {
  readonly self: RunId;
  /** All gateways have the same one. A frame that was not made with it is dropped. */
  readonly secret: string;
};

/**
 * `f`: from which run; `n`: its number on this channel; `m`: messages, or `p`: a part of one, which is the last if `e`.
 */
type Frame = {
  readonly f: RunId;
  readonly n: number;
  readonly m?: readonly ClusterMessage[];
  readonly p?: string;
  readonly e?: boolean;
};

type Received = { last: number; parts: string; isSettled: boolean };

/** A message as JSON, and where it goes. */
export type Outgoing = { readonly channel: string; readonly text: string };
type Packed = { readonly channel: string; readonly payload: string };

/** A verified frame of another gateway. `isGap`: frames before it did not arrive. */
export type Opened = {
  readonly from: RunId;
  readonly messages: readonly ClusterMessage[];
  readonly isGap: boolean;
};

/** Messages are cut into frames. Larger ones are refused. */
export const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;
/** Limits messages that wait for a slow bus. */
export const MAX_WAITING_BYTES = 16 * 1024 * 1024;
/** Limits the bytes of a frame besides its text. */
export const FRAME_BYTES = 300;
const MAC_LENGTH = 22;

/**
 * Frames of a bus: signed, so that only gateways of this cluster are heard, and numbered by sender and channel, so that
 * losses are noticed and repeats dropped.
 */
export class Frames {
  readonly #options: FramesOptions;
  readonly #sent = new Map<string, number>();
  readonly #received = new Map<string, Received>();

  constructor(options: FramesOptions) {
    this.#options = options;
  }

  /** With `maxTextBytes` of messages in each at most; in the order of the messages on each channel. */
  pack(waiting: readonly Outgoing[], maxTextBytes: number): readonly Packed[] {
    const byChannel = new Map<string, string[]>();
    for (const { channel, text } of waiting) {
      const texts = byChannel.get(channel);
      if (texts === undefined) byChannel.set(channel, [text]);
      else texts.push(text);
    }
    return [...byChannel].flatMap(([channel, texts]) =>
      this.#packedFor(channel, texts, maxTextBytes).map((payload) => ({ channel, payload })),
    );
  }

  /** Makes a frame without messages. Its number tells others that they have missed earlier ones. */
  empty(channel: string): string {
    return this.#framed(channel, '"m":[]');
  }

  /** Undefined: not of another gateway of this cluster, or not for the first time. */
  open(channel: string, payload: string): Opened | undefined {
    const mac = payload.slice(0, MAC_LENGTH);
    const text = payload.slice(MAC_LENGTH);
    const expected = Buffer.from(this.#macOf(channel, text));
    const given = Buffer.from(mac);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    const frame = JSON.parse(text) as Frame;
    if (frame.f === this.#options.self) return undefined;
    const key = `${channel} ${frame.f}`;
    const known = this.#received.get(key);
    if (known !== undefined && frame.n <= known.last) return undefined;
    // The first frame received of a run may not be its first: what came before was read with the tables.
    const isGap = known?.isSettled === true && frame.n !== known.last + 1;
    const received = known ?? { last: 0, parts: '', isSettled: true };
    if (frame.n !== received.last + 1) received.parts = '';
    received.last = frame.n;
    received.isSettled = true;
    this.#received.set(key, received);
    return { from: frame.f, messages: messagesOf(frame, received), isGap };
  }

  /** All may be missing that was sent until now: what copies there are is read again, so the next jump is none. */
  forgiveGaps(): void {
    for (const received of this.#received.values()) received.isSettled = false;
  }

  #packedFor(channel: string, texts: readonly string[], maxTextBytes: number): readonly string[] {
    const frames: string[] = [];
    let group: string[] = [];
    let bytes = 0;
    const end = (): void => {
      if (group.length > 0) frames.push(this.#framed(channel, `"m":[${group.join()}]`));
      group = [];
      bytes = 0;
    };
    for (const text of texts) {
      const length = Buffer.byteLength(text) + 1;
      if (bytes + length > maxTextBytes) end();
      if (length > maxTextBytes) {
        const parts = partsOf(text, maxTextBytes);
        for (const [at, part] of parts.entries())
          frames.push(this.#framed(channel, `"p":${JSON.stringify(part)},"e":${at === parts.length - 1}`));
        continue;
      }
      group.push(text);
      bytes += length;
    }
    end();
    return frames;
  }

  #framed(channel: string, content: string): string {
    const number = (this.#sent.get(channel) ?? 0) + 1;
    this.#sent.set(channel, number);
    const frame = `{"f":"${this.#options.self}","n":${number},${content}}`;
    return this.#macOf(channel, frame) + frame;
  }

  #macOf(channel: string, frame: string): string {
    return createHmac('sha256', this.#options.secret)
      .update(`${channel} ${frame}`)
      .digest('base64url')
      .slice(0, MAC_LENGTH);
  }
}

function messagesOf({ m, p, e }: Frame, received: Received): readonly ClusterMessage[] {
  if (p === undefined) return m ?? [];
  received.parts += p;
  if (e !== true) return [];
  // Undefined for what is left of a message whose beginning was missed.
  const whole = mappingIn(received.parts) as ClusterMessage | undefined;
  received.parts = '';
  return whole === undefined ? [] : [whole];
}

/** Cut between characters: what JSON makes of half a surrogate pair would not fit together again. */
function partsOf(text: string, maxBytes: number): readonly string[] {
  const parts: string[] = [];
  let part = '';
  let bytes = 0;
  for (const character of text) {
    const length = Buffer.byteLength(JSON.stringify(character)) - 2;
    if (bytes + length > maxBytes) {
      parts.push(part);
      part = '';
      bytes = 0;
    }
    part += character;
    bytes += length;
  }
  return [...parts, part];
}

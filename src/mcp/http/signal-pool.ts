/** Keeps a channel of signals for each credential in use, shared by its sessions. */

import type { Credential } from '../../client/calls.ts';
import type { GatewayAddress } from '../../client/environment.ts';
import { Signals } from '../signals.ts';
import { bindingOf } from './identity.ts';

/** Channels that are open at once; sessions beyond it ask for the state of what they run. */
const MAX_CHANNELS = 100;

type Channel = { readonly signals: Signals; sessions: number };
/** `release`: once the session has ended. */
export type Lease = { readonly signals: Signals; release(): Promise<void> };

export class SignalPool {
  readonly #grpc: GatewayAddress['grpc'];
  readonly #channels = new Map<string, Channel>();

  constructor(grpc: GatewayAddress['grpc']) {
    this.#grpc = grpc;
  }

  get size(): number {
    return this.#channels.size;
  }

  of(credential: Credential): Lease {
    const key = bindingOf(credential);
    const channel = this.#channels.get(key) ?? this.#open(key, credential);
    if (channel === undefined) return { signals: new Signals(credential, undefined), release: () => Promise.resolve() };
    channel.sessions += 1;
    return {
      signals: channel.signals,
      release: async () => {
        channel.sessions -= 1;
        if (channel.sessions > 0) return;
        this.#channels.delete(key);
        await channel.signals.close();
      },
    };
  }

  /** Undefined where there is no place. */
  #open(key: string, credential: Credential): Channel | undefined {
    if (this.#channels.size >= MAX_CHANNELS) return undefined;
    const channel = { signals: new Signals(credential, this.#grpc), sessions: 0 };
    this.#channels.set(key, channel);
    return channel;
  }
}

/** One channel of signals for each credential that is in use, shared by its sessions. */
import type { GatewayAddress } from '../environment.ts';
import type { Credential } from '../gateway-calls.ts';
import { Signals } from '../signals.ts';
import { bindingOf } from './identity.ts';

/** Channels that are open at once; sessions beyond it ask for the state of what they run. */
const MAX_CHANNELS = 100;

export class SignalPool {
  readonly #grpc: GatewayAddress['grpc'];
  readonly #channels = new Map<string, Signals>();

  constructor(grpc: GatewayAddress['grpc']) {
    this.#grpc = grpc;
  }

  of(credential: Credential): Signals {
    const key = bindingOf(credential);
    const known = this.#channels.get(key);
    if (known !== undefined) return known;
    const isRoom = this.#channels.size < MAX_CHANNELS;
    const signals = new Signals(credential, isRoom ? this.#grpc : undefined);
    if (isRoom) this.#channels.set(key, signals);
    return signals;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#channels.values()].map((signals) => signals.close()));
  }
}

/**
 * Operators' signals to the calls that are running: pushed over gRPC by the SDK where it can connect, asked for where
 * it cannot. The one file that imports the SDK.
 */
import { type AgentClient, createAgentClient, type Signal } from 'svc-gateway-sdk';
import type { Credential } from '../client/calls.ts';

export type OnSignal = (signal: Signal) => void;

export class Signals {
  readonly #watched = new Map<string, OnSignal>();
  readonly #client: AgentClient | undefined;

  /** `grpc` is `host:port`; undefined, or a credential that is no agent's own: nothing is pushed. */
  constructor(credential: Credential, grpc: { readonly address: string; readonly tls: boolean } | undefined) {
    if (grpc === undefined || credential.kind !== 'token') return;
    this.#client = createAgentClient({
      address: grpc.address,
      agent: credential.agent,
      credentialToken: credential.secret,
      ...(grpc.tls ? { tls: {} } : {}),
      deadlines: { closeMs: 0 },
      onSignal: ({ opId, signal }) => {
        const notify = this.#watched.get(opId);
        notify?.(signal);
        // Signals for other processes of this agent are theirs to acknowledge.
        return notify !== undefined;
      },
      // Without it, calls ask for the state of their operation instead.
      onWarning: () => {},
    });
  }

  /** Whether signals come by themselves. */
  get isPushed(): boolean {
    return this.#client?.state === 'connected';
  }

  watch(opId: string, notify: OnSignal): void {
    this.#watched.set(opId, notify);
  }

  unwatch(opId: string): void {
    this.#watched.delete(opId);
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }
}

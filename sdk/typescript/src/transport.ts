/** The way to the gateway, as the rest of the client sees it: over gRPC, or over HTTP with `fetch`. */
import type { GatewayError } from './errors.ts';
import type { CheckMessage, MethodName, Methods, SignalReply, StreamCheckReply } from './schema.ts';
import type { AgentId } from './types.ts';

type StreamEvents<Reply> = {
  on(event: 'data', listener: (reply: Reply) => void): unknown;
  on(event: 'error', listener: (error: GatewayError) => void): unknown;
  on(event: 'metadata' | 'end', listener: () => void): unknown;
};

/** Checks on one stream. `ask` sends one, and returns false if it is larger than the gateway takes. */
export type CheckCall = StreamEvents<StreamCheckReply> & { ask(message: CheckMessage): boolean };
export type ControlCall = StreamEvents<SignalReply>;

export type Transport = {
  /** Rejects with a GatewayError. `timeoutMs` is the longest it takes. */
  call<N extends MethodName>(
    name: N,
    request: Methods[N]['request'],
    timeoutMs: number,
    bearer?: string,
  ): Promise<Methods[N]['response']>;
  /** Resolves when there is a connection, or else after the time, or at `close`. */
  whenConnected(timeoutMs: number): Promise<void>;
  /** Undefined: each check is a call of its own. */
  openChecks(): CheckCall | undefined;
  /** Absent: operators' signals are not sent, and have to be asked for. */
  openControl?(request: { readonly agent: AgentId; readonly credentialToken: string }): ControlCall;
  /** Cuts what is still in flight. */
  close(): void;
};

/**
 * A proxy may say it as a date, or as no time at all. No timer takes a time of more digits: it would be over at once.
 */
export const retryAfterMsIn = (text: string): number => (/^\d{1,6}$/.test(text) ? Number(text) * 1000 : 0);

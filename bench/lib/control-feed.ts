/** The stream of an agent on which operators' signals reach it, as bytes and over a connection of its own. */
import { Client, credentials } from '@grpc/grpc-js';
import { binaryCodec } from '../../src/doors/proto/binary.ts';
import type { OpControlStreamRequest } from '../../src/doors/proto/messages.ts';
import type { AGENT } from './subject.ts';

export type ControlFeed = {
  /** The gateway listens for this agent. */
  readonly opened: Promise<unknown>;
  close(): void;
};

export function openControlFeed(
  address: string,
  agent: typeof AGENT,
  credentialToken: string,
  onSignal: (bytes: Buffer) => void,
): ControlFeed {
  const client = new Client(address, credentials.createInsecure());
  const { encode } = binaryCodec('OpControlStreamRequest');
  const signals = client.makeServerStreamRequest<OpControlStreamRequest, Buffer>(
    '/svc.governance.v1.AgentService/OpControlStream',
    (request) => encode(request) as Buffer,
    (bytes) => bytes,
    { agent, credentialToken, resumeAfter: undefined },
  );
  signals.on('data', onSignal);
  const opened = new Promise((resolve, reject) => {
    // An error after it was open: the gateway stops.
    signals.once('metadata', resolve).on('error', reject);
  });
  opened.catch(() => undefined);
  return { opened, close: () => client.close() };
}

/** Clients over gRPC or over HTTP, by their options. */
import { type AgentClient, connectedAgent } from './client.ts';
import { FetchTransport } from './fetch-transport.ts';
import { GrpcTransport } from './grpc-transport.ts';
import { type AgentClientOptions, settingsOf } from './options.ts';

/**
 * Connects an agent to its gateway.
 *
 *     const agent = createAgentClient({
 *       address: '127.0.0.1:50051',
 *       agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler-1' },
 *       apiKey: process.env.SVC_API_KEY ?? '',
 *     });
 *
 * Returns at once, connects in the background, and reconnects whenever the connection is lost. Throws a TypeError that
 * names the wrong option.
 */
export const createAgentClient = (options: AgentClientOptions = {}): AgentClient =>
  connectedAgent(settingsOf(options), ({ target }, onUnconfirmed) =>
    target.kind === 'grpc'
      ? new GrpcTransport(target.address, target.tls, onUnconfirmed)
      : new FetchTransport(target.url, target.fetch, onUnconfirmed),
  );

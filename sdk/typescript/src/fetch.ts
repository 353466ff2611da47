/**
 * The agent SDK over HTTP alone: `import { createAgentClient } from 'svc-gateway-sdk/fetch'`. It needs `fetch` and no
 * module of Node.js, and so runs in Deno, Bun, at the edge and in serverless functions.
 *
 *     const agent = createAgentClient({ url: 'https://gateway.example', agent: 'acme/search/crawler-1', credentialToken
 * });
 *     const search = agent.guard('web_search', async ({ query }) => fetchResults(query));
 */
import { type AgentClient, connectedAgent } from './client.ts';
import { FetchTransport } from './fetch-transport.ts';
import { type AgentClientOptions, settingsOf } from './options.ts';

/** As that of `svc-gateway-sdk`, with a `url`; throws a TypeError for an `address`, which is that of gRPC. */
export const createAgentClient = (options: AgentClientOptions = {}): AgentClient =>
  connectedAgent(settingsOf(options), ({ target }, onUnconfirmed) => {
    if (target.kind === 'grpc')
      throw new TypeError('address is that of gRPC: set url, or use createAgentClient of svc-gateway-sdk');
    return new FetchTransport(target.url, target.fetch, onUnconfirmed);
  });

export type { AgentClient } from './client.ts';
export {
  ActionDeniedError,
  ApprovalPendingError,
  ClientClosedError,
  GatewayError,
  type GatewayErrorCode,
  OpTerminatedError,
  UnconfirmedWarning,
} from './errors.ts';
export type { Fetch } from './fetch-transport.ts';
export type { GuardOptions } from './guard.ts';
export type { Op } from './op.ts';
export type { AgentClientOptions, AgentCredential, AgentName, Deadlines, TlsOptions } from './options.ts';
export type {
  Action,
  AgentId,
  Approval,
  ApprovalState,
  CheckAnswer,
  CheckRequest,
  ClientState,
  Completion,
  Decision,
  Denial,
  DenialCause,
  JsonObject,
  JsonValue,
  Notice,
  Obligation,
  ObligationType,
  OpSignal,
  OpState,
  OwnUsage,
  RunOptions,
  Signal,
  TokenUsage,
  Usage,
  UsageAnswer,
} from './types.ts';
export type { CallOptions } from './waiters.ts';

/**
 * The agent SDK: `import { createAgentClient } from 'svc-gateway-sdk'`.
 *
 *     const agent = createAgentClient({ address: '127.0.0.1:50051', agent: { orgId: 'acme', teamId: 'search', agentId:
 * 'crawler-1' }, apiKey });
 *     await agent.run({ action: 'tool.call', resource: 'web_search' }, async (op) => {
 *       for (const query of queries) {
 *         await op.checkpoint(); // waits while an operator has paused it, throws when one has terminated it
 *         await search(query, { signal: op.signal });
 *       }
 *     });
 *     await agent.close();
 */
export type { AgentClient } from './client.ts';
export { createAgentClient } from './create.ts';
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

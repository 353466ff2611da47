/** The rest of the gateway, as the doors see it: answers at once, and remembers what it was asked. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { AgentIdentity, OpId } from '../../src/core/base/ids.ts';
import { fail, ok } from '../../src/core/base/result.ts';
import type { Command, CommandType, Replies, UsageAnswer } from '../../src/core/commands.ts';
import type { SignalMessage } from '../../src/core/ops/op-view.ts';
import { digestOf } from '../../src/credentials/secret-token.ts';
import { ControlSwitch } from '../../src/doors/rpc/control-switch.ts';
import type { WirePorts } from '../../src/doors/rpc/ports.ts';
import { LargeBatches } from '../../src/fairness/large-batches.ts';
import type { Recorded } from '../../src/use-cases/use-cases.ts';

export const WRITE_KEY = 'svc_write-key';
export const READ_KEY = 'svc_read-key';
export const TOKEN = 'agt_0123456789abcdef0123456789abcdef';
/** The one agent that is registered. */
export const AGENT: AgentIdentity = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const TOKEN_DIGEST = digestOf(TOKEN);

export type FakeGateway = WirePorts & {
  /** All but whether a credential is an agent's: it is, if it is the right one. */
  readonly asked: Command[];
  readonly control: ControlSwitch;
  /** Whose requests were counted, in their order. */
  readonly counted: string[];
  /** Whether the next one is one too many. */
  isOverLimit: boolean;
  /** Requests of everybody that wait. */
  pending: number;
  /** Overrides the answer to the next commands. */
  answer:
    | ((command: Command) => Recorded<Replies[CommandType]> | Promise<Recorded<Replies[CommandType]>> | undefined)
    | undefined;
};

export function fakeGateway(): FakeGateway {
  const gateway: FakeGateway = {
    asked: [],
    control: new ControlSwitch(() => undefined),
    answer: undefined,
    counted: [],
    isOverLimit: false,
    pending: 0,
    link: {
      get pending() {
        return gateway.pending;
      },
      ask: (async (command: Command) => {
        if (command.type === 'find-agent')
          return { reply: ok({ agent: command.credential === TOKEN_DIGEST ? AGENT : undefined }), auditId: undefined };
        if (command.type === 'recognize-agent')
          return { reply: ok({ isIts: command.credential === TOKEN_DIGEST }), auditId: undefined };
        gateway.asked.push(command);
        return (await gateway.answer?.(command)) ?? usual(command);
      }) as WirePorts['link']['ask'],
      call: (async (_name: 'takePermit', { key }: { key: string }) => {
        gateway.counted.push(key);
        return gateway.isOverLimit ? fail({ kind: 'rate_limited', retryAfterSecs: 3, limit: 20 }) : ok(undefined);
      }) as WirePorts['link']['call'],
    },
    largeBatches: new LargeBatches(),
    authenticate: async (bearer) => {
      if (bearer === WRITE_KEY) return ok({ subject: 'key:w', scopes: ['read', 'write'], orgId: null });
      if (bearer === READ_KEY) return ok({ subject: 'key:r', scopes: ['read'], orgId: null });
      return fail({ kind: 'unauthenticated', detail: 'the key is unknown or revoked' });
    },
  };
  return gateway;
}

const WITHIN: UsageAnswer = { status: 'ok' };
const EXCEEDED: UsageAnswer = { status: 'limit_exceeded', tier: 'team', period: 'daily' };
const PENDING: readonly SignalMessage[] = [
  { opId: 't:1' as OpId, signal: 'pause', sequence: 1 },
  { opId: 't:2' as OpId, signal: 'terminate', sequence: 3 },
];

function usual(command: Command): Recorded<Replies[CommandType]> {
  switch (command.type) {
    case 'check': {
      const isAllowed = command.action === 'tool.call';
      const reply = ok({
        decision: isAllowed ? 'allow' : 'deny',
        reason: isAllowed ? 'web tools only' : 'no policy allows it',
        policy: isAllowed ? 'search-team' : undefined,
        ruleId: isAllowed ? 'web-only' : undefined,
        cause: isAllowed ? undefined : 'no_rule',
        exceeded: undefined,
        opState: isAllowed ? 'running' : 'terminated',
      } as const);
      return { reply, auditId: 7 };
    }
    case 'complete-op':
      return { reply: ok({ ...record(command.opId), state: 'completing' } as never), auditId: 8 };
    case 'register-agent':
      return {
        reply: ok({
          agent: { identity: command.agent, parent: undefined, registeredAtMs: 1, lastSeenMs: undefined, activeOps: 0 },
          rotated: false,
        }),
        auditId: 9,
      };
    case 'deregister-agent':
      return { reply: fail({ kind: 'not_found', what: 'agent acme/search/nobody' }), auditId: undefined };
    case 'record-usage':
      return { reply: ok(command.costMicroUsd > 5_000_000 ? EXCEEDED : WITHIN), auditId: undefined };
    case 'open-control':
      return { reply: ok({ pending: PENDING }), auditId: undefined };
    case 'ack-signal':
      return { reply: ok(undefined), auditId: undefined };
    default:
      throw new Error(`not asked by this door: ${command.type}`);
  }
}

const record = (opId: OpId) => ({
  opId,
  agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
  registeredAtMs: 1,
  updatedAtMs: 2,
  acknowledgedAtMs: undefined,
});

/** Polls until the condition holds; fails after half a minute. */
export async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error('the condition did not come true within half a minute');
    await sleep(5);
  }
}

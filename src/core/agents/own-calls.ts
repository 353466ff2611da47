import type { OpId } from '../base/ids.ts';
import { assertNever, fail, ok, type Result } from '../base/result.ts';
import type { CommandOf } from '../commands.ts';
import type { Effect } from '../effects.ts';
import type { Fault } from '../fault.ts';
import { noOp } from '../ops/find.ts';
import type { OpSlot, OpsRegistry } from '../ops/ops.ts';
import { unchanged } from '../outcome.ts';
import type { AgentEntry } from './agent-entry.ts';
import type { AgentRegistry } from './agents.ts';
import { effectsOfImpersonation, identify, type Speaker } from './identify.ts';
import { REFUSAL } from './refusal.ts';

/** The calls other than checks that an agent makes for itself, and the names of their gRPC methods. */
const METHOD_OF = {
  'complete-op': 'CompleteOp',
  'record-usage': 'RecordUsage',
  'open-control': 'OpControlStream',
  'ack-signal': 'AckOpControl',
  'own-approval': 'WaitApproval',
  'cancel-own-approval': 'CancelApproval',
} as const;
type OwnCall = CommandOf<keyof typeof METHOD_OF>;

type Refusal = { readonly reply: Result<never, Fault>; readonly effects: readonly Effect[] };

/** The agent that such a call speaks for. Unlike a check, the call is refused with an error. */
export function speakerOf(agents: AgentRegistry, command: OwnCall, nowMs: number): Speaker | Refusal {
  const identified = identify(agents, command.agent, command);
  switch (identified.kind) {
    case 'agent':
      if (command.credential !== undefined) agents.touch(identified.entry, nowMs);
      return identified;
    case 'org-out-of-reach':
      return unchanged(fail({ kind: 'org_forbidden', orgId: command.agent.orgId }));
    case 'no-credential':
    case 'unknown-credential':
      return unchanged(fail({ kind: 'unauthenticated', detail: REFUSAL[identified.kind] }));
    case 'impersonation': {
      const { owner } = identified;
      const action = METHOD_OF[command.type];
      const opId = 'opId' in command ? command.opId : undefined;
      return {
        reply: fail({ kind: 'impersonation' }),
        effects: effectsOfImpersonation({ owner, claimed: command.agent, action, opId, payload: { method: action } }),
      };
    }
    default:
      return assertNever(identified);
  }
}

export function ownedBy(ops: OpsRegistry, entry: AgentEntry, opId: OpId): Result<OpSlot, Fault> {
  // To another org's agent the operation does not exist.
  const slot = ops.find(opId, entry.identity.orgId);
  if (slot === undefined) return noOp(opId);
  return ops.ownerOf(slot) === entry ? ok(slot) : fail({ kind: 'not_owner', opId });
}

/** The operations, halts and limits as approvals see them. */
import type { AgentRegistry } from '../agents/agents.ts';
import { type AgentIdentity, agentKeyOf, type OpId } from '../base/ids.ts';
import type { Effect } from '../effects.ts';
import type { HaltRegistry } from '../halts/halts.ts';
import { keptKey } from '../limits/keys.ts';
import type { LimitTracker } from '../limits/limits.ts';
import type { OpEnd } from '../ops/op-state.ts';
import type { OpSlot, OpsRegistry } from '../ops/ops.ts';
import type { Undo } from '../rollback.ts';
import type { ApprovalRegistry, ApprovalTurns } from './approvals.ts';
import type { ApprovalContext } from './steps.ts';

type Registries = {
  readonly agents: AgentRegistry;
  readonly ops: OpsRegistry;
  readonly halts: HaltRegistry;
  readonly approvals: ApprovalRegistry;
  readonly limits: LimitTracker;
};

type How = { readonly end: OpEnd; readonly reason: string; readonly actor: string };
type Ended = { readonly effects: readonly Effect[]; readonly undo?: Undo };

/** The operation of this id that waits, if it is the agent's. */
function pendingOf({ ops }: Pick<Registries, 'ops'>, agent: AgentIdentity, opId: OpId): OpSlot | undefined {
  const slot = ops.find(opId, agent.orgId);
  if (slot === undefined || ops.stateOf(slot) !== 'pending') return undefined;
  return ops.ownerOf(slot).key === agentKeyOf(agent) ? slot : undefined;
}

/** `terminate`: ends an operation. */
export function approvalContextOf(
  registries: Registries,
  turnsOf: () => ApprovalTurns | undefined,
  terminate: (slot: OpSlot, how: How, nowMs: number) => Ended,
): ApprovalContext {
  const { agents, ops, halts, approvals, limits } = registries;
  return {
    approvals,
    turnsOf,
    mayWait: (agent, opId) =>
      ops.find(opId, agent.orgId) === undefined || pendingOf(registries, agent, opId) !== undefined,
    dropPending: (agent, opId) => {
      const slot = pendingOf(registries, agent, opId);
      if (slot === undefined) return;
      const owner = ops.ownerOf(slot);
      ops.withdraw(slot);
      agents.dropIfUnused(owner);
    },
    haltOf: (agent, action) => halts.covering(agents.lookUp(agent), action),
    haltById: (id) => halts.get(id),
    reaches: (haltId, agent, action) => halts.reaches(haltId, agents.lookUp(agent), (isCovered) => isCovered(action)),
    endOp: (agent, opId, how, nowMs) => {
      const slot = pendingOf(registries, agent, opId);
      if (slot === undefined) return undefined;
      const { effects, undo } = terminate(slot, how, nowMs);
      return undo === undefined ? undefined : { effects, undo };
    },
    sendOn: (agent, opId) => {
      const slot = pendingOf(registries, agent, opId);
      if (slot === undefined) return undefined;
      const number = ops.numberOf(slot);
      return { kind: 'signal', agent: agentKeyOf(agent), opId, slot, number, signal: 'resume' };
    },
    decideLimit: ({ id, state, limit, agent }, nowMs) => {
      if (limit === undefined || (state !== 'approved' && state !== 'denied')) return undefined;
      const { policy, id: limitId, per, key } = limit;
      const said = { policy, id: limitId, key: keptKey(per, agent.orgId, key), approvalId: id };
      const undo = limits.say(state === 'approved' ? 'approve' : 'deny', said, nowMs);
      return undo === undefined ? undefined : { effects: [{ kind: 'spend-recorded' }], undo };
    },
  };
}

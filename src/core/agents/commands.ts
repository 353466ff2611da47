/**
 * Agents as operators handle them: registered, deregistered and listed (docs/spec.md, Agents).
 */

import { type AgentIdentity, agentKeyOf } from '../base/ids.ts';
import { BAD_CURSOR, placeOfCursor } from '../base/page.ts';
import { assertNever, fail, ok, type Result } from '../base/result.ts';
import type { CommandOf, CommandType, Replies } from '../commands.ts';
import { type Fault, invalid } from '../fault.ts';
import { orgInReach } from '../identity/access.ts';
import { seesOrg } from '../identity/roles.ts';
import { pageOfAgents } from '../listings/agents-page.ts';
import { agentsWithTeams, lineages, overview, stats, tree } from '../listings/topology.ts';
import type { OpCounts } from '../ops/op-state.ts';
import { type Outcome, unchanged } from '../outcome.ts';
import { viewOfAgent } from './agent-entry.ts';
import { type AgentRegistration, type AgentRegistry, MAX_ANCESTORS } from './agents.ts';

export type TopologyCommand = CommandOf<Extract<CommandType, `topology-${string}`>>;

/** The five views of the topology, each within the caller's org. */
export function answerTopology(
  agents: AgentRegistry,
  ops: Readonly<OpCounts>,
  command: TopologyCommand,
  nowMs: number,
): Replies[TopologyCommand['type']] {
  const org = orgInReach(command.principal, command.orgId);
  if (!org.ok) return org;
  const orgId = org.value;
  switch (command.type) {
    case 'topology-overview':
      return overview(agents, { ...command, orgId }, nowMs);
    case 'topology-tree':
      return tree(agents, { ...command, orgId });
    case 'topology-stats':
      return stats(agents, ops, { ...command, orgId }, nowMs);
    case 'topology-team': {
      const found = agentsWithTeams(agents, { ...command, orgId }, nowMs);
      return found.ok &&
        found.value.agents.length === 0 &&
        found.value.next === undefined &&
        command.cursor === undefined
        ? fail({ kind: 'not_found', what: `team ${command.teamId}` })
        : found;
    }
    case 'topology-lineage': {
      const found = lineages(agents, { ...command, orgId });
      return found.ok && found.value.lineages.length === 0 && command.cursor === undefined
        ? fail({ kind: 'not_found', what: `agent ${command.agentId}` })
        : found;
    }
    default:
      return assertNever(command);
  }
}

/**
 * Agents that may be registered at once, and those of one org among them. Agents without an org do not count as an org.
 */
export type AgentLimits = { readonly maxAgents: number; readonly maxOrgAgents: number };

/** Registers an agent, or gives a registered one another token. */
export function registerAgent(
  agents: AgentRegistry,
  limits: AgentLimits,
  { principal, agent, credential, parent }: CommandOf<'register-agent'>,
  nowMs: number,
): Outcome<'register-agent'> {
  if (!seesOrg(principal, agent.orgId)) return unchanged(fail({ kind: 'org_forbidden', orgId: agent.orgId }));
  const key = agentKeyOf(agent);
  const holder = agents.ownerOf(credential);
  // Two agents with one token could not be told apart. The message must not say whose token it is.
  if (holder !== undefined && holder.key !== key)
    return unchanged(
      fail({
        kind: 'conflict',
        detail: 'this credential token is already in use; choose another, or omit it to have one generated',
      }),
    );
  const problem = parent === undefined ? undefined : problemOfParent(agents, agent, parent);
  if (problem !== undefined) return unchanged(invalid('parent', problem));
  const before = agents.registrationOf(key);
  const rotated = before !== undefined;
  const full = rotated ? undefined : refuseIfFull(agents, limits, agent);
  if (full !== undefined) return unchanged(full);
  const registration: AgentRegistration = {
    identity: agent,
    credential,
    registeredAtMs: before?.registeredAtMs ?? nowMs,
    parent: parent === undefined ? before?.parent : agentKeyOf(parent),
  };
  const entry = agents.register(registration);
  return {
    reply: ok({ agent: viewOfAgent(entry), rotated }),
    undo: { kind: 'registration', key, credential, before },
    effects: [
      { kind: 'agent-saved', key, registration, rotated },
      {
        kind: 'audit',
        draft: {
          eventType: 'AgentRegistered',
          lineage: agent,
          actor: principal.subject,
          payload: { rotated, parent: registration.parent ?? null },
        },
      },
    ],
  };
}

function problemOfParent(agents: AgentRegistry, agent: AgentIdentity, parent: AgentIdentity): string | undefined {
  if (parent.orgId !== agent.orgId) return 'must be an agent in the same org';
  const key = agentKeyOf(parent);
  if (!(agents.get(key)?.isRegistered ?? false)) return `agent ${key} is not registered`;
  switch (agents.descends(key, agentKeyOf(agent))) {
    case true:
      return 'an agent cannot descend from itself';
    case false:
      return undefined;
    default:
      return `agent ${key} has too many ancestors; the maximum is ${MAX_ANCESTORS}`;
  }
}

function refuseIfFull(
  agents: AgentRegistry,
  { maxAgents, maxOrgAgents }: AgentLimits,
  { orgId }: AgentIdentity,
): Result<never, Fault> | undefined {
  if (agents.registeredCount >= maxAgents)
    return fail({ kind: 'overloaded', retryAfterSecs: 10, what: 'the agent registry' });
  const ofOrg = orgId === '' ? 0 : (agents.groups.orgs.get(orgId)?.agents.size ?? 0);
  return ofOrg >= maxOrgAgents
    ? fail({ kind: 'overloaded', retryAfterSecs: 10, what: 'the number of agents in this org' })
    : undefined;
}

/**
 * Removes an agent's registration. Its entry, and the signals to its operations, stay until it has no operations left.
 */
export function deregisterAgent(
  agents: AgentRegistry,
  { principal, agent }: CommandOf<'deregister-agent'>,
): Outcome<'deregister-agent'> {
  const key = agentKeyOf(agent);
  const before = agents.registrationOf(key);
  if (!seesOrg(principal, agent.orgId) || !agents.deregister(key))
    return unchanged(fail({ kind: 'not_found', what: `agent ${key}` }));
  return {
    reply: ok(undefined),
    undo: { kind: 'registration', key, credential: undefined, before },
    effects: [
      { kind: 'agent-removed', identity: agent, key },
      { kind: 'audit', draft: { eventType: 'AgentDeregistered', lineage: agent, actor: principal.subject } },
    ],
  };
}

export function listAgents(
  agents: AgentRegistry,
  { principal, orgId, teamId, agentId, perPage, cursor }: CommandOf<'list-agents'>,
): Replies['list-agents'] {
  const org = orgInReach(principal, orgId);
  if (!org.ok) return org;
  const after = placeOfCursor(cursor);
  if (after === undefined) return BAD_CURSOR;
  return ok(pageOfAgents(agents, { orgId: org.value, teamId, agentId }, perPage, after));
}

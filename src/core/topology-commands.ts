import type { AgentRegistry } from './agents.ts';
import type { CommandOf, CommandType, Replies } from './commands.ts';
import type { OpCounts } from './op-state.ts';
import { assertNever, fail } from './result.ts';
import { orgInReach } from './scope.ts';
import { agentsWithTeams, lineages, overview, stats, tree } from './topology.ts';

export type TopologyCommand = CommandOf<Extract<CommandType, `topology-${string}`>>;

/** The five views of the topology, each within the org of whoever asks. */
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

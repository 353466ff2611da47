/** The scope of a halt, and the operations it will stop. Pure. */
import { isFinished, type Op } from '../live/op.ts';

export type HaltKind = 'agent' | 'lineage' | 'team' | 'org' | 'global';

export type HaltTarget = {
  readonly org_id?: string | null | undefined;
  readonly team_id?: string | undefined;
  readonly agent_id?: string | undefined;
};

/** The narrowest first: those that can be meant with the names that are known. */
export function kindsFor({ org_id: org, team_id: team, agent_id: agent }: HaltTarget): readonly HaltKind[] {
  if (org === undefined || org === null) return team && agent ? ['agent', 'lineage', 'team'] : [];
  if (!team) return org === '' ? [] : ['org'];
  return agent ? ['agent', 'lineage', 'team', ...(org === '' ? [] : (['org'] as const))] : ['team', 'org'];
}

/** As the API takes it. */
export function scopeOf(kind: HaltKind, { org_id: org, team_id: team, agent_id: agent }: HaltTarget): string {
  if (kind === 'global') return 'global';
  if (kind === 'org') return `org:${org ?? ''}`;
  return kind === 'team' ? `team:${org ?? ''}/${team}` : `${kind}:${org ?? ''}/${team}/${agent}`;
}

/** The operations that it will stop: of an agent with all it started, `descendants` names those. */
export function hitBy(
  ops: readonly Op[],
  kind: HaltKind,
  target: HaltTarget,
  descendants: ReadonlySet<string>,
): readonly Op[] {
  const org = target.org_id ?? '';
  return ops.filter((op) => {
    if (isFinished(op.state)) return false;
    if (kind === 'global') return true;
    if ((op.orgId ?? '') !== org) return false;
    if (kind === 'org') return true;
    const isAgent = op.teamId === target.team_id && op.agentId === target.agent_id;
    if (kind === 'team') return op.teamId === target.team_id;
    return isAgent || (kind === 'lineage' && descendants.has(`${op.teamId}/${op.agentId}`));
  });
}

/** Names of limits, and of whose use they count. */
import type { AgentIdentity, AgentKey, OpId } from '../base/ids.ts';
import type { Limit, LimitPer } from './limit.ts';

/** The subject of counting: an operation of this agent. */
export type CountedFor = { readonly agent: AgentIdentity; readonly key: AgentKey; readonly opId: OpId | undefined };

/** Counts stay as long as this stays the same. */
export const identityOf = (policy: string, { id, per, unit, everyMs }: Limit): string =>
  JSON.stringify([policy, id, per, unit, everyMs ?? null]);

/** The org is what stands before the first `/`; '' where there is no such key. */
export function keyOf(per: LimitPer, { agent, key, opId }: CountedFor, firstOf: (key: AgentKey) => AgentKey): string {
  switch (per) {
    case 'session':
      return opId === undefined ? '' : `${agent.orgId}/${opId.slice(0, opId.indexOf(':'))}`;
    case 'lineage':
      return firstOf(key);
    case 'agent':
      return key;
    case 'team':
      return `${agent.orgId}/${agent.teamId}`;
    case 'org':
      return agent.orgId;
  }
}

/** The org whose use it counts. */
export const orgOfKey = (key: string): string => {
  const end = key.indexOf('/');
  return end === -1 ? key : key.slice(0, end);
};

/** The agent whose use it counts, if it is that of one. */
export const agentOfKey = (per: LimitPer, key: string): string | null =>
  per === 'agent' || per === 'lineage' ? key.slice(key.lastIndexOf('/') + 1) : null;

/** As people see it: a session is named by its trace id. */
export const shownKey = (per: LimitPer, key: string): string =>
  per === 'session' ? key.slice(key.indexOf('/') + 1) : key;

/** As the state is kept. */
export const keptKey = (per: LimitPer, orgId: string, shown: string): string =>
  per === 'session' ? `${orgId}/${shown}` : shown;

/** Under which it is stored, and by which the ledger of a cluster knows it. */
export const keyOfRow = (identity: string, key: string): string => `limit/${identity}/${key}`;

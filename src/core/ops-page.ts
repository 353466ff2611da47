/** Pages of operations, and the words of their cursors. */
import type { AgentGroup } from './agent-groups.ts';
import { numberOf } from './cursor.ts';
import type { OpFilter, OpRecord, OpsRegistry, OrgPlace } from './ops.ts';

export type OpPage = { readonly ops: readonly OpRecord[]; readonly next: string | undefined };

/** Of one org, which may be one that nobody has heard of, or of all. Undefined: the cursor is none of this listing's. */
export function pageOfOps(ops: OpsRegistry, org: { readonly group: AgentGroup | undefined } | undefined, filter: OpFilter, perPage: number, cursor: string | undefined): OpPage | undefined {
  if (org !== undefined) return pageOfOrg(ops, org.group, filter, perPage, cursor);
  const from = cursor === undefined ? 0 : numberOf(cursor);
  if (from === undefined) return undefined;
  const page = ops.list(filter, perPage, from);
  return { ops: page.ops, next: page.next?.toString() };
}

function pageOfOrg(ops: OpsRegistry, group: AgentGroup | undefined, filter: OpFilter, perPage: number, cursor: string | undefined): OpPage | undefined {
  const from = cursor === undefined ? undefined : placeOf(cursor);
  if (cursor !== undefined && from === undefined) return undefined;
  if (group === undefined) return { ops: [], next: undefined };
  const page = ops.listOfOrg(group, filter, perPage, from);
  return { ops: page.ops, next: page.next === undefined ? undefined : `${page.next.number}.${page.next.slot}` };
}

function placeOf(cursor: string): OrgPlace | undefined {
  const match = /^(\d{1,15})\.(\d{1,10})$/.exec(cursor);
  return match === null ? undefined : { number: Number(match[1]), slot: Number(match[2]) };
}

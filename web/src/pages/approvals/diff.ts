/** Compares a request with the arguments that were approved last. Pure. */
import type { Approval } from '../../base/api-types.ts';

export type Argument = {
  /** With dots, as obligations name it. */
  readonly path: string;
  readonly now: string | undefined;
  readonly before: string | undefined;
  readonly kind: 'same' | 'changed' | 'added' | 'removed';
};

const MAX_ARGUMENTS = 500;

function flatten(value: unknown, path: string, into: Map<string, string>): void {
  if (into.size >= MAX_ARGUMENTS) return;
  const isNested = typeof value === 'object' && value !== null && Object.keys(value).length > 0;
  if (!isNested) return void into.set(path, typeof value === 'string' ? value : JSON.stringify(value));
  for (const [name, part] of Object.entries(value)) flatten(part, path === '' ? name : `${path}.${name}`, into);
}

function argumentsOf({ resource, attributes, estimated_cost_usd: cost }: Approval): ReadonlyMap<string, string> {
  const found = new Map([['resource', resource]]);
  if (cost > 0) found.set('estimated_cost_usd', String(cost));
  if (typeof attributes === 'object' && attributes !== null && Object.keys(attributes).length > 0)
    flatten(attributes, 'attributes', found);
  return found;
}

/** Changes first, in the order of the request. Without a request before, nothing is marked. */
export function diffOf(request: Approval, before: Approval | undefined): readonly Argument[] {
  const now = argumentsOf(request);
  const old = before === undefined ? now : argumentsOf(before);
  const rows = [...new Set([...now.keys(), ...old.keys()])].map((path): Argument => {
    const [mine, theirs] = [now.get(path), old.get(path)];
    const kind = mine === theirs ? 'same' : mine === undefined ? 'removed' : theirs === undefined ? 'added' : 'changed';
    return { path, now: mine, before: theirs, kind };
  });
  return [...rows.filter(({ kind }) => kind !== 'same'), ...rows.filter(({ kind }) => kind === 'same')];
}

/** The one that was approved last for the same thing: of the same agent if there is one, else by the same rule. */
export function lastApproved(request: Approval, approved: readonly Approval[]): Approval | undefined {
  const isSame = (other: Approval): boolean =>
    other.id !== request.id &&
    other.action === request.action &&
    other.rule_id === request.rule_id &&
    other.policy === request.policy;
  const isOfAgent = ({ agent }: Approval): boolean =>
    agent.agent_id === request.agent.agent_id &&
    agent.team_id === request.agent.team_id &&
    agent.org_id === request.agent.org_id;
  const found = approved.filter(isSame).sort((one, other) => Date.parse(other.changed_at) - Date.parse(one.changed_at));
  return found.find(isOfAgent) ?? found[0];
}

/** `svc topology [overview|tree|stats]`, `--team`, `--lineage`: who there is. */
import { Api } from '../api.ts';
import { usageError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { show } from '../output.ts';
import { printable } from '../printable.ts';
import { cellText, type Row } from '../table.ts';

const VIEWS = ['overview', 'tree', 'stats'] as const;

export async function run(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const answer = await (await Api.of(invocation)).get(pathOf(invocation), { org_id: options.text('org') });
  await show(globals.output, answer, () => outline(answer));
}

function pathOf({ args: [view = 'overview'], options }: Invocation): string {
  const team = options.text('team');
  const lineage = options.text('lineage');
  if (team !== undefined && lineage !== undefined) throw usageError('--team and --lineage are two different views.');
  if (team !== undefined) return `/api/v1/topology/team/${encodeURIComponent(team)}`;
  if (lineage !== undefined) return `/api/v1/topology/lineage/${encodeURIComponent(lineage)}`;
  const known = VIEWS.find((each) => each === view);
  if (known === undefined) throw usageError(`a view of the topology is one of ${VIEWS.join(', ')}.`);
  return `/api/v1/topology/${known}`;
}

/** Nested answers as an indented outline: scalars on their line, what has parts below its name. */
export function outline(value: unknown, depth = 0): readonly string[] {
  const indent = '  '.repeat(depth);
  if (Array.isArray(value)) return value.flatMap((item) => itemLines(item, depth));
  return Object.entries(value as Row).flatMap(([name, part]) => {
    if (part === null || part === undefined) return [];
    if (typeof part !== 'object') return [`${indent}${printable(name)}  ${cellText(part)}`];
    const lines = outline(part, depth + 1);
    return lines.length === 0 ? [] : [`${indent}${printable(name)}`, ...lines];
  });
}

/** An item of a list is one line of its scalars, with what has parts below it. */
function itemLines(item: unknown, depth: number): readonly string[] {
  const indent = '  '.repeat(depth);
  if (typeof item !== 'object' || item === null) return [`${indent}${cellText(item)}`];
  const entries = Object.entries(item as Row).filter(([, part]) => part !== null && part !== undefined);
  const head = entries.filter(([, part]) => typeof part !== 'object').map(([name, part]) => `${printable(name)}=${cellText(part)}`);
  const below = entries.filter(([, part]) => typeof part === 'object').flatMap(([name, part]) => {
    const lines = outline(part, depth + 2);
    return lines.length === 0 ? [] : [`${indent}  ${printable(name)}`, ...lines];
  });
  return [`${indent}${head.join('  ')}`, ...below];
}

import { BAD_CURSOR } from '../core/base/page.ts';
import { ok } from '../core/base/result.ts';
import type { CommandOf, Replies } from '../core/commands.ts';
import type { OpView } from '../core/ops/op-view.ts';
import type { RunId } from '../ports/cluster.ts';

/** A gateway to list; `run`: absent for this one. */
export type Listed = { readonly home: string; readonly name: string; readonly run?: RunId };

type PageOf = (at: Listed, command: CommandOf<'list-ops'>) => Promise<Replies['list-ops']>;

/** An answer of another gateway crosses the bus in parts: larger pages are put together from several. */
const MOST_AT_ONCE = 250;

/**
 * The operations of all gateways: one gateway after the other, in the order of their names. A cursor is the gateway and
 * its own cursor there. A gateway that does not answer is named, and left out.
 */
export async function gatherOps(
  self: Listed,
  others: readonly Listed[],
  command: CommandOf<'list-ops'>,
  pageOf: PageOf,
): Promise<Replies['list-ops']> {
  const all = [self, ...others].sort((one, other) => (one.name < other.name ? -1 : 1));
  const [home, rest] = command.cursor?.split('.') ?? [];
  const start = home === undefined ? 0 : all.findIndex((each) => each.home === home);
  if (start === -1 || (home !== undefined && rest === undefined)) return BAD_CURSOR;
  const items: OpView[] = [];
  const incomplete: string[] = [];
  let cursor = rest === undefined || rest === '' ? undefined : command.cursor;
  for (let at = start; at < all.length; ) {
    const gateway = all[at]!;
    if (items.length === command.perPage) return ok({ items, next: cursor ?? `${gateway.home}.`, incomplete });
    const perPage = Math.min(command.perPage - items.length, MOST_AT_ONCE);
    const page = await pageOf(gateway, { ...command, perPage, cursor });
    if (page.ok) {
      for (const op of page.value.items) items.push(op);
      cursor = page.value.next;
    } else if (page.fault.kind !== 'unreachable_gateway') return page;
    else {
      incomplete.push(gateway.name);
      cursor = undefined;
    }
    if (cursor === undefined) at += 1;
  }
  return ok({ items, next: undefined, incomplete });
}

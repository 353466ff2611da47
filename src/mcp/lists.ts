/** Lists a server's offers without those that may not be used: by policy, and by the pins of tools. */

import { isMapping } from '../core/base/mapping.ts';
import type { Asked } from '../core/mcp/asked.ts';
import { type Gateway, isUnruled, mayBeAllowed, type Verdict } from './gateway.ts';
import { type Answer, errorOf, type Fields, RPC_CODE } from './json-rpc.ts';
import type { PinStore } from './pin-store.ts';
import { subjectOf } from './subjects.ts';
import type { Upstream } from './upstream.ts';

export type ListRow = {
  readonly method: string;
  /** The member of the result that holds the items. */
  readonly member: string;
  /** The name in an item by which it is used. */
  readonly key: string;
  readonly kind: Asked['kind'];
  /** The capability of a server that has such a list. */
  readonly capability: string;
};

export const LISTS: Readonly<Record<string, ListRow>> = {
  'tools/list': { method: 'tools/list', member: 'tools', key: 'name', kind: 'tool', capability: 'tools' },
  'prompts/list': { method: 'prompts/list', member: 'prompts', key: 'name', kind: 'prompt', capability: 'prompts' },
  'resources/list': {
    method: 'resources/list',
    member: 'resources',
    key: 'uri',
    kind: 'resource',
    capability: 'resources',
  },
  'resources/templates/list': {
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    key: 'uriTemplate',
    kind: 'resource',
    capability: 'resources',
  },
};

/** A server that gives a new cursor with every page has no end. */
const MAX_PAGES = 100;
const MAX_ITEMS = 10_000;
/** Clients that keep a list for as long as it says keep it no longer than this: policies change. */
const MAX_TTL_MS = 2_000;

export type ListsOptions = {
  readonly gateway: Gateway;
  readonly pins: PinStore;
  readonly traceId: string;
  readonly log: (line: string) => void;
  /** Logs what is left out, and why, whenever that changes. */
  readonly tellsWithheld: boolean;
};

/** The items of a page or of a whole list, or why there are none. */
type Items = { readonly items: readonly Fields[] } | { readonly failure: Answer };

export class Lists {
  readonly #options: ListsOptions;
  /** By server: what is being asked for at the moment. */
  readonly #asking = new Map<Upstream, Promise<Changed>>();
  readonly #warned = new Set<string>();
  /** By list. */
  readonly #told = new Map<string, string>();

  constructor(options: ListsOptions) {
    this.#options = options;
  }

  /** Returns a page as the server gives it, without the items that may not be used. */
  async page(upstream: Upstream, row: ListRow, params: Fields | undefined): Promise<Answer> {
    const answer = await upstream.request(row.method, params).answer;
    if (answer.result === undefined) return answer;
    const kept = await this.#kept(upstream, row, itemsIn(answer.result, row), params?.cursor);
    if ('failure' in kept) return { ...kept.failure, id: answer.id };
    return { ...answer, result: { ...answer.result, ...freshness(answer.result), [row.member]: kept.items } };
  }

  /** The whole list of a server, without what may not be used. */
  async whole(upstream: Upstream, row: ListRow): Promise<Items> {
    const all = await allPages(upstream, row, undefined);
    return 'failure' in all ? all : this.#kept(upstream, row, all.items);
  }

  /** The tools whose definition is not the pinned one, as the server defines them now. */
  changed(upstream: Upstream, meta: Fields | undefined): Promise<Changed> {
    const asking = this.#asking.get(upstream) ?? this.#compare(upstream, meta);
    this.#asking.set(upstream, asking);
    return asking;
  }

  async #compare(upstream: Upstream, meta: Fields | undefined): Promise<Changed> {
    try {
      const row = LISTS['tools/list'] as ListRow;
      const all = await allPages(upstream, row, meta);
      if ('failure' in all)
        return { failure: `the definitions of its tools cannot be verified: ${all.failure.error?.message ?? ''}` };
      return { tools: await this.#comparedWithPins(upstream, all.items) };
    } catch (error) {
      this.#options.log(`cannot store pins: ${error instanceof Error ? error.message : String(error)}`);
      return { failure: `the pins in ${this.#options.pins.path} cannot be used` };
    } finally {
      this.#asking.delete(upstream);
    }
  }

  async #comparedWithPins(upstream: Upstream, tools: readonly Fields[]): Promise<ReadonlySet<string>> {
    const changed = await this.#options.pins.compare(upstream.name, tools);
    for (const tool of changed) {
      const warning = `${upstream.name}/${tool} ${CHANGED}; it is withheld until \`${acceptCommand(upstream.name, tool)}\``;
      if (!this.#warned.has(warning)) this.#options.log(warning);
      this.#warned.add(warning);
    }
    return changed;
  }

  async #kept(upstream: Upstream, row: ListRow, items: readonly Fields[], cursor?: unknown): Promise<Items> {
    const { gateway, traceId } = this.#options;
    const named = items.filter((item) => typeof item[row.key] === 'string');
    let changed: ReadonlySet<string> = new Set();
    if (row.kind === 'tool') {
      try {
        changed = await this.#comparedWithPins(upstream, named);
      } catch (error) {
        this.#options.log(`cannot store pins: ${error instanceof Error ? error.message : String(error)}`);
        return failing(`the pins in ${this.#options.pins.path} cannot be used`);
      }
    }
    const subjects = named.map((item) =>
      subjectOf(upstream.name, { kind: row.kind, name: item[row.key] as string, args: {} }),
    );
    const rehearsed = await gateway.rehearse(subjects, traceId);
    const about = `${upstream.name} ${row.method} ${String(cursor ?? '')}`.trimEnd();
    if ('failure' in rehearsed) {
      if (this.#options.tellsWithheld)
        this.#tell(about, `nothing of ${row.method} can be listed: ${rehearsed.failure}`);
      return failing(`nothing can be listed: ${rehearsed.failure}`);
    }
    const isTemplate = row.key === 'uriTemplate';
    // Policies speak of resources, not of templates: what is read is checked when it is.
    const may = (verdict: Verdict | undefined): boolean =>
      verdict !== undefined && (mayBeAllowed(verdict) || (isTemplate && isUnruled(verdict)));
    const { verdicts } = rehearsed;
    if (this.#options.tellsWithheld) {
      const withheld = named.flatMap((item, n): Withheld[] =>
        may(verdicts[n]) ? [] : [{ name: item[row.key] as string, reason: verdicts[n]?.reason ?? '' }],
      );
      this.#tell(about, withheldText(upstream, row, named, withheld));
    }
    return {
      items: named.filter((item, n) => !changed.has(item[row.key] as string) && may(verdicts[n])),
    };
  }

  /** Not with every list, but whenever it says something else. */
  #tell(about: string, text: string): void {
    const before = this.#told.get(about);
    if (before === text || (before === undefined && text === '')) return;
    this.#told.set(about, text);
    this.#options.log(text === '' ? `${about}: nothing is withheld by policy any more` : text);
  }
}

type Withheld = { readonly name: string; readonly reason: string };
const MAX_NAMED = 5;
const MAX_LENGTH = 300;
/** The server chose the name; on a terminal it must not do more than to be read. */
const legible = (text: string): string => text.replace(/\p{Cc}/gu, '?').slice(0, MAX_LENGTH);

/** Explains to a person where the missing tools are. Empty if nothing is withheld. */
function withheldText(
  { name: server }: Upstream,
  { member }: ListRow,
  listed: readonly Fields[],
  withheld: readonly Withheld[],
): string {
  if (withheld.length === 0) return '';
  const named = withheld.slice(0, MAX_NAMED).map(({ name, reason }) => legible(`${name} (${reason})`));
  const more = withheld.length - named.length;
  return `${withheld.length} of ${listed.length} ${member} of ${server} are withheld by policy: ${named.join(', ')}${more > 0 ? `, and ${more} more` : ''}`;
}

export type Changed = { readonly tools: ReadonlySet<string> } | { readonly failure: string };

const CHANGED = 'is defined differently than when it was first offered';
const acceptCommand = (server: string, tool: string): string => `svc mcp pins accept ${server} ${tool}`;

/** Why a call of a changed tool is refused. */
export const changedReason = (server: string, tool: string): string =>
  `the tool ${tool} of ${server} ${CHANGED}; if you trust the change, accept it with \`${acceptCommand(server, tool)}\``;

const failing = (message: string): Items => ({ failure: errorOf(0, RPC_CODE.internal, message) });

function itemsIn(result: Fields, { member }: ListRow): readonly Fields[] {
  const items = result[member];
  return Array.isArray(items) ? items.filter(isMapping) : [];
}

const freshness = ({ ttlMs }: Fields): Fields =>
  typeof ttlMs === 'number' ? { ttlMs: Math.min(ttlMs, MAX_TTL_MS), cacheScope: 'private' } : {};

async function allPages(upstream: Upstream, row: ListRow, meta: Fields | undefined): Promise<Items> {
  const items: Fields[] = [];
  let cursor: unknown;
  for (let page = 0; page < MAX_PAGES && items.length < MAX_ITEMS; page += 1) {
    const params = { ...(meta === undefined ? {} : { _meta: meta }), ...(cursor === undefined ? {} : { cursor }) };
    const answer = await upstream.request(row.method, params).answer;
    if (answer.result === undefined) return { failure: answer };
    items.push(...itemsIn(answer.result, row));
    cursor = answer.result.nextCursor;
    if (cursor === undefined || cursor === null) return { items };
  }
  return failing(`${upstream.name} lists more than ${MAX_ITEMS} ${row.member}, or its list has no end`);
}

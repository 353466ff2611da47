/** Which server a request is for: the only one, or the one that its name says. */
import type { Asked } from '../core/mcp/asked.ts';
import { type Answer, errorOf, type Fields, type Request, RPC_CODE, resultOf } from './json-rpc.ts';
import { LISTEN } from './listening.ts';
import { LISTS, type ListRow, type Lists } from './lists.ts';
import { PASSED } from './passing.ts';
import { prefixed, unprefixed } from './subjects.ts';
import type { Upstream } from './upstream.ts';

export type Route = { readonly upstream: Upstream; readonly asked: Asked };

export type Routing = {
  list(request: Request): Promise<Answer>;
  route(asked: Asked): Promise<Route | { readonly problem: string }>;
  /** The servers that a request goes to without an operation; undefined when it must not. */
  passing(request: Request): readonly Upstream[] | undefined;
};

/** They neither act nor read; `passing.ts` and `listening.ts` say with what they are passed on. */
const PASSING: ReadonlySet<string> = new Set([...PASSED, LISTEN]);

export function routingOf(
  upstreams: readonly Upstream[],
  lists: Lists,
  isPrefixed: boolean,
  log: (line: string) => void,
): Routing {
  const [only] = upstreams;
  if (!isPrefixed && only !== undefined) return routingToOne(only, lists);
  return new PrefixedRouting(upstreams, lists, log);
}

const routingToOne = (upstream: Upstream, lists: Lists): Routing => ({
  list: ({ method, params }) => lists.page(upstream, LISTS[method] as ListRow, params),
  route: async (asked) => ({ upstream, asked }),
  passing: ({ method }) => (PASSING.has(method) ? [upstream] : undefined),
});

/** Tools and prompts are named `<server>__<name>`; resources keep their addresses. */
class PrefixedRouting implements Routing {
  readonly #upstreams: readonly Upstream[];
  readonly #lists: Lists;
  readonly #log: (line: string) => void;
  /** By address: the server that listed it. */
  readonly #homes = new Map<string, Upstream>();

  constructor(upstreams: readonly Upstream[], lists: Lists, log: (line: string) => void) {
    this.#upstreams = upstreams;
    this.#lists = lists;
    this.#log = log;
  }

  async list({ id, method, params }: Request): Promise<Answer> {
    const row = LISTS[method] as ListRow;
    if (params?.cursor !== undefined)
      return errorOf(id, RPC_CODE.invalidParams, 'lists of several servers come whole: there is no cursor');
    const able = this.#with(row.capability);
    const listed = await Promise.all(able.map((upstream) => this.#lists.whole(upstream, row)));
    const items: Fields[] = [];
    for (const [n, upstream] of able.entries()) {
      const list = listed[n];
      if (list === undefined || 'failure' in list) {
        // A server that fails does not hide the others.
        if (able.length === 1 && list !== undefined) return { ...list.failure, id };
        this.#log(`${upstream.name} is left out of ${method}: ${list?.failure.error?.message ?? 'no answer'}`);
      } else items.push(...list.items.flatMap((item) => this.#offered(upstream, row, item)));
    }
    return resultOf(id, { [row.member]: items });
  }

  async route(asked: Asked): Promise<Route | { readonly problem: string }> {
    if (asked.kind === 'resource') return this.#routeOfResource(asked);
    const split = unprefixed(asked.name);
    const upstream = this.#upstreams.find(({ name }) => name === split?.server);
    return split === undefined || upstream === undefined
      ? { problem: `unknown ${asked.kind} ${asked.name}; names are <server>__<${asked.kind}>` }
      : { upstream, asked: { ...asked, name: split.name } };
  }

  passing({ method }: Request): readonly Upstream[] | undefined {
    if (method === 'logging/setLevel') return this.#with('logging');
    return method === 'resources/unsubscribe' ? this.#with('resources') : undefined;
  }

  #with(capability: string): readonly Upstream[] {
    return this.#upstreams.filter(({ capabilities }) => capabilities[capability] !== undefined);
  }

  #offered(upstream: Upstream, { kind, key }: ListRow, item: Fields): readonly Fields[] {
    const name = item[key] as string;
    if (kind === 'resource') {
      // The first server keeps an address that another claims as well.
      if (key === 'uri' && !this.#homes.has(name)) this.#homes.set(name, upstream);
      return [item];
    }
    const whole = prefixed(upstream.name, name);
    if (whole === undefined) this.#log(`${upstream.name}/${name} is left out: with its server, its name is too long`);
    return whole === undefined ? [] : [{ ...item, [key]: whole }];
  }

  async #routeOfResource(asked: Asked): Promise<Route | { readonly problem: string }> {
    const able = this.#with('resources');
    const home = able.length === 1 ? able[0] : (this.#homes.get(asked.name) ?? (await this.#homeOf(asked.name, able)));
    return home === undefined
      ? { problem: `no server lists ${asked.name}; read it at /mcp/<server>` }
      : { upstream: home, asked };
  }

  /** Asks every server for its list, for an agent that knows the address from before. */
  async #homeOf(uri: string, able: readonly Upstream[]): Promise<Upstream | undefined> {
    const row = LISTS['resources/list'] as ListRow;
    for (const upstream of able) {
      const listed = await this.#lists.whole(upstream, row);
      if ('items' in listed && listed.items.some((item) => item.uri === uri)) {
        this.#homes.set(uri, upstream);
        return upstream;
      }
    }
    return undefined;
  }
}

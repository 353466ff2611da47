/** `svc complete agent|org|op_id [prefix]`: asked by the scripts of `svc completion` for values at the gateway. */
import { EXIT } from '../errors.ts';
import type { Run } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { writeLines } from '../terminal/output.ts';
import type { Row } from '../terminal/table.ts';
import { agentText } from './listing.ts';

/** A person waits at the prompt of a shell: counted from the start of the process, it is less than a second. */
const WITHIN_MS = 850;
/** A busy machine may need all of that to start. */
const LEAST_MS = 150;
const MOST_SHOWN = 100;
const MOST_READ = 5000;

/** Nothing that a shell could expand, or take for an option or for a separator. */
const SAFE = /^[\p{L}\p{N}_./][\p{L}\p{N}_./:@+-]*$/u;

type Source = {
  readonly path: string;
  readonly key: string;
  readonly valueOf: (row: Row) => unknown;
  /** Has the gateway leave out what cannot begin with the prefix. */
  readonly narrow?: (prefix: string) => Readonly<Record<string, string | undefined>>;
};

/** By the name that the argument has in the table of commands. */
export const SOURCES: ReadonlyMap<string, Source> = new Map<string, Source>([
  ['agent', { path: '/api/v1/agents', key: 'agents', valueOf: agentText, narrow: agentsBelow }],
  ['org', { path: '/api/v1/topology/stats', key: 'groups', valueOf: ({ org_id: org }) => org }],
  ['op_id', { path: '/api/v1/ops', key: 'ops', valueOf: ({ op_id: opId }) => opId }],
]);

function agentsBelow(prefix: string): Readonly<Record<string, string | undefined>> {
  const [org, team, agent] = prefix.split('/');
  return { org_id: team === undefined ? undefined : org, team_id: agent === undefined ? undefined : team };
}

/** Prints nothing on any error: it would land in the middle of what somebody types. */
export const run: Run = async (invocation) => {
  const [name = '', prefix = ''] = invocation.args;
  const source = SOURCES.get(name);
  if (source === undefined) return;
  const deadline = setTimeout(() => process.exit(EXIT.done), Math.max(LEAST_MS, WITHIN_MS - process.uptime() * 1000));
  try {
    writeLines(await valuesOf(await Api.of(invocation), source, prefix));
  } catch {
    // `svc status` says what is wrong.
  } finally {
    clearTimeout(deadline);
  }
};

async function valuesOf(api: Api, { path, key, valueOf, narrow }: Source, prefix: string): Promise<readonly string[]> {
  const { rows } = await api.list(path, key, { query: narrow?.(prefix) ?? {}, limit: MOST_READ });
  const values = new Set(rows.map(valueOf).filter((value) => typeof value === 'string'));
  return [...values]
    .filter((value) => value.startsWith(prefix) && SAFE.test(value))
    .sort()
    .slice(0, MOST_SHOWN);
}

import type { AgentRegistration } from '../../../core/agents/agents.ts';
import type { AgentKey, SecretDigest } from '../../../core/base/ids.ts';
import type { Place, RunId } from '../../../ports/cluster.ts';
import type { Entry, EntryKind, LogAnswer, LogRow, LogStore, Verdict, Whole } from '../../../ports/cluster-log.ts';
import type { Postgres } from '../postgres.ts';
import type { Queryable } from '../queryable.ts';
import { attemptAsRun } from './as-run.ts';
import { memberOf, type NodeRow } from './members.ts';

export type LogStoreOptions = {
  readonly postgres: Postgres;
  readonly run: RunId;
  readonly leaseMs: number;
};

/** Rows of one answer: what is more is asked for again. */
const MOST_ROWS = 500;
const LOADED_AT_ONCE = 5_000;

type RowJson = Place & { readonly nonce: string; readonly run: RunId; readonly at: number; readonly entries: Entry[] };
type NodeJson = Omit<NodeRow, 'lease_until'> & { readonly lease_until: string };
type AnswerJson =
  | { readonly lost: true }
  | {
      readonly lost?: undefined;
      readonly seq: number;
      readonly gap: boolean;
      readonly rows: readonly RowJson[];
      readonly members: readonly NodeJson[];
      readonly mine?: { readonly seq: number; readonly verdicts: readonly Verdict[] | null };
    };
type AgentRow = {
  readonly key: AgentKey;
  readonly org: string;
  readonly team: string;
  readonly agent: string;
  readonly credential: SecretDigest;
  readonly parent: AgentKey | null;
  readonly registered_at: Date;
};
type StateRow = { readonly kind: EntryKind; readonly id: string; readonly body: string; readonly version: string };

export function createPostgresLog({ postgres, run, leaseMs }: LogStoreOptions): LogStore {
  const ask = (sql: string, values: readonly unknown[]): ReturnType<LogStore['after']> =>
    attemptAsRun(postgres, async (on) => {
      const { rows } = await on.query<{ answer: AnswerJson }>(`SELECT ${sql} AS answer`, values);
      return answerOf(rows[0]!.answer);
    });
  return {
    append: (nonce, { seq, mark }, groups) =>
      ask('cluster_append($1, $2, $3, $4, $5, $6, $7)', [
        ...[run, nonce, seq, mark, JSON.stringify(groups.map((group) => group.map(packed))), MOST_ROWS, leaseMs],
      ]),
    after: ({ seq, mark }) => ask('cluster_after($1, $2, $3, $4)', [seq, mark, MOST_ROWS, leaseMs]),
    placesAfter: (seq) =>
      postgres.attempt(async (on) => {
        const { rows } = await on.query<{ seq: string; mark: string }>(
          `SELECT seq, mark FROM cluster_log WHERE seq > $1 OR seq = (SELECT seq FROM cluster_head) ORDER BY seq`,
          [seq],
        );
        return rows.map((row) => ({ seq: Number(row.seq), mark: row.mark }));
      }),
    whole: () => postgres.attempt(wholeOf),
  };
}

/** Finds agents with one of these credentials, for a gateway that has not applied their registration yet. */
export const findAgents = (postgres: Postgres, credentials: readonly SecretDigest[]) =>
  postgres.attempt(async (on) => {
    const { rows } = await on.query<AgentRow>('SELECT * FROM agents WHERE credential = ANY ($1)', [credentials]);
    return rows.map(registrationOf);
  });

/**
 * Kinds whose bodies the functions of the schema read; other bodies are kept as text, which accepts more than `jsonb`.
 */
const READ: ReadonlySet<EntryKind> = new Set(['agents', 'policy']);

const packed = ({ id, body, ...entry }: Entry): Entry => ({
  ...entry,
  id: Buffer.from(id.replaceAll('\0', '')).toString(),
  body: body === null || READ.has(entry.kind) ? body : JSON.stringify(body),
});
const unpacked = (entry: Entry): Entry => ({
  ...entry,
  body: typeof entry.body === 'string' ? (JSON.parse(entry.body) as unknown) : (entry.body ?? null),
});

function answerOf(answer: AnswerJson): LogAnswer {
  if (answer.lost) return { lost: true };
  const { seq, gap, rows, members, mine } = answer;
  return {
    seq,
    isGap: gap,
    rows: rows.map(
      ({ at, entries, ...row }): LogRow => ({
        ...row,
        atMs: at,
        entries: entries.map(unpacked),
      }),
    ),
    members: members.map((row) => memberOf({ ...row, lease_until: new Date(row.lease_until) })),
    ...(mine && { mine: { seq: mine.seq, verdicts: mine.verdicts ?? undefined } }),
  };
}

/**
 * The place is read first: what has come since is part of the tables or not, and is applied once more either way.
 */
async function wholeOf(on: Queryable): Promise<Whole> {
  const {
    rows: [head],
  } = await on.query<{ seq: string; mark: string }>('SELECT seq, mark FROM cluster_head');
  const {
    rows: [policy],
  } = await on.query<{ version: string; by: string }>('SELECT version, activated_by AS by FROM policy_active');
  const agents: AgentRegistration[] = [];
  for await (const row of pages<AgentRow>(on, 'SELECT * FROM agents WHERE key > $1 ORDER BY key', (each) => each.key))
    agents.push(registrationOf(row));
  const states: Whole['states'][number][] = [];
  const sql = `SELECT kind, id, body, version FROM cluster_state WHERE (kind || ' ' || id) COLLATE "C" > $1
    ORDER BY (kind || ' ' || id) COLLATE "C"`;
  for await (const { kind, id, body, version } of pages<StateRow>(on, sql, (each) => `${each.kind} ${each.id}`))
    states.push({ kind, id, body: JSON.parse(body) as unknown, version: Number(version) });
  return { place: { seq: Number(head!.seq), mark: head!.mark }, agents, states, policy };
}

async function* pages<Row extends object>(
  on: Queryable,
  sql: string,
  keyOf: (row: Row) => string,
): AsyncGenerator<Row> {
  for (let after: string | undefined = ''; after !== undefined; ) {
    const { rows }: { readonly rows: readonly Row[] } = await on.query<Row>(`${sql} LIMIT ${LOADED_AT_ONCE}`, [after]);
    yield* rows;
    const last = rows.at(-1);
    after = rows.length < LOADED_AT_ONCE || last === undefined ? undefined : keyOf(last);
  }
}

const registrationOf = ({ org, team, agent, credential, parent, registered_at }: AgentRow): AgentRegistration => ({
  identity: { orgId: org, teamId: team, agentId: agent },
  credential,
  registeredAtMs: registered_at.getTime(),
  parent: parent ?? undefined,
});

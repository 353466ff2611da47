import { ok } from '../../../core/base/result.ts';
import { GIVE_UP_AFTER_MS, type Webhook, type WebhookStatus } from '../../../core/webhooks/webhook.ts';
import type { RunId } from '../../../ports/cluster.ts';
import type { SharedWebhooks, TakenCall } from '../../../ports/webhook-store.ts';
import type { Postgres } from '../postgres.ts';
import { transactAsRun } from './as-run.ts';

type KnownRow = {
  readonly id: string;
  readonly events: Webhook['events'];
  readonly org_id: string | null;
  readonly disabled_at: Date | null;
};
type HookRow = KnownRow & {
  readonly url: string;
  readonly created_by: string;
  readonly created_at: Date;
  readonly failing_since: Date | null;
  readonly failures: number;
  readonly last_error: string | null;
  readonly dropped: number;
  readonly waiting: number;
};
type TakenRow = Omit<TakenCall, 'hookId'> & { readonly hook: string };
type FailedRow = Pick<HookRow, 'failures' | 'disabled_at'> & { readonly failing_since: Date; readonly lost: number };

const statusOf = ({ waiting, ...row }: HookRow): WebhookStatus => ({
  hook: {
    id: row.id,
    url: row.url,
    events: row.events,
    orgId: row.org_id,
    createdBy: row.created_by,
    createdAtMs: row.created_at.getTime(),
    failingSinceMs: row.failing_since?.getTime(),
    failures: row.failures,
    lastError: row.last_error ?? undefined,
    disabledAtMs: row.disabled_at?.getTime(),
    dropped: row.dropped,
  },
  waiting,
});

/** The secret stays where it is: only the call that it signs needs it. */
const LIST = `
  SELECT id, url, events, org_id, created_by, created_at, failing_since, failures, last_error, disabled_at, dropped,
      (SELECT count(*)::integer FROM webhook_message m WHERE m.hook = w.id) AS waiting
    FROM webhook w ORDER BY sequence DESC`;

const ADOPT = `
  INSERT INTO webhook (id, url, events, org_id, secret, created_by, created_at, failing_since, failures, last_error,
      disabled_at, dropped)
    SELECT id, url, events, org_id, secret, created_by, created_at, failing_since, failures, last_error, disabled_at, dropped
      FROM jsonb_populate_recordset(NULL::webhook, $1::jsonb) WITH ORDINALITY ORDER BY ordinality
    ON CONFLICT (id) DO NOTHING`;

const dateOf = (ms: number | undefined): Date | null => (ms === undefined ? null : new Date(ms));

const adoptedOf = (hook: Webhook) => ({
  id: hook.id,
  url: hook.url,
  events: hook.events,
  org_id: hook.orgId,
  secret: hook.secret,
  created_by: hook.createdBy,
  created_at: dateOf(hook.createdAtMs),
  failing_since: dateOf(hook.failingSinceMs),
  failures: hook.failures,
  last_error: hook.lastError ?? null,
  disabled_at: dateOf(hook.disabledAtMs),
  dropped: hook.dropped,
});

export function createPostgresWebhooks(postgres: Postgres, run: RunId): SharedWebhooks {
  /** A single statement, which looks at the run itself. */
  const asRun = <Row extends object>(text: string, ...values: readonly unknown[]) =>
    transactAsRun(postgres, async (on) => ok((await on.query<Row>(text, [run, ...values])).rows));
  /** A statement of plain SQL. Answers how many rows it has changed. */
  const changed = (text: string, ...values: readonly unknown[]) =>
    transactAsRun(postgres, async (on) => {
      const [{ rowCount }] = await Promise.all([on.query(text, values), on.query('SELECT cluster_check($1)', [run])]);
      return ok(rowCount);
    });
  return {
    known: () =>
      postgres.attempt(async (on) => {
        const [{ rows }, counted] = await Promise.all([
          on.query<KnownRow>('SELECT id, events, org_id, disabled_at FROM webhook ORDER BY sequence'),
          on.query<{ waiting: number }>('SELECT count(*)::integer AS waiting FROM webhook_message'),
        ]);
        const hooks = rows.map(({ id, events, org_id: orgId, disabled_at: disabledAt }) => ({
          id,
          events,
          orgId,
          disabledAtMs: disabledAt?.getTime(),
        }));
        return { hooks, waiting: counted.rows[0]!.waiting };
      }),
    list: () => postgres.attempt(async (on) => (await on.query<HookRow>(LIST)).rows.map(statusOf)),
    adopt: (hooks) => changed(ADOPT, JSON.stringify(hooks.map(adoptedOf))),
    create: async ({ id, url, events, orgId, secret, createdBy, createdAtMs }, { inAll, ofOrg }) => {
      const created = await asRun<{ made: boolean }>(
        'SELECT webhook_create($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS made',
        ...[id, url, events, orgId, secret, createdBy, new Date(createdAtMs), inAll, ofOrg],
      );
      return created.ok ? ok(created.value[0]!.made) : created;
    },
    give: async (id, to) => {
      const given = await changed('UPDATE webhook SET created_by = $2 WHERE id = $1', id, to);
      return given.ok ? ok(given.value > 0) : given;
    },
    remove: async (id) => {
      const removed = await changed('DELETE FROM webhook WHERE id = $1', id);
      return removed.ok ? ok(undefined) : removed;
    },
    write: async ({ added, letGo, withdrawn, dropped }, { number, bytes }) => {
      const written = await asRun<{ lost: number }>(
        'SELECT webhook_write($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS lost',
        added.map(({ id }) => id),
        added.map(({ hookId }) => hookId),
        added.map(({ body }) => body),
        added.map(({ isHeld }) => isHeld),
        added.map(({ isOnce }) => isOnce),
        letGo,
        withdrawn,
        [...dropped.keys()],
        [...dropped.values()],
        number,
        bytes,
      );
      return written.ok ? ok(written.value[0]!.lost) : written;
    },
    take: async (forMs, most) => {
      const taken = await asRun<TakenRow>('SELECT * FROM webhook_take($1, $2, $3)', forMs, most);
      return taken.ok ? ok(taken.value.map(({ hook, ...call }) => ({ hookId: hook, ...call }))) : taken;
    },
    note: async ({ hookId, id, failure }) => {
      const noted = await asRun<FailedRow>(
        'SELECT * FROM webhook_note($1, $2, $3, $4, $5, $6)',
        ...[hookId, id, failure?.reason ?? null, failure?.retryMs ?? null, GIVE_UP_AFTER_MS],
      );
      if (!noted.ok) return noted;
      const [row] = noted.value;
      if (row === undefined) return ok(undefined);
      const { failures, failing_since: since, disabled_at: disabledAt, lost } = row;
      return ok({ failures, failingSinceMs: since.getTime(), disabledAtMs: disabledAt?.getTime(), lost });
    },
  };
}

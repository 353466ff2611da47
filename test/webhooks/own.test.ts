import { describe, expect, test } from 'vitest';
import type { AuditDraft } from '../../src/core/audit/audit.ts';
import { ok } from '../../src/core/base/result.ts';
import type { Halt } from '../../src/core/halts/halt.ts';
import type { Principal } from '../../src/core/identity/roles.ts';
import type { WebhookEvent } from '../../src/core/webhooks/webhook.ts';
import type { Delivery } from '../../src/webhooks/delivery.ts';
import type { WebhookDeps } from '../../src/webhooks/hooks.ts';
import { OwnWebhooks } from '../../src/webhooks/own.ts';
import type { Call } from '../../src/webhooks/sender.ts';
import { Webhooks } from '../../src/webhooks/webhooks.ts';
import { MovedClock } from '../support/moved-clock.ts';

const HOUR_MS = 3_600_000;
const ADMIN: Principal = { subject: 'key:1', scopes: ['admin'], orgId: null };
const ofOrg = (orgId: string): Principal => ({ subject: `key:${orgId}`, scopes: ['admin'], orgId });
const URL_OF = (path: string): string => `https://example.com/${path}`;

const haltOf = (scope: string, reason = 'test'): Halt => ({
  id: 'h',
  scope,
  mode: 'pause',
  actions: ['*'],
  reason,
  createdBy: 'key:1',
  createdAtMs: 0,
  expiresAtMs: undefined,
  released: undefined,
});
const haltCreated = (scope = 'org:acme', reason?: string) =>
  ({ kind: 'halt-changed', halt: haltOf(scope, reason) }) as const;

/** A keeper on a clock that the test moves, and receivers that answer as it says. */
class Bench extends MovedClock {
  readonly rows: Map<string, unknown>;
  readonly calls: (Call & { readonly atMs: number })[] = [];
  readonly logged: string[] = [];
  /** By the path of the URL; undefined: it arrives. */
  readonly answers: Record<string, Delivery | Promise<Delivery>>;
  #lastId = 0;
  readonly keeper: Webhooks;

  constructor(rows = new Map<string, unknown>(), answers: Bench['answers'] = {}) {
    super();
    this.rows = rows;
    this.answers = answers;
    const deps: WebhookDeps = {
      states: {
        load: () => [...rows].map(([id, row]) => ({ id, row })),
        save: async (_table, id, row) => void rows.set(id, structuredClone(row)),
        remove: async (_table, id) => void rows.delete(id),
      },
      audit: { record: async () => ok(undefined) },
      send: async (call) => {
        this.calls.push({ ...call, atMs: this.nowMs });
        return this.answers[new URL(call.url).pathname.slice(1)] ?? { isDelivered: true };
      },
      nowMs: () => this.nowMs,
      clocks: { steadyMs: () => this.nowMs, wallMs: () => this.nowMs },
      after: (ms, call) => this.after(ms, call),
      onError: (error) => void this.logged.push(String(error)),
      isPrivateAllowed: false,
      resetsAtMs: () => 86_400_000,
      newId: () => `id-${(this.#lastId += 1)}`,
      newSecret: () => 'whsec_AAAA',
      log: {
        info: () => undefined,
        warn: (message) => void this.logged.push(message),
        error: (message) => void this.logged.push(message),
      },
    };
    const own = new OwnWebhooks(deps);
    const barrier = { pass: async () => [] };
    this.keeper = new Webhooks({ ...deps, store: own, messages: own, barrier, known: own.knownHooks });
    this.keeper.open();
  }

  async make(path: string, events: readonly WebhookEvent[], principal = ADMIN, orgId?: string): Promise<string> {
    const made = await this.keeper.create(principal, { url: URL_OF(path), events, orgId });
    if (!made.ok) throw new Error(made.fault.kind);
    return made.value.id;
  }

  to(path: string): any[] {
    return this.calls.filter(({ url }) => url === URL_OF(path)).map(({ body }) => JSON.parse(body));
  }

  async status(id: string) {
    const found = await this.keeper.get({ principal: ADMIN, id });
    return found.ok ? found.value : undefined;
  }
}

const FAILS: Delivery = { isDelivered: false, reason: 'answered 500' };

describe('webhooks', () => {
  test('say what has happened, to those that want to know', async () => {
    const bench = new Bench();
    await bench.make('halts', ['halt.created']);
    await bench.make('others', ['violation', 'halt.released']);
    bench.keeper.reportEffect(haltCreated())?.settle(true);
    await bench.settled();
    expect(bench.to('halts')).toEqual([
      {
        type: 'halt.created',
        timestamp: '1970-01-01T00:16:40.000Z',
        data: {
          id: 'h',
          scope: 'org:acme',
          mode: 'pause',
          actions: ['*'],
          reason: 'test',
          created_by: 'key:1',
          created_at: '1970-01-01T00:00:00.000Z',
          expires_at: null,
          released_at: null,
          released_by: null,
          release_reason: null,
        },
      },
    ]);
    expect(bench.to('others')).toEqual([]);
  });

  test('get the events of their own org and the halts of everybody, and nothing else', async () => {
    const bench = new Bench();
    const events: WebhookEvent[] = ['halt.created', 'policy.reload_failed', 'budget.exceeded'];
    await bench.make('acme', events, ofOrg('acme'));
    await bench.make('globex', events, ADMIN, 'globex');
    await bench.make('all', events);
    for (const scope of ['org:acme', 'team:globex/x', 'global'])
      bench.keeper.reportEffect(haltCreated(scope))?.settle(true);
    bench.keeper.reportOwn('policy.reload_failed', { reason: 'line 1' });
    bench.keeper
      .reportExceeded({
        eventType: 'BudgetLimitExceeded',
        lineage: { orgId: 'acme', teamId: 't', agentId: 'a' },
        actor: 'x',
        payload: { tier: 'global', period: 'daily', resets_at: 'later' },
      })
      ?.settle(true);
    await bench.settled();
    const seen = (path: string) => bench.to(path).map(({ type, data }) => data.scope ?? data.tier ?? type);
    expect({ acme: seen('acme'), globex: seen('globex'), all: seen('all') }).toEqual({
      acme: ['org:acme', 'global'],
      globex: ['team:globex/x', 'global'],
      all: ['org:acme', 'team:globex/x', 'global', 'policy.reload_failed', 'global'],
    });
  });

  test('wait until what they report is recorded, and drop what was rolled back', async () => {
    const bench = new Bench();
    await bench.make('hook', ['halt.created']);
    const first = bench.keeper.reportEffect(haltCreated('org:acme', 'rolled back'));
    const second = bench.keeper.reportEffect(haltCreated('org:acme', 'recorded'));
    second?.settle(true);
    await bench.settled();
    expect(bench.calls).toEqual([]);
    first?.settle(false);
    await bench.settled();
    expect(bench.to('hook').map(({ data }) => data.reason)).toEqual(['recorded']);
    expect([...bench.rows.keys()].filter((key) => key.startsWith('message'))).toEqual([]);
  });

  test('call again within 5 s, then after twice the time, up to an hour', async () => {
    const bench = new Bench();
    bench.answers.hook = FAILS;
    const id = await bench.make('hook', ['halt.created']);
    bench.keeper.reportEffect(haltCreated())?.settle(true);
    await bench.pass(4 * HOUR_MS);
    const waits = bench.calls.slice(1).map(({ atMs }, at) => (atMs - bench.calls[at]!.atMs) / 1000);
    expect(waits).toEqual([4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600]);
    expect(new Set(bench.calls.map((call) => call.id)).size).toBe(1);
    expect(await bench.status(id)).toMatchObject({
      waiting: 1,
      hook: { failingSinceMs: 1_000_000, lastError: 'answered 500' },
    });
    delete bench.answers.hook;
    await bench.pass(HOUR_MS);
    expect(await bench.status(id)).toMatchObject({ waiting: 0, hook: { failures: 0, lastError: undefined } });
  });

  test('keep their order, and one that hangs does not keep others waiting', async () => {
    const bench = new Bench();
    let end: (delivery: Delivery) => void = () => undefined;
    bench.answers.slow = new Promise((resolve) => {
      end = resolve;
    });
    await bench.make('slow', ['halt.created']);
    await bench.make('quick', ['halt.created']);
    for (const reason of ['1', '2', '3']) bench.keeper.reportEffect(haltCreated('org:acme', reason))?.settle(true);
    await bench.pass(60_000);
    const reasons = (path: string) => bench.to(path).map(({ data }) => data.reason);
    expect({ slow: reasons('slow'), quick: reasons('quick') }).toEqual({ slow: ['1'], quick: ['1', '2', '3'] });
    bench.answers.slow = FAILS;
    end(FAILS);
    await bench.pass(4_000);
    expect(reasons('slow')).toEqual(['1', '1']);
    delete bench.answers.slow;
    await bench.pass(10_000);
    expect(reasons('slow')).toEqual(['1', '1', '1', '2', '3']);
  });

  test('hide the network of the gateway from an org', async () => {
    const bench = new Bench();
    bench.answers.hook = { isDelivered: false, reason: 'db leads to 10.0.0.5', shown: 'no address of the internet' };
    const own = await bench.make('hook', ['halt.created']);
    const ofOrg = await bench.make('hook', ['halt.created'], ADMIN, 'acme');
    bench.keeper.reportEffect(haltCreated())?.settle(true);
    await bench.pass(1_000);
    expect(await bench.status(own)).toMatchObject({ hook: { lastError: 'db leads to 10.0.0.5' } });
    expect(await bench.status(ofOrg)).toMatchObject({ hook: { lastError: 'no address of the internet' } });
  });

  test('are disabled after a day of failures, and that is said', async () => {
    const bench = new Bench();
    bench.answers.dead = FAILS;
    const id = await bench.make('dead', ['halt.created', 'webhook.disabled']);
    await bench.make('watching', ['webhook.disabled']);
    bench.keeper.reportEffect(haltCreated())?.settle(true);
    bench.keeper.reportEffect(haltCreated())?.settle(true);
    await bench.pass(23 * HOUR_MS);
    expect((await bench.status(id))?.hook.disabledAtMs).toBeUndefined();
    await bench.pass(3 * HOUR_MS);
    expect(await bench.status(id)).toMatchObject({
      waiting: 0,
      hook: { disabledAtMs: expect.any(Number), dropped: 2 },
    });
    expect(bench.to('watching')).toMatchObject([
      { type: 'webhook.disabled', data: { id, host: 'example.com', last_error: 'answered 500', dropped: 2 } },
    ]);
    const before = bench.calls.length;
    bench.keeper.reportEffect(haltCreated())?.settle(true);
    await bench.pass(HOUR_MS);
    expect(bench.calls.length).toBe(before);
    expect(await bench.keeper.test({ principal: ADMIN, id })).toMatchObject({ fault: { kind: 'conflict' } });
    expect(bench.logged).toEqual([
      'a webhook cannot be called; it is tried again',
      'a webhook is disabled, as its calls have failed for a day',
    ]);
  });

  test('survive a restart with what waits, in order, and with the day they have', async () => {
    const before = new Bench();
    before.answers.hook = FAILS;
    const id = await before.make('hook', ['halt.created']);
    for (const reason of ['1', '2', '3']) before.keeper.reportEffect(haltCreated('org:acme', reason))?.settle(true);
    // Saved, but neither recorded nor rolled back when the process died: the halt stands after a restart.
    before.keeper.reportEffect(haltCreated('org:acme', '4'));
    await before.pass(HOUR_MS);
    const after = new Bench(new Map([...before.rows].reverse()));
    after.nowMs = before.nowMs;
    await after.settled();
    expect(after.to('hook').map(({ data }) => data.reason)).toEqual(['1', '2', '3', '4']);
    expect(new Set(after.calls.map(({ secret }) => secret))).toEqual(new Set(['whsec_AAAA']));
    expect(await after.status(id)).toMatchObject({ waiting: 0, hook: { failures: 0 } });

    const failing = new Bench(new Map(before.rows), { hook: FAILS });
    failing.nowMs = before.nowMs;
    await failing.pass(24 * HOUR_MS);
    expect((await failing.status(id))?.hook.disabledAtMs).toBeDefined();
  });

  test('hold a thousand messages each, and say how many they dropped', async () => {
    const bench = new Bench();
    bench.answers.hook = FAILS;
    const id = await bench.make('hook', ['halt.created']);
    for (let count = 0; count < 1_500; count += 1) bench.keeper.reportEffect(haltCreated())?.settle(true);
    await bench.pass(2_000);
    expect(await bench.status(id)).toMatchObject({ waiting: 1_000, hook: { dropped: 500 } });
    expect(bench.rows.get(`hook:${id}`)).toMatchObject({ hook: { dropped: 500 } });
    expect([...bench.rows.keys()].filter((key) => key.startsWith('message')).length).toBe(1_000);
    expect(bench.keeper.tally.dropped).toBe(500);
  });

  test('say once in each period that a cap is exceeded', async () => {
    const bench = new Bench();
    await bench.make('hook', ['budget.exceeded']);
    const denied = (resetsAt: string, more: object = {}): AuditDraft => ({
      eventType: 'BudgetLimitExceeded',
      lineage: { orgId: 'acme', teamId: 't', agentId: 'a' },
      actor: 'x',
      payload: { tier: 'org', period: 'daily', spent_usd: 9, limit_usd: 10, resets_at: resetsAt, ...more },
    });
    const day = '1970-01-02T00:00:00.000Z';
    for (const draft of [denied(day), denied(day), denied(day, { dry_run: true }), denied('later')])
      bench.keeper.reportExceeded(draft)?.settle(true);
    const alert = { tier: 'org', orgId: 'acme', teamId: null, agentId: null, period: 'daily' } as const;
    bench.keeper
      .reportEffect({
        kind: 'budget-alert',
        alert: { ...alert, percent: 100, spentMicroUsd: 10_000_000, limitMicroUsd: 10_000_000 },
      })
      ?.settle(true);
    await bench.settled();
    expect(bench.to('hook').map(({ data }) => data)).toEqual([
      {
        tier: 'org',
        org_id: 'acme',
        team_id: null,
        agent_id: null,
        period: 'daily',
        spent_usd: 9,
        limit_usd: 10,
        resets_at: day,
      },
      expect.objectContaining({ resets_at: 'later' }),
    ]);
  });

  test('end with their maker, but for those taken over, also after a restart', async () => {
    const bench = new Bench();
    const own = await bench.make('own', ['halt.created'], ofOrg('acme'));
    const taken = await bench.make('taken', ['halt.created'], ofOrg('acme'));
    expect(await bench.keeper.takeOver({ principal: ADMIN, id: taken })).toMatchObject({
      value: { hook: { id: taken, createdBy: 'key:1' } },
    });
    const again = new Bench(bench.rows);
    const asked = { makers: ['key:acme'], actor: 'key:1' };
    expect(await again.keeper.endMade({ ...asked, cascade: true })).toMatchObject({
      value: { deleted: [{ id: own, url: URL_OF('own') }], kept: [] },
    });
    expect([await again.status(own), (await again.status(taken))?.hook.createdBy]).toEqual([undefined, 'key:1']);
    expect([...again.rows.keys()]).toEqual([`hook:${taken}`]);
  });

  test('are limited in number, for each org and in all', async () => {
    const bench = new Bench();
    const make = (principal: Principal) =>
      bench.keeper.create(principal, { url: URL_OF('x'), events: ['violation'], orgId: undefined });
    const many = await Promise.all(Array.from({ length: 20 }, () => make(ofOrg('acme'))));
    expect(many.filter(({ ok: isMade }) => isMade).length).toBe(10);
    expect(many.at(-1)).toMatchObject({ fault: { kind: 'conflict' } });
    const more = await Promise.all(Array.from({ length: 100 }, () => make(ADMIN)));
    expect(more.filter(({ ok: isMade }) => isMade).length).toBe(90);
  });
});

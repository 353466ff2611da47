/** Webhooks that the gateways of a cluster share, over a model of the database. */
import { describe, expect, test } from 'vitest';
import type { AuditDraft } from '../../src/core/audit/audit.ts';
import { fail, ok } from '../../src/core/base/result.ts';
import type { Halt } from '../../src/core/halts/halt.ts';
import type { Principal } from '../../src/core/identity/roles.ts';
import type { Webhook, WebhookEvent } from '../../src/core/webhooks/webhook.ts';
import type { Delivery } from '../../src/webhooks/delivery.ts';
import type { Report } from '../../src/webhooks/hooks.ts';
import { Outbox } from '../../src/webhooks/outbox.ts';
import type { Call } from '../../src/webhooks/sender.ts';
import { Webhooks, type WebhooksDeps } from '../../src/webhooks/webhooks.ts';
import { ModelWebhooks } from '../support/model-webhooks.ts';
import { MovedClock } from '../support/moved-clock.ts';

const ADMIN: Principal = { subject: 'key:1', scopes: ['admin'], orgId: null };
const HOUR_MS = 3_600_000;
const ARRIVED: Delivery = { isDelivered: true };
const FAILS: Delivery = { isDelivered: false, reason: 'answered 500' };
const PAGE = { orgId: undefined, perPage: 50, cursor: undefined };

const haltCreated = (id: string) => {
  const halt: Halt = {
    id,
    scope: 'org:acme',
    mode: 'pause',
    actions: ['*'],
    reason: 'test',
    createdBy: 'key:1',
    createdAtMs: 0,
    expiresAtMs: undefined,
    released: undefined,
  };
  return { kind: 'halt-changed', halt } as const;
};
const exceeded: AuditDraft = {
  eventType: 'BudgetLimitExceeded',
  lineage: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
  actor: 'agent',
  payload: { tier: 'org', period: 'daily', spent_usd: 3, limit_usd: 3, resets_at: '2030-01-02T00:00:00.000Z' },
};

type Gateway = { readonly name: string; readonly rows: Map<string, unknown>; readonly webhooks: Webhooks };

/** Gateways on one model of the database, a clock that the test moves, and receivers that answer as it says. */
class World extends MovedClock {
  readonly store = new ModelWebhooks(() => this.nowMs);
  readonly calls: { readonly by: string; readonly id: string; readonly path: string; readonly data: any }[] = [];
  readonly logged: string[] = [];
  answer: (by: string, path: string) => Delivery | Promise<Delivery> = () => ARRIVED;
  isRecorded = true;
  readonly #gateways: Gateway[] = [];

  readonly #killed = new Set<Webhooks>();
  #lastId = 0;

  async start(name: string, rows = new Map<string, unknown>()): Promise<Gateway> {
    const log = (message: string): void => void this.logged.push(`${name}: ${message}`);
    const store = this.store.storeOf(name);
    const deps: Omit<WebhooksDeps, 'store' | 'messages' | 'known'> = {
      barrier: {
        pass: async () => {
          const read = await Promise.all(this.#gateways.map((each) => each.webhooks.refresh()));
          return this.#gateways.filter((_, at) => !read[at]!.ok).map((each) => each.name);
        },
      },
      clocks: { steadyMs: () => this.nowMs, wallMs: () => this.nowMs },
      states: {
        load: () => [...rows].map(([id, row]) => ({ id, row })),
        save: async (_table, id, row) => void rows.set(id, structuredClone(row)),
        remove: async (_table, id) => void rows.delete(id),
      },
      audit: { record: async () => (this.isRecorded ? ok(undefined) : fail({ kind: 'audit_unavailable' })) },
      send: async ({ id, url, body }: Call) => {
        const path = new URL(url).pathname;
        this.calls.push({ by: name, id, path, data: JSON.parse(body) });
        return this.answer(name, path);
      },
      nowMs: () => this.nowMs,
      after: (ms, call) =>
        this.after(ms, () => {
          if (!this.#killed.has(webhooks)) call();
        }),
      onError: (error) => log(String(error)),
      isPrivateAllowed: false,
      resetsAtMs: () => 86_400_000,
      newId: () => `id-${(this.#lastId += 1)}`,
      newSecret: () => 'whsec_AAAA',
      log: { info: log, warn: log, error: log },
    };
    const outbox = new Outbox({ ...deps, store });
    const webhooks = new Webhooks({ ...deps, store, messages: outbox, known: { hooks: [], waiting: 0 } });
    const gateway = { name, rows, webhooks };
    this.#gateways.push(gateway);
    expect(await outbox.bringHooks()).toEqual(ok(undefined));
    await outbox.bringMessages();
    expect(await webhooks.refresh()).toEqual(ok(undefined));
    webhooks.open();
    return gateway;
  }

  /** It does nothing any more, and what it held is free. */
  kill(gateway: Gateway): void {
    this.store.gone.add(gateway.name);
    this.#gateways.splice(this.#gateways.indexOf(gateway), 1);
    this.#killed.add(gateway.webhooks);
  }

  async make({ webhooks }: Gateway, path: string, events: readonly WebhookEvent[], orgId?: string) {
    const made = await webhooks.create(ADMIN, { url: `https://example.com/${path}`, events, orgId });
    if (!made.ok) throw new Error(made.fault.kind);
    return made;
  }

  /** Reports that a halt was created, as if it was saved and recorded then. */
  async report({ webhooks }: Gateway, id: string): Promise<void> {
    const report = webhooks.reportEffect(haltCreated(id));
    await report?.saved;
    report?.settle(true);
    await this.settled();
  }

  get sent(): string[] {
    return this.calls.map(({ by, data }) => `${by} ${data.data.id ?? data.type}`);
  }
}

async function twoGateways() {
  const world = new World();
  const one = await world.start('one');
  const two = await world.start('two');
  return { world, one, two };
}

describe('webhooks of a cluster', () => {
  test('are made at one gateway, and shown and reported to by all', async () => {
    const { world, one, two } = await twoGateways();
    const { value: hook, unconfirmed } = await world.make(one, 'halts', ['halt.created']);
    expect(unconfirmed).toEqual([]);
    await world.report(two, 'h1');
    await world.report(one, 'h2');
    expect(world.sent).toEqual(['two h1', 'one h2']);
    const { secret, ...shown } = hook;
    for (const { webhooks } of [one, two]) {
      expect(await webhooks.list(ADMIN, PAGE)).toEqual(ok({ items: [{ hook: shown, waiting: 0 }], next: undefined }));
      expect(webhooks.counts).toEqual({ active: 1, disabled: 0 });
    }
    const others = { ...ADMIN, orgId: 'globex' };
    expect(await two.webhooks.get({ principal: others, id: hook.id })).toMatchObject({ fault: { kind: 'not_found' } });
    expect(await two.webhooks.remove({ principal: ADMIN, id: hook.id })).toEqual({ ...ok(undefined), unconfirmed: [] });
    expect(one.webhooks.reportEffect(haltCreated('h3'))).toBe(undefined);
    expect(secret).toBe('whsec_AAAA');
  });

  test('send each message once, however often all of them look', async () => {
    const { world, one, two } = await twoGateways();
    await world.make(one, 'halts', ['halt.created']);
    let arrive: (delivery: Delivery) => void = () => undefined;
    world.answer = () => new Promise((resolve) => (arrive = resolve));
    await Promise.all([world.report(one, 'h1'), world.report(two, 'h2')]);
    await world.pass(5_000);
    expect(world.calls.length).toBe(1);
    world.answer = () => ARRIVED;
    arrive(ARRIVED);
    await world.pass(5_000);
    expect(world.calls.map(({ data }) => data.data.id).toSorted()).toEqual(['h1', 'h2']);
    expect(one.webhooks.tally.delivered + two.webhooks.tally.delivered).toBe(2);
  });

  test('wait until what they report is recorded, and say nothing where it is not', async () => {
    const { world, one, two } = await twoGateways();
    await world.make(one, 'halts', ['halt.created']);
    const [first, second] = ['h1', 'h2'].map((id) => one.webhooks.reportEffect(haltCreated(id)));
    await Promise.all([first!.saved, second!.saved]);
    await world.report(two, 'h3');
    await world.pass(60_000);
    expect(world.sent).toEqual([]);
    first!.settle(false);
    second!.settle(true);
    await world.pass(3_000);
    expect(world.calls.map(({ data }) => data.data.id)).toEqual(['h2', 'h3']);
    expect(world.store.messages).toEqual([]);
  });

  test('are sent by another gateway when the one that reported has died', async () => {
    const { world, one, two } = await twoGateways();
    await world.make(one, 'halts', ['halt.created']);
    const report = one.webhooks.reportEffect(haltCreated('h1')) as Report;
    await report.saved;
    world.kill(one);
    await world.pass(2_000);
    expect(world.sent).toEqual(['two h1']);
    expect(two.webhooks.tally).toEqual({ delivered: 1, failed: 0, dropped: 0 });
  });

  test('are sent again, under their id, when a gateway died before it noted that', async () => {
    const { world, one } = await twoGateways();
    await world.make(one, 'halts', ['halt.created']);
    world.answer = (by) => (by === 'one' ? new Promise(() => undefined) : ARRIVED);
    await world.report(one, 'h1');
    world.kill(one);
    await world.pass(14_000);
    expect(world.sent).toEqual(['one h1']);
    await world.pass(2_000);
    expect(world.sent).toEqual(['one h1', 'two h1']);
    expect(new Set(world.calls.map(({ id }) => id)).size).toBe(1);
  });

  test('are noted once the database is back, and not sent once more by the same', async () => {
    const { world, one } = await twoGateways();
    await world.make(one, 'halts', ['halt.created']);
    world.answer = async () => {
      for (const name of ['one', 'two']) world.store.cutOff.add(name);
      return ARRIVED;
    };
    await world.report(one, 'h1');
    await world.pass(10_000);
    world.store.cutOff.clear();
    await world.pass(60_000);
    expect(world.sent).toEqual(['one h1']);
    expect(world.store.messages).toEqual([]);
  });

  test('are not called by a gateway that was stopped after it had taken one', async () => {
    const { world, one } = await twoGateways();
    await world.make(one, 'halts', ['halt.created']);
    world.store.onTaken = async (run) => {
      if (run === 'one') world.nowMs += 20_000;
    };
    await world.report(one, 'h1');
    expect(world.sent).toEqual([]);
    world.kill(one);
    await world.pass(2_000);
    expect(world.sent).toEqual(['two h1']);
  });

  test('keep their messages here while the database is away, also over a restart', async () => {
    const { world, one, two } = await twoGateways();
    await world.make(one, 'halts', ['halt.created']);
    world.store.cutOff.add('one');
    const reports = ['h1', 'h2'].map((id) => one.webhooks.reportEffect(haltCreated(id)) as Report);
    await Promise.all(reports.map(({ saved }) => saved));
    expect(one.rows.size).toBe(2);
    reports[0]!.settle(true);
    reports[1]!.settle(false);
    await world.pass(5_000);
    expect([one.rows.size, world.sent]).toEqual([1, []]);
    world.kill(one);
    const again = await world.start('one again', one.rows);
    await world.pass(2_000);
    expect(world.calls.map(({ data }) => data.data.id)).toEqual(['h1']);
    expect([again.rows.size, two.rows.size]).toEqual([0, 0]);
  });

  test('hold an answer up for a second at most where the database does not answer', async () => {
    const { world, one } = await twoGateways();
    await world.make(one, 'halts', ['halt.created']);
    world.store.hanging.add('one');
    let isSaved = false;
    void one.webhooks.reportEffect(haltCreated('h1'))!.saved.then(() => {
      isSaved = true;
    });
    await world.pass(999);
    expect([isSaved, one.rows.size]).toEqual([false, 0]);
    await world.pass(1);
    await world.settled();
    expect([isSaved, one.rows.size]).toEqual([true, 1]);
  });

  test('report a cap once, whichever gateways deny because of it', async () => {
    const { world, one, two } = await twoGateways();
    await world.make(one, 'budgets', ['budget.exceeded']);
    for (const { webhooks } of [one, two, one]) {
      const report = webhooks.reportExceeded(exceeded);
      await report?.saved;
      report?.settle(true);
      await world.settled();
    }
    await world.pass(5_000);
    expect(world.calls.map(({ data }) => data.type)).toEqual(['budget.exceeded']);
  });

  test('report a cap also where the denial before was not recorded, whenever it comes', async () => {
    for (const turns of [0, 1, 2, 3, 4, 5, 6]) {
      const { world, one } = await twoGateways();
      await world.make(one, 'budgets', ['budget.exceeded']);
      for (const isRecorded of [false, true]) {
        const report = one.webhooks.reportExceeded(exceeded);
        await report!.saved;
        report!.settle(isRecorded);
        for (let turn = 0; turn < turns; turn += 1) await undefined; // the withdrawal is on its way
      }
      await world.pass(5_000);
      expect([turns, world.calls.length, world.store.messages]).toEqual([turns, 1, []]);
    }
  });

  test.each([
    ['before', [false, true]],
    ['after', [true, false]],
  ])('report a cap that one gateway could not record %s another one did', async (_when, [isFirst]) => {
    const { world, one, two } = await twoGateways();
    await world.make(one, 'budgets', ['budget.exceeded']);
    const [withdrawn, recorded] = [one, two].map(({ webhooks }) => webhooks.reportExceeded(exceeded)!);
    await Promise.all([withdrawn!.saved, recorded!.saved]);
    const settling = [() => withdrawn!.settle(false), () => recorded!.settle(true)];
    for (const settle of isFirst ? settling.reverse() : settling) {
      settle();
      await world.settled();
    }
    await world.pass(5_000);
    expect([world.calls.length, world.store.messages]).toEqual([1, []]);
  });

  test('report a cap that was withdrawn while the database was away', async () => {
    const { world, one } = await twoGateways();
    await world.make(one, 'budgets', ['budget.exceeded']);
    const report = async (isRecorded: boolean) => {
      const reported = one.webhooks.reportExceeded(exceeded)!;
      const saved = reported.saved;
      await world.pass(2_000);
      await saved;
      reported.settle(isRecorded);
      await world.settled();
    };
    await report(false);
    world.store.cutOff.add('one');
    await report(false);
    await report(true);
    expect([one.rows.size, world.calls.length]).toEqual([1, 0]);
    world.store.cutOff.clear();
    await world.pass(5_000);
    expect([one.rows.size, world.calls.length, world.store.messages]).toEqual([0, 1, []]);
  });

  test('are tried again by any gateway, and given up after a day by one', async () => {
    const { world, one, two } = await twoGateways();
    await world.make(one, 'halts', ['halt.created']);
    await world.make(one, 'others', ['webhook.disabled']);
    world.answer = (_by, path) => (path === '/halts' ? FAILS : ARRIVED);
    await world.report(one, 'h1');
    world.kill(one);
    await world.pass(3_000);
    expect(world.sent).toEqual(['one h1']);
    Object.assign(world.store.hooks[0]!, { failingSinceMs: world.nowMs - 24 * HOUR_MS });
    await world.pass(10_000);
    const halts = world.calls.filter(({ path }) => path === '/halts');
    expect(new Set(halts.map(({ id }) => id)).size).toBe(1);
    expect(halts.map(({ by }) => by)).toEqual(['one', 'two']);
    const others = world.calls.filter(({ path }) => path === '/others');
    expect(others.map(({ data }) => [data.type, data.data.dropped, data.data.last_error])).toEqual([
      ['webhook.disabled', 1, 'answered 500'],
    ]);
    expect(two.webhooks.counts).toEqual({ active: 1, disabled: 1 });
    expect(two.webhooks.reportEffect(haltCreated('h2'))).toBe(undefined);
  });

  test('are limited in number over all gateways, and undone where they are not recorded', async () => {
    const { world, one, two } = await twoGateways();
    const both = Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? one : two));
    const made = await Promise.allSettled(both.map((at, nth) => world.make(at, `h${nth}`, ['violation'], 'acme')));
    expect(made.filter(({ status }) => status === 'fulfilled').length).toBe(10);
    world.isRecorded = false;
    await expect(world.make(one, 'unrecorded', ['violation'])).rejects.toThrow('audit_unavailable');
    expect(world.store.hooks.length).toBe(10);
    const removed = await one.webhooks.remove({ principal: ADMIN, id: world.store.hooks[0]!.id });
    expect([removed.ok, world.store.hooks.length]).toEqual([false, 10]);
  });

  test('cannot be made, shown or tried without the database', async () => {
    const { world, one } = await twoGateways();
    const { value } = await world.make(one, 'halts', ['halt.created']);
    world.store.cutOff.add('one');
    const asked = { principal: ADMIN, id: value.id };
    const { webhooks } = one;
    const new_ = { url: 'https://example.com', events: ['violation'], orgId: undefined } as const;
    for (const answer of [
      await webhooks.list(ADMIN, PAGE),
      await webhooks.get(asked),
      await webhooks.test(asked),
      await webhooks.remove(asked),
      await webhooks.create(ADMIN, new_),
    ])
      expect(answer).toMatchObject({ ok: false, fault: { kind: 'store_unreachable' } });
  });

  test('keep what a gateway had when it was alone, and forget it there', async () => {
    const world = new World();
    const hook: Webhook = {
      id: 'old',
      url: 'https://example.com/old',
      events: ['halt.created'],
      orgId: null,
      secret: 'whsec_AAAA',
      createdBy: 'key:1',
      createdAtMs: 1,
      failingSinceMs: undefined,
      failures: 0,
      lastError: undefined,
      disabledAtMs: undefined,
      dropped: 0,
    };
    const body = JSON.stringify({ type: 'halt.created', data: { id: 'h0' } });
    const rows = new Map<string, unknown>([
      ['message:m', { kind: 'message', hookId: 'old', id: 'm', number: 7, body }],
      ['hook:old', { kind: 'hook', hook }],
    ]);
    await world.start('one');
    await world.start('two', rows);
    await world.pass(3_000);
    expect([world.calls.map(({ id }) => id), world.store.hooks.map(({ id }) => id), rows.size]).toEqual([
      ['m'],
      ['old'],
      0,
    ]);
  });

  test('end with their maker at every gateway, but for those taken over at another', async () => {
    const { world, one, two } = await twoGateways();
    const own = (await world.make(one, 'own', ['halt.created'])).value;
    const taken = (await world.make(one, 'taken', ['halt.created'], 'acme')).value;
    const admin: Principal = { subject: 'key:2', scopes: ['admin'], orgId: 'acme' };
    expect(await two.webhooks.takeOver({ principal: { ...admin, orgId: 'globex' }, id: taken.id })).toEqual(
      fail({ kind: 'not_found', what: `webhook ${taken.id}` }),
    );
    expect(await two.webhooks.takeOver({ principal: { ...admin, scopes: ['write'] }, id: taken.id })).toMatchObject({
      fault: { kind: 'insufficient_scope' },
    });
    world.isRecorded = false;
    const asked = { makers: ['key:1'], actor: 'key:3' };
    expect(await two.webhooks.takeOver({ principal: admin, id: taken.id })).toEqual(
      fail({ kind: 'audit_unavailable' }),
    );
    expect(await two.webhooks.endMade({ ...asked, cascade: true })).toEqual(fail({ kind: 'audit_unavailable' }));
    world.isRecorded = true;
    expect(await two.webhooks.takeOver({ principal: admin, id: taken.id })).toMatchObject({
      value: { hook: { id: taken.id, createdBy: 'key:2' }, waiting: 0 },
    });
    expect(await one.webhooks.endMade({ ...asked, cascade: false })).toMatchObject({
      value: { deleted: [], kept: [{ id: own.id, url: own.url }] },
    });
    expect(await one.webhooks.endMade({ ...asked, cascade: true })).toMatchObject({
      value: { deleted: [{ id: own.id, url: own.url }], kept: [] },
    });
    expect(await two.webhooks.list(ADMIN, PAGE)).toMatchObject({ value: { items: [{ hook: { id: taken.id } }] } });
    await world.report(one, 'h1');
    expect(world.calls.map(({ path }) => path)).toEqual(['/taken']);
  });

  test('hand over what is left when their gateway stops', async () => {
    const { world, one } = await twoGateways();
    await world.make(one, 'halts', ['halt.created']);
    world.answer = () => new Promise(() => undefined);
    await world.report(one, 'h1');
    const report = one.webhooks.reportEffect(haltCreated('h2')) as Report;
    report.settle(true);
    const closed = one.webhooks.close();
    await world.pass(2_000);
    await closed;
    world.kill(one);
    world.answer = () => ARRIVED;
    await world.pass(16_000);
    expect(world.sent).toEqual(['one h1', 'two h1', 'two h2']);
  });
});

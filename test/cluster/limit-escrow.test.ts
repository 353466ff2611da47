/**
 * Limits of several gateways against a ledger in TypeScript, with the gateways' own code: messages that are lost, late or
 * repeated, gateways that die and come back or do not, and time that passes. What was allowed is judged by when it was.
 */
import { describe, expect, test } from 'vitest';
import { agentKeyOf, type OpId } from '../../src/core/base/ids.ts';
import type { AccountRow } from '../../src/core/budget/escrow.ts';
import type { OpNumber } from '../../src/core/budget/reservations.ts';
import { LimitGrants } from '../../src/core/limits/grants.ts';
import { LimitTracker } from '../../src/core/limits/limits.ts';
import type { LimitRow } from '../../src/core/limits/rows.ts';
import { CRAWLER } from '../support/governor.ts';
import { limitedPolicies, START_MS } from '../support/limits.ts';
import { type LedgerRule, ModelLedger } from '../support/model-ledger.ts';
import { randomOf } from '../support/random.ts';

const MAX = 8;
const EVERY_MS = 10_000;
const TTL_MS = 60_000;
const SPAN = { id: 'span', per: 'org', calls: MAX, every: '10s' };
const LIFE = { id: 'life', per: 'session', calls: MAX };
/** After its end, a gateway that does not come back may have used something that counts for so long. */
const LASTS_MS = 1.1 * EVERY_MS;

type Rule = LedgerRule | 'waits until the use of the dead has left the span' | 'takes over what its predecessor used';

class World {
  readonly ledger: ModelLedger;
  readonly without: Rule | undefined;
  readonly limits: ReturnType<typeof limitedPolicies>['limits'];
  nowMs = START_MS;
  gateways: ReturnType<World['open']>[] = [];
  dead: { readonly run: string; readonly lapsesAtMs: number }[] = [];
  sent: { readonly run: string; readonly sequence: number; readonly rows: readonly AccountRow[] }[] = [];
  allowedAtMs: number[] = [];
  runs = 0;
  ops = 0;

  constructor(limit: object, without?: Rule) {
    this.without = without;
    this.ledger = new ModelLedger(without as LedgerRule);
    this.limits = limitedPolicies([limit]).limits;
    for (let at = 0; at < 3; at += 1) this.gateways.push(this.open([]));
  }

  open(stored: readonly LimitRow[]) {
    this.runs += 1;
    const run = `run-${this.runs}`;
    this.ledger.join(run);
    const grants = new LimitGrants(5_000);
    const tracker = new LimitTracker({ maxStates: 100, sessionTtlMs: TTL_MS, firstOf: (key) => key, grants });
    tracker.reconfigure(this.limits);
    tracker.restore(stored);
    return { run, grants, tracker, sequence: 0, disk: new Map(stored.map((row) => [row.key, row])) };
  }

  check(at: number): void {
    const { tracker, grants, disk } = this.gateways[at]!;
    this.ops += 1;
    const subject = { agent: CRAWLER, key: agentKeyOf(CRAWLER), opId: `t:s${this.ops}` as OpId };
    const checked = { ...subject, action: 'tool.call', resource: 'web', costMicroUsd: 0 };
    const reached = tracker.firstReached(checked, this.nowMs);
    const short = tracker.shortages(this.nowMs);
    if (short !== undefined)
      for (const { limited, lacksMicroUsd } of short) grants.need(limited, lacksMicroUsd, this.nowMs);
    else if (reached === undefined) {
      tracker.count(this.ops as OpNumber, 0, this.nowMs);
      this.allowedAtMs.push(this.nowMs);
      for (const { row } of tracker.drainChanges()) if (row !== undefined) disk.set(row.key, row);
    }
  }

  exchange(at: number, isAll: boolean): void {
    const gateway = this.gateways[at]!;
    const rows = gateway.grants.due(100, isAll, this.nowMs);
    gateway.sequence += 1;
    if (rows.length > 0) this.sent.push({ run: gateway.run, sequence: gateway.sequence, rows });
  }

  deliver(nth: number, isKept: boolean, isAnswered: boolean): void {
    const message = this.sent[nth]!;
    if (!isKept) this.sent.splice(nth, 1);
    const grants = this.ledger.exchange(message.run, message.sequence, message.rows, this.nowMs);
    const gateway = this.gateways.find(({ run }) => run === message.run);
    if (gateway === undefined || grants === 'replaced' || message.sequence !== gateway.sequence) return;
    if (grants !== undefined && isAnswered) gateway.tracker.takeGrants(message.rows, grants, this.nowMs);
    else gateway.grants.restate(message.rows);
  }

  /** It starts again on its data directory, or another one takes its place. */
  kill(at: number, isBack: boolean): void {
    const { run, disk } = this.gateways[at]!;
    this.ledger.retire(run);
    const next = (this.gateways[at] = this.open(isBack ? [...disk.values()] : []));
    if (isBack && this.without !== 'takes over what its predecessor used') this.ledger.adopt(next.run, run);
    const isAtOnce = this.without === 'waits until the use of the dead has left the span';
    if (!isBack) this.dead.push({ run, lapsesAtMs: isAtOnce ? this.nowMs : this.nowMs + LASTS_MS });
  }

  pass(ms: number): void {
    this.nowMs += ms;
    for (const { run } of this.dead.filter(({ lapsesAtMs }) => this.nowMs >= lapsesAtMs)) this.ledger.lapse(run);
    this.dead = this.dead.filter(({ lapsesAtMs }) => this.nowMs < lapsesAtMs);
  }
}

/** `mayDie`: without it, gateways that are killed come back. Answers the world after the first violation, or the last. */
function play(world: World, seed: number, mayDie: boolean, isViolated: (world: World) => boolean): boolean {
  const random = randomOf(seed);
  for (let step = 0; step < 600; step += 1) {
    const at = Math.floor(random() * 3);
    const what = random();
    if (what < 0.4) world.check(at);
    else if (what < 0.55) world.exchange(at, random() < 0.5);
    else if (what < 0.6) world.gateways[at]!.grants.recall(world.ledger.names(), world.nowMs, world.nowMs);
    else if (what < 0.61) world.kill(at, !mayDie || random() < 0.5);
    else if (what < 0.655) world.pass(Math.floor(random() * 3_000));
    else if (what < 0.66) world.pass(Math.floor(random() * 2 * TTL_MS));
    else if (world.sent.length > 0)
      world.deliver(Math.floor(random() * world.sent.length), random() < 0.2, random() < 0.9);
    if (isViolated(world)) return true;
  }
  return false;
}

const inSpan = ({ allowedAtMs, nowMs }: World): number => allowedAtMs.filter((at) => at > nowMs - EVERY_MS).length;

/** How many were allowed since the session began: it ends when nobody has used it for its time. */
function inLife({ allowedAtMs }: World): number {
  let begin = 0;
  for (let nth = 1; nth < allowedAtMs.length; nth += 1)
    if (allowedAtMs[nth]! - allowedAtMs[nth - 1]! >= TTL_MS) begin = nth;
  return allowedAtMs.length - begin;
}

/** How many checks were allowed in all, over so many seeds; undefined: a maximum was passed. */
function allowedIn(limit: object, seeds: number, without?: Rule): number | undefined {
  let allowed = 0;
  const isSpan = limit === SPAN;
  for (let seed = 1; seed <= seeds; seed += 1) {
    const world = new World(limit, without);
    if (play(world, seed, isSpan, isSpan ? (now) => inSpan(now) > MAX : (now) => inLife(now) > MAX)) return undefined;
    allowed += world.allowedAtMs.length;
  }
  return allowed;
}

describe('limits over several gateways', () => {
  test('pass no maximum in any span, whatever is lost, late, repeated or dead', () => {
    expect(allowedIn(SPAN, 150)).toBeGreaterThan(150 * MAX);
  });

  test('pass no maximum of a session, whatever is lost, late, repeated or killed', () => {
    expect(allowedIn(LIFE, 150)).toBeGreaterThan((150 * MAX) / 2);
  });

  test.each<Rule>([
    'waits until the use of the dead has left the span',
    'refuses late exchanges',
    'grants only what is free',
  ])('pass one without the rule: %s', (rule) => {
    expect(allowedIn(SPAN, 150, rule)).toBeUndefined();
  });

  test('pass one of a session without the rule: ends sessions together', () => {
    expect(allowedIn(LIFE, 150, 'ends sessions together')).toBeUndefined();
  });
});

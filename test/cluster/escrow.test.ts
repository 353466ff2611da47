/**
 * The escrow of budgets as a model: gateways against a ledger in TypeScript, with messages that are lost, late or
 * repeated, crashes at every point, and runs that were replaced without knowing. Small cases are tried exhaustively, with
 * gateways reduced to the rules; random schedules are run with the gateways' own code.
 */
import { describe, expect, test } from 'vitest';
import { BudgetTracker } from '../../src/core/budget/budget.ts';
import { UNLIMITED } from '../../src/core/budget/config.ts';
import { type AccountRow, BudgetGrants } from '../../src/core/budget/grants.ts';
import type { OpNumber } from '../../src/core/budget/reservations.ts';
import { type LedgerRule, ModelLedger } from '../support/model-ledger.ts';

const NOW_MS = Date.parse('2026-11-25T12:00:00Z');
const NAMED = { owner: 'global', period: 'd:2026-11-25' };
const ACCOUNT = `${NAMED.owner} ${NAMED.period}`;

/** Rules of the gateway that a mutant leaves out. */
type GatewayRule =
  /** It takes the answer to its latest exchange only. */
  | 'takes the latest answer'
  /** It lowers its own grant before it tells the ledger. */
  | 'lowers before it sends'
  /** It raises its own grant once the ledger has said so. */
  | 'raises once granted'
  /** Without the ledger for minutes, it gives up what is not in use. */
  | 'stops without the ledger';
type Rule = LedgerRule | GatewayRule;

/** One gateway as far as the rules go. */
type Side = {
  readonly run: string;
  granted: number;
  spent: number;
  reserved: number;
  sequence: number;
  isShort: boolean;
  isEnded: boolean;
  isReplaced: boolean;
};
type Message = { readonly run: string; readonly sequence: number; readonly rows: readonly AccountRow[] };
type Answer = { readonly run: string; readonly sequence: number; readonly granted: number };
type Step = readonly [
  kind:
    | 'admit'
    | 'spend'
    | 'send'
    | 'give back'
    | 'crash'
    | 'replace'
    | 'forget'
    | 'deliver'
    | 'repeat'
    | 'lose'
    | 'answer'
    | 'expire',
  at: number,
];

class World {
  readonly cap: number;
  readonly without: Rule | undefined;
  readonly ledger: ModelLedger;
  sides: Side[] = [];
  sent: Message[] = [];
  answers: Answer[] = [];
  /** Operations of runs that have crashed, until their reservations expire. */
  ghosts: { readonly run: string; readonly spent: number; readonly reserved: number }[] = [];
  past = 0;
  made = 0;

  constructor(gateways: number, cap: number, without?: Rule) {
    this.cap = cap;
    this.without = without;
    this.ledger = new ModelLedger(without as LedgerRule);
    for (let at = 0; at < gateways; at += 1) this.sides.push(this.#started());
  }

  copy(): World {
    const copy = new World(0, this.cap, this.without);
    copy.ledger.copy(this.ledger);
    copy.sides = this.sides.map((side) => ({ ...side }));
    copy.sent = [...this.sent];
    copy.answers = [...this.answers];
    copy.ghosts = [...this.ghosts];
    copy.past = this.past;
    copy.made = this.made;
    return copy;
  }

  #started(settles?: Parameters<ModelLedger['join']>[1]): Side {
    this.made += 1;
    const run = `run-${this.made}`;
    this.ledger.join(run, settles);
    return { run, granted: 0, spent: 0, reserved: 0, sequence: 0, isShort: false, isEnded: false, isReplaced: false };
  }

  /** Everything that may happen next. */
  steps(): Step[] {
    const steps: Step[] = [];
    for (const [at, { isEnded, isReplaced, reserved, granted, spent }] of this.sides.entries()) {
      if (isReplaced) steps.push(['forget', at]);
      if (isEnded) continue;
      steps.push(['admit', at], ['send', at], ['crash', at]);
      if (reserved > 0) steps.push(['spend', at]);
      if (granted > spent + reserved) steps.push(['give back', at]);
      if (!isReplaced) steps.push(['replace', at]);
    }
    for (const at of this.sent.keys()) steps.push(['deliver', at], ['repeat', at], ['lose', at]);
    for (const at of this.answers.keys()) steps.push(['answer', at]);
    for (const at of this.ghosts.keys()) steps.push(['expire', at]);
    return steps;
  }

  do([kind, at]: Step): void {
    const side = this.sides[at]!;
    switch (kind) {
      case 'admit':
        if (side.spent + side.reserved + 1 <= side.granted) side.reserved += 1;
        else side.isShort = true;
        return;
      case 'spend':
        side.reserved -= 1;
        side.spent += 1;
        return;
      case 'send':
        return this.#send(side, side.granted);
      case 'give back':
        return this.#send(side, side.spent + side.reserved);
      case 'crash': {
        const { run, spent, reserved } = side;
        this.ghosts.push({ run, spent, reserved });
        this.sides[at] = this.#started({ run, spent: new Map([[ACCOUNT, spent]]) });
        return;
      }
      // Another process has its name; this one does not know yet.
      case 'replace':
        side.isReplaced = true;
        return this.ledger.retire(side.run);
      case 'forget':
        return this.#forget(side);
      case 'deliver':
        return this.#deliver(this.sent.splice(at, 1)[0]!);
      case 'repeat':
        return this.#deliver(this.sent[at]!);
      case 'lose':
        return void this.sent.splice(at, 1);
      case 'answer':
        return this.#answer(this.answers.splice(at, 1)[0]!);
      case 'expire': {
        const [ghost] = this.ghosts.splice(at, 1);
        this.ledger.free(ghost!.run);
        this.past += ghost!.spent;
        return;
      }
      default:
        throw new Error(kind satisfies never);
    }
  }

  #send(side: Side, kept: number): void {
    if (this.without !== 'lowers before it sends') side.granted = Math.min(side.granted, kept);
    const needed = side.isShort ? Math.max(0, side.spent + side.reserved + 1 - Math.max(kept, side.spent)) : 0;
    side.sequence += 1;
    side.isShort = false;
    const amounts = { keptMicroUsd: kept, spentMicroUsd: side.spent, neededMicroUsd: needed };
    this.sent.push({
      run: side.run,
      sequence: side.sequence,
      rows: [{ ...NAMED, fromMs: 0, toMs: 0, capMicroUsd: this.cap, wantedMicroUsd: needed * 2, ...amounts }],
    });
    if (this.without === 'raises once granted') side.granted += needed;
  }

  #deliver({ run, sequence, rows }: Message): void {
    const answer = this.ledger.exchange(run, sequence, rows);
    if (answer === 'replaced') {
      const side = this.sides.find((each) => each.run === run);
      if (side !== undefined) this.#end(side);
    } else if (answer !== undefined) this.answers.push({ run, sequence, granted: answer[0]!.grantedMicroUsd });
  }

  /** It exits; its operations may go on until their reservations expire. */
  #end(side: Side): void {
    side.isEnded = true;
  }

  #answer({ run, sequence, granted }: Answer): void {
    const side = this.sides.find((each) => each.run === run);
    if (side === undefined || side.isEnded) return;
    if (sequence !== side.sequence && this.without !== 'takes the latest answer') return;
    side.granted = granted;
  }

  /**
   * At least 10 minutes after the lease: one that still runs has not reached the ledger for so long, or it would have
   * ended. What it had reserved has expired.
   */
  #forget(side: Side): void {
    if (!side.isEnded && this.without !== 'refuses replaced runs') {
      side.reserved = 0;
      if (this.without !== 'stops without the ledger') side.granted = side.spent;
      // Answers that were on their way are older than what it sends next.
      this.answers = this.answers.filter(({ run }) => run !== side.run);
    }
    if (side.isEnded) side.reserved = 0;
    this.ledger.charge(side.run, side.spent);
    this.ledger.free(side.run);
  }

  /** What was spent, and what operations may still spend. */
  get used(): number {
    const sum = (of: readonly { readonly spent: number; readonly reserved: number }[]): number =>
      of.reduce((all, { spent, reserved }) => all + spent + reserved, 0);
    return sum(this.sides) + sum(this.ghosts) + this.past;
  }

  get key(): string {
    return JSON.stringify([this.sides, this.sent, this.answers, this.ghosts, this.past, this.ledger.state]);
  }
}

/** The shortest way to more than the cap; undefined: there is none of so many steps. */
function wayToOverrun(gateways: number, cap: number, depth: number, without?: Rule): readonly Step[] | undefined {
  const seen = new Set<string>();
  let worlds: { readonly world: World; readonly way: readonly Step[] }[] = [
    { world: new World(gateways, cap, without), way: [] },
  ];
  for (let step = 0; step < depth; step += 1) {
    const next: typeof worlds = [];
    for (const { world, way } of worlds)
      for (const taken of world.steps()) {
        const after = world.copy();
        after.do(taken);
        const longer = [...way, taken];
        if (after.used > cap) return longer;
        const { key } = after;
        if (seen.has(key)) continue;
        seen.add(key);
        next.push({ world: after, way: longer });
      }
    worlds = next;
  }
  return undefined;
}

/** Small, fast, and the same everywhere. */
function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** How often each happens where it may: messages mostly arrive, and what ends a run is rare. */
const WEIGHTS: Readonly<Record<Step[0], number>> = {
  admit: 30,
  spend: 8,
  send: 15,
  'give back': 8,
  deliver: 30,
  repeat: 4,
  lose: 4,
  answer: 30,
  crash: 1,
  replace: 1,
  forget: 8,
  expire: 2,
};

function chosenFrom(steps: readonly Step[], random: () => number): Step | undefined {
  const kinds = [...new Set(steps.map(([kind]) => kind))];
  let left = random() * kinds.reduce((sum, kind) => sum + WEIGHTS[kind], 0);
  const kind = kinds.find((each) => (left -= WEIGHTS[each]) < 0);
  const ofKind = steps.filter((step) => step[0] === kind);
  return ofKind[Math.floor(random() * ofKind.length)];
}

/** How much of the cap is used in the end, on average; undefined: it was overrun. */
function randomRuns(seeds: number, steps: number, without?: Rule): number | undefined {
  let used = 0;
  for (let seed = 1; seed <= seeds; seed += 1) {
    const random = mulberry32(seed);
    const world = new World(3, 6, without);
    for (let step = 0; step < steps; step += 1) {
      const chosen = chosenFrom(world.steps(), random);
      if (chosen === undefined) break;
      world.do(chosen);
      if (world.used > world.cap) return undefined;
    }
    used += world.used / world.cap;
  }
  return used / seeds;
}

describe('the escrow of budgets', () => {
  test('overruns no cap: two gateways, every interleaving and crash point', () => {
    expect(wayToOverrun(2, 1, 5)).toBeUndefined();
  });

  test('overruns no cap in random schedules, and uses most of it', () => {
    expect(randomRuns(1_000, 120)).toBeGreaterThan(0.5);
  });

  const RULES: readonly Rule[] = [
    'refuses late exchanges',
    'refuses replaced runs',
    'waits for reservations',
    'keeps what is not settled',
    'takes the latest answer',
    'lowers before it sends',
    'raises once granted',
    'stops without the ledger',
  ];
  test.each(RULES)('overruns a cap without the rule: %s', (rule) => {
    expect(randomRuns(3_000, 120, rule)).toBeUndefined();
  });

  test("holds with the gateways' own code, whatever is lost, late or repeated", () => {
    const agent = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
    const cap = 20;
    const limitsMicroUsd = { ...UNLIMITED.limitsMicroUsd, global: { monthly: undefined, daily: cap } };
    const config = { ...UNLIMITED, limitsMicroUsd };
    for (let seed = 1; seed <= 20; seed += 1) {
      const random = mulberry32(seed);
      const ledger = new ModelLedger();
      const gateways = Array.from({ length: 3 }, (_, at) => {
        const tracker = new BudgetTracker(config, NOW_MS);
        tracker.useLedger(new BudgetGrants(5_000), config, NOW_MS);
        ledger.join(`run-${at}`);
        return { run: `run-${at}`, tracker, sequence: 0, held: [] as OpNumber[], used: 0 };
      });
      const sent: (Message & { readonly at: number })[] = [];
      for (let step = 1; step <= 400; step += 1) {
        const at = Math.floor(random() * 3);
        const gateway = gateways[at]!;
        const { tracker } = gateway;
        const what = random();
        if (what < 0.35) {
          const op = step as OpNumber;
          if (tracker.reserve(agent, op, 1, NOW_MS).ok) {
            gateway.held.push(op);
            gateway.used += 1;
          } else tracker.needGrants(tracker.shortagesOf(agent, op, 1), NOW_MS);
        } else if (what < 0.5 && gateway.held.length > 0)
          tracker.record(agent, 1, { op: gateway.held.shift()! }, NOW_MS);
        else if (what < 0.6) tracker.recall([NAMED]);
        else if (what < 0.8) {
          const rows = tracker.dueRows(100, true, NOW_MS);
          gateway.sequence += 1;
          if (rows.length > 0) sent.push({ at, run: gateway.run, sequence: gateway.sequence, rows });
        } else if (sent.length > 0) {
          const message = sent[Math.floor(random() * sent.length)]!;
          if (random() < 0.7) sent.splice(sent.indexOf(message), 1);
          const grants = ledger.exchange(message.run, message.sequence, message.rows);
          const asked = gateways[message.at]!;
          const isLatest = message.sequence === asked.sequence;
          if (grants !== undefined && grants !== 'replaced' && isLatest && random() < 0.8)
            asked.tracker.takeGrants(message.rows, grants, NOW_MS);
        }
        expect(gateways.reduce((sum, { used }) => sum + used, 0)).toBeLessThanOrEqual(cap);
      }
      expect(gateways.reduce((sum, { used }) => sum + used, 0)).toBeGreaterThan(0);
    }
  });
});

/**
 * The escrow of budgets as a model: gateways against a ledger in TypeScript, with messages that are lost, late or
 * repeated, crashes at every point, and runs that were replaced without knowing. Small cases are tried exhaustively,
 * with gateways reduced to the rules; random schedules are run with the gateways' own code.
 */
import { describe, expect, test } from 'vitest';
import { BudgetTracker } from '../../src/core/budget/budget.ts';
import { UNLIMITED } from '../../src/core/budget/config.ts';
import type { AccountRow } from '../../src/core/budget/escrow.ts';
import { BudgetGrants } from '../../src/core/budget/grants.ts';
import type { OpNumber } from '../../src/core/budget/reservations.ts';
import { type LedgerRule, ModelLedger } from '../support/model-ledger.ts';

const NOW_MS = Date.parse('2026-11-25T12:00:00Z');
const NAMED = { owner: 'global', period: 'd:2026-11-25' };
const ACCOUNT = `${NAMED.owner} ${NAMED.period}`;

/** Rules of the gateway that a mutant leaves out. */
type GatewayRule =
  /** It admits only what its grant has room for. */
  | 'admits within its grant'
  /** It takes the answer to its latest exchange only. */
  | 'takes the latest answer'
  /** It lowers its own grant before it tells the ledger. */
  | 'lowers before it sends'
  /** It raises its own grant once the ledger has said so. */
  | 'raises once granted'
  /** Without the ledger for minutes, it gives up what is not in use. */
  | 'stops without the ledger';
type Rule = LedgerRule | GatewayRule;

/** A gateway as far as the rules go. */
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
    | 'expire'
    | 'fail over',
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
  /** Runs that have crashed or were replaced. */
  ends = 0;
  /** A server that has missed the last exchange; undefined: there was none, or it took over before. */
  behind: ModelLedger | undefined;
  hasFailedOver = false;

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
    copy.ends = this.ends;
    copy.behind = this.behind;
    copy.hasFailedOver = this.hasFailedOver;
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
    if (this.behind !== undefined && !this.hasFailedOver && this.ends === 0) steps.push(['fail over', 0]);
    return steps;
  }

  /** Nothing leaves the network: every message may still come, and again; one that is lost is one that never comes. */
  boundedSteps({ sends, ends, failOvers }: Bounds): Step[] {
    return this.steps().filter(([kind, at]) => {
      if (kind === 'send' || kind === 'give back') return this.sides[at]!.sequence < sends;
      if (kind === 'crash' || kind === 'replace') return this.ends < ends;
      return kind !== 'deliver' && kind !== 'lose' && (kind !== 'fail over' || failOvers);
    });
  }

  do([kind, at]: Step): void {
    const side = this.sides[at]!;
    switch (kind) {
      case 'admit':
        if (side.spent + side.reserved + 1 <= side.granted || this.without === 'admits within its grant')
          side.reserved += 1;
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
        this.ends += 1;
        const { run, spent, reserved } = side;
        this.ghosts.push({ run, spent, reserved });
        this.sides[at] = this.#started({ run, spent: new Map([[ACCOUNT, spent]]) });
        return;
      }
      // Another process has its name; this one does not know yet.
      case 'replace':
        side.isReplaced = true;
        this.ends += 1;
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
      // Connections do not outlive their server, so nothing that was under way arrives at the next one.
      case 'fail over':
        this.hasFailedOver = true;
        this.ledger.failOver(this.behind!);
        this.sent = [];
        this.answers = [];
        return;
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
    if (!this.hasFailedOver) {
      this.behind = new ModelLedger(this.without as LedgerRule);
      this.behind.copy(this.ledger);
    }
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
   * ended. Its reservations have expired.
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

  /** Spending, and the amounts that operations may still spend. */
  get used(): number {
    const sum = (of: readonly { readonly spent: number; readonly reserved: number }[]): number =>
      of.reduce((all, { spent, reserved }) => all + spent + reserved, 0);
    return sum(this.sides) + sum(this.ghosts) + this.past;
  }

  /** The same for worlds that differ in nothing that matters, such as which gateway is called the first. */
  get key(): string {
    const { ghosts, past, ends, hasFailedOver, behind } = this;
    const sides = this.sides.map((side) => {
      const { run, granted, spent, reserved, sequence, isShort, isEnded, isReplaced } = side;
      const sent = this.sent.flatMap((each) => (each.run === run ? keyOfMessage(each) : []));
      const answers = this.answers.flatMap((each) => (each.run === run ? [each.sequence, each.granted] : []));
      const flags = Number(isShort) + 2 * Number(isEnded) + 4 * Number(isReplaced);
      const own = [granted, spent, reserved, sequence, flags].join();
      const at = behind === undefined ? '' : keyOfRun(behind, run);
      return `${own}/${sent.sort().join()}/${answers.join()}/${keyOfRun(this.ledger, run)}/${at}`;
    });
    const gone = ghosts.map(({ run, spent, reserved }) => {
      const sent = this.sent.flatMap((each) => (each.run === run ? keyOfMessage(each) : []));
      return `${spent},${reserved}/${sent.sort().join()}/${keyOfRun(this.ledger, run)}`;
    });
    const account = this.ledger.accounts.get(ACCOUNT);
    const before = behind?.accounts.get(ACCOUNT);
    const sums = [account?.spent, account?.out, before?.spent, before?.out, past, ends, hasFailedOver].join();
    return [sums, ...sides.sort(), '', ...gone.sort()].join('|');
  }

  /** Drops what can change nothing any more: to be refused, or to be ignored. */
  prune(): void {
    const { runs } = this.ledger;
    if (this.without !== 'refuses late exchanges' && this.without !== 'refuses replaced runs')
      this.sent = this.sent.filter(({ run, sequence }) => {
        const { state, sequence: last } = runs.get(run)!;
        if (state === 'live') return sequence > last;
        return this.sides.some((side) => side.run === run && !side.isEnded); // its refusal ends the run
      });
    this.answers = this.answers.filter(({ run, sequence }) => {
      const side = this.sides.find((each) => each.run === run);
      if (side === undefined || side.isEnded) return false;
      return sequence === side.sequence || this.without === 'takes the latest answer';
    });
  }
}

const keyOfMessage = ({ sequence, rows }: Message): string => {
  const { keptMicroUsd, spentMicroUsd, neededMicroUsd } = rows[0]!;
  return [sequence, keptMicroUsd, spentMicroUsd, neededMicroUsd].join(' ');
};

const keyOfRun = (ledger: ModelLedger, run: string): string => {
  const { sequence, state, isSettled, grants } = ledger.runs.get(run)!;
  const { granted, spent } = grants.get(ACCOUNT) ?? { granted: 0, spent: 0 };
  return [sequence, state[0], isSettled, granted, spent, ledger.unheard.has(run)].join();
};

/** How far every interleaving is tried: exchanges of each run, and runs that end. */
type Bounds = { readonly sends: number; readonly ends: number; readonly failOvers: boolean };

/**
 * Two gateways and one account: a way to more than the cap; undefined where there is none at all. Depth first, because
 * where a rule is left out, a way is found long before all the short ones have been tried.
 */
function wayToOverrun(bounds: Bounds, cap: number, without?: Rule): readonly Step[] | undefined {
  const seen = new Set<string>();
  const worlds: { readonly world: World; readonly way: readonly Step[] }[] = [
    { world: new World(2, cap, without), way: [] },
  ];
  for (let last = worlds.pop(); last !== undefined; last = worlds.pop()) {
    const { world, way } = last;
    for (const taken of world.boundedSteps(bounds)) {
      const after = world.copy();
      after.do(taken);
      if (!bounds.failOvers) after.behind = undefined;
      const longer = [...way, taken];
      if (after.used > cap) return longer;
      after.prune();
      const { key } = after;
      if (seen.has(key)) continue;
      seen.add(key);
      worlds.push({ world: after, way: longer });
    }
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
  'fail over': 0,
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

const ENDS: Bounds = { sends: 2, ends: 1, failOvers: false };
const FAILS_OVER: Bounds = { sends: 2, ends: 0, failOvers: true };

describe('the escrow of budgets', () => {
  test('overruns no cap: two gateways, every interleaving and crash point', () => {
    expect(wayToOverrun(ENDS, 1)).toBeUndefined();
  });

  test('overruns no cap: two gateways, and a server that has lost the last exchange', () => {
    expect(wayToOverrun(FAILS_OVER, 1)).toBeUndefined();
  });

  test('overruns no cap in random schedules, and uses most of it', () => {
    expect(randomRuns(1_000, 120)).toBeGreaterThan(0.5);
  });

  const RULES: readonly (readonly [Rule, Bounds])[] = [
    ['waits for reservations', ENDS],
    ['keeps what is not settled', ENDS],
    ['grants only what is free', ENDS],
    ['settles what was spent', ENDS],
    ['charges what is forgotten', ENDS],
    ['admits within its grant', ENDS],
    ['takes the latest answer', ENDS],
    ['lowers before it sends', ENDS],
    ['raises once granted', ENDS],
    ['stops without the ledger', ENDS],
    ['waits for all after a fail-over', FAILS_OVER],
    ['believes what is kept', FAILS_OVER],
  ];
  test.each(RULES)('overruns a cap without the rule: %s', (rule, bounds) => {
    expect(wayToOverrun(bounds, 1, rule)).toBeDefined();
  });

  // Without them no message is ever of no account, so that random schedules are there sooner.
  test.each<Rule>(['refuses late exchanges', 'refuses replaced runs'])('also without the rule: %s', (rule) => {
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
          } else tracker.holdings.needGrants(tracker.shortagesOf(agent, op, 1), NOW_MS);
        } else if (what < 0.5 && gateway.held.length > 0)
          tracker.record(agent, 1, { op: gateway.held.shift()! }, NOW_MS);
        else if (what < 0.6) tracker.holdings.recall([NAMED]);
        else if (what < 0.8) {
          const rows = tracker.holdings.dueRows(100, true, NOW_MS);
          gateway.sequence += 1;
          if (rows.length > 0) sent.push({ at, run: gateway.run, sequence: gateway.sequence, rows });
        } else if (sent.length > 0) {
          const message = sent[Math.floor(random() * sent.length)]!;
          if (random() < 0.7) sent.splice(sent.indexOf(message), 1);
          const grants = ledger.exchange(message.run, message.sequence, message.rows);
          const asked = gateways[message.at]!;
          const isLatest = message.sequence === asked.sequence;
          if (grants !== undefined && grants !== 'replaced' && isLatest && random() < 0.8)
            asked.tracker.holdings.takeGrants(message.rows, grants, NOW_MS);
        }
        expect(gateways.reduce((sum, { used }) => sum + used, 0)).toBeLessThanOrEqual(cap);
      }
      expect(gateways.reduce((sum, { used }) => sum + used, 0)).toBeGreaterThan(0);
    }
  });
});

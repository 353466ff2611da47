import { type Approval, isOpen } from '../core/approvals/approval.ts';
import type { ApprovalTurns } from '../core/approvals/approvals.ts';
import type { AgentKey } from '../core/base/ids.ts';
import type { Command, CommandType } from '../core/commands.ts';
import type { Effect, StateTable } from '../core/effects.ts';
import type { Governor } from '../core/governor.ts';
import type { Outcome } from '../core/outcome.ts';
import type { Entry } from '../ports/cluster-log.ts';
import type { Accepted, ControlSharing, ProposalEnds, SharedDecisions, Trial } from '../ports/sharing.ts';
import type { AppliedEverywhere } from './applied.ts';
import { proposed, type SharedLog } from './log.ts';
import type { SharedOrders } from './orders.ts';
import { type ReplayedIds, tryOut } from './trial.ts';

export type DecisionsOptions = {
  readonly log: SharedLog;
  readonly everywhere: Pick<AppliedEverywhere, 'pass'>;
  readonly orders: SharedOrders;
  readonly governor: Governor;
  readonly ids: ReplayedIds;
  readonly turns: ApprovalTurns & { isTrial: boolean };
  readonly nowMs: () => number;
  /** How long the database is waited for. */
  readonly withinMs: (command: Command) => number;
};

/** Commands that change what all gateways share, whatever they are about. */
const SHARED: ReadonlySet<CommandType> = new Set([
  'register-agent',
  'deregister-agent',
  'create-halt',
  'release-halt',
  'control-op',
  'tick-approvals',
  'halt-approval',
  'leave-approval',
] satisfies readonly CommandType[]);

const TAKE_BACK_WITHIN_MS = 10_000;

/** A used approval is used up by its place in the log, whether the others know that yet or not. */
const isUse = ({ kind, body }: Entry): boolean =>
  kind === 'guards' || (kind === 'approvals' && (body as Approval | null)?.state === 'used');

/**
 * A command that changes the state of all gateways is decided at its place in the log. It is tried first, to see what
 * it would change; that is proposed, as of the versions it was tried with; and when it comes back accepted, the command
 * is decided there, where nothing of that has changed since.
 */
export class LogDecisions implements SharedDecisions {
  readonly #options: DecisionsOptions;
  /** The present decision is in the log already. */
  #isDeciding = false;
  /** Commands that wait for a decision about the same thing. */
  readonly #waiting = new Map<string, (() => void)[]>();
  /** Decided trials whose answers need not wait for other gateways. */
  readonly #awaitsNobody = new WeakSet<Trial>();
  /** Sequence numbers for the signals of such a decision. */
  #sequences: number[] = [];

  constructor(options: DecisionsOptions) {
    this.#options = options;
  }

  concerns({ type }: Command): boolean {
    return SHARED.has(type);
  }

  inTurn(digest: string | undefined, begin: (done: () => void) => void): void {
    if (digest === undefined) return begin(() => undefined);
    const done = (): void => {
      const next = this.#waiting.get(digest)?.shift();
      if (next === undefined) this.#waiting.delete(digest);
      else next();
    };
    const waiting = this.#waiting.get(digest);
    if (waiting !== undefined) return void waiting.push(() => begin(done));
    this.#waiting.set(digest, []);
    begin(done);
  }

  tryOut(command: Command, digest: string | undefined, nowMs: number): Trial {
    const tried = this.#within(digest, true, [], () => tryOut(this.#options.governor, command, nowMs));
    const entries = this.#entriesOf(tried.value, nowMs);
    return { command, digest, nowMs, outcome: tried.value, entries, ids: tried.ids };
  }

  decide(trial: Trial): Outcome {
    const { command, digest, nowMs, ids } = trial;
    const { governor } = this.#options;
    if (trial.entries.every((entry) => isUse(entry) || this.#isNewcomer(entry))) this.#awaitsNobody.add(trial);
    // The clock may have been set back meanwhile.
    const atMs = Math.min(nowMs, this.#options.nowMs());
    const decided = this.#within(digest, false, ids, () => governor.apply<CommandType>(command as never, atMs)).value;
    // The ledger may have granted more of a limit meanwhile: the check asked for nothing, and all have the approval.
    for (const { kind, id, body } of trial.entries)
      if (kind === 'approvals' && body !== null && governor.approvals.get(id) === undefined)
        governor.approvals.put(body as Approval);
    return decided;
  }

  carryingOut<T>({ entries }: Trial, work: () => T): T {
    this.#isDeciding = true;
    this.#sequences = entries.flatMap(({ kind, body }) =>
      kind === 'orders' ? (body as { readonly sequence: number }).sequence : [],
    );
    try {
      return work();
    } finally {
      this.#isDeciding = false;
    }
  }

  #within<T>(digest: string | undefined, isTrial: boolean, again: readonly string[], work: () => T) {
    const { ids, turns } = this.#options;
    turns.current = digest;
    turns.isTrial = isTrial;
    try {
      return ids.within(again, work);
    } finally {
      turns.current = undefined;
      turns.isTrial = false;
    }
  }

  propose(trial: Trial, ends: ProposalEnds): void {
    this.#options.log.propose({ ...ends, entries: trial.entries, withinMs: this.#options.withinMs(trial.command) });
  }

  async follow(): Promise<boolean> {
    return this.#options.log.follow();
  }

  async confirmed(accepted: Accepted, trial: Trial): Promise<readonly string[]> {
    return this.#awaitsNobody.has(trial) ? [] : this.#options.everywhere.pass(accepted);
  }

  /** A new agent takes no token from anybody: others look for one that they do not know. */
  #isNewcomer({ kind, id, body }: Entry): boolean {
    return (
      kind === 'agents' && body !== null && this.#options.governor.agents.registrationOf(id as AgentKey) === undefined
    );
  }

  #entriesOf({ effects }: Outcome, nowMs: number): readonly Entry[] {
    return [...this.#changesOf(effects, nowMs), ...this.#guardsOf(effects, nowMs)];
  }

  /** Each digest has at most one open approval: several checks for the same thing ask people once. */
  #guardsOf(effects: readonly Effect[], nowMs: number): readonly Entry[] {
    const open = new Map<string, boolean>();
    for (const effect of effects) {
      if (effect.kind !== 'state-saved' || effect.table !== 'approvals') continue;
      const approval = effect.row as Approval;
      open.set(approval.digest, open.get(approval.digest) === true || isOpen(approval, nowMs));
    }
    return Array.from(open, ([id, isStill]) => ({
      ...{ kind: 'guards', id, body: isStill ? {} : null },
      expects: this.#options.log.versionOf('guards', id),
    }));
  }

  #changesOf(effects: readonly Effect[], nowMs: number): readonly Entry[] {
    return effects.flatMap((effect): Entry | [] => {
      switch (effect.kind) {
        case 'agent-saved':
          return { kind: 'agents', id: effect.key, body: effect.registration };
        case 'agent-removed':
          return { kind: 'agents', id: effect.key, body: null };
        case 'state-saved':
          return this.#stateEntry(effect.table, effect.id, effect.row);
        case 'state-removed':
          return this.#stateEntry(effect.table, effect.id, null);
        case 'signal':
          return this.#options.orders.entryOf(effect, this.#options.orders.nextSequence(nowMs), nowMs);
        default:
          return [];
      }
    });
  }

  #stateEntry(table: StateTable, id: string, body: unknown): Entry | [] {
    if (table === 'webhooks') return [];
    return { kind: table, id, body, expects: this.#options.log.versionOf(table, id) };
  }

  /** Tells the others to take back a decision that could not be recorded, unless it was changed since. */
  async save(entry: Entry): Promise<readonly string[]> {
    if (this.#isDeciding) return [];
    const { log, everywhere } = this.#options;
    const expects = entry.kind === 'agents' ? {} : { expects: log.versionOf(entry.kind, entry.id) };
    const written = await proposed(log, [{ ...entry, ...expects }], TAKE_BACK_WITHIN_MS);
    return written.ok ? everywhere.pass(written.value) : [];
  }

  /** The orders of this gateway, as the shell tells of them. */
  readonly controls: ControlSharing = {
    nextSequence: (nowMs) => this.#sequences.shift() ?? this.#options.orders.nextSequence(nowMs),
    save: async (sent, sequence, nowMs) => (this.#isDeciding ? [] : this.#options.orders.save(sent, sequence, nowMs)),
    forget: (agent, opId) => this.#options.orders.forget(agent, opId),
  };
}

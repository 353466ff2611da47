import type { AuditDraft } from '../../core/audit/audit.ts';
import { encodeDraft } from '../../core/audit/audit-line.ts';
import type { CheckCommand, Command, Replies } from '../../core/commands.ts';
import type { Effect } from '../../core/effects.ts';
import type { Governor } from '../../core/governor.ts';
import type { Undo } from '../../core/rollback.ts';
import type { Unconfirmed } from '../../ports/cluster.ts';
import type { SavedAt } from '../../ports/ports.ts';
import type { Report } from '../../webhooks/hooks.ts';
import type { Entries } from '../audit/audit-link.ts';
import type { IoId, Reply } from '../protocol.ts';

export type AuditedReply = Extract<Reply, { type: 'command-reply' }>;
export type SignalEffect = Extract<Effect, { kind: 'signal' }>;

/**
 * The changes by the commands of one turn, to be recorded together or rolled back together. The effects of a command
 * are added first, then the command itself, or it is taken out with them to be recorded alone.
 */
export class Batch {
  /** Who asked. */
  readonly io: IoId;
  readonly appliedAtMs: number;
  /** The number of the latest operation before it. */
  readonly #lastOpBefore: number;
  #bodies: string[] = [];
  /** How much of the bodies is from callers that are not identified. */
  #strangerBytes = 0;
  #replies: AuditedReply[] = [];
  readonly #commands: Command[] = [];
  readonly #undos: Undo[] = [];
  #signals: SignalEffect[] = [];
  /** Undefined: none. A command that has any is recorded alone. */
  #reports: Report[] | undefined;
  // The first effects of the last command.
  #firstEntry = 0;
  #firstSignal = 0;
  #strangerBytesBefore = 0;
  #confirmed: Promise<SavedAt>[] = [];
  /** The answer of a registration that was rolled back while it waited for its store. */
  refusal: AuditedReply['reply'] | undefined;

  constructor(io: IoId, appliedAtMs: number, lastOpBefore: number) {
    this.io = io;
    this.appliedAtMs = appliedAtMs;
    this.#lastOpBefore = lastOpBefore;
  }

  /** How many entries it has for the audit log. */
  get entryCount(): number {
    return this.#bodies.length;
  }
  entriesFor(isAwaited: boolean): Entries {
    return { bodies: this.#bodies, strangerBytes: this.#strangerBytes, isAwaited };
  }
  get replies(): readonly AuditedReply[] {
    return this.#replies;
  }
  get signals(): readonly SignalEffect[] {
    return this.#signals;
  }
  /** Whether its commands can be undone. */
  get isUndoable(): boolean {
    return this.#undos.length > 0;
  }

  addEntry(draft: AuditDraft): void {
    const body = encodeDraft(draft, this.appliedAtMs);
    this.#bodies.push(body);
    if (draft.actor === 'anonymous') this.#strangerBytes += body.length;
  }

  addSignal(signal: SignalEffect): void {
    this.#signals.push(signal);
  }

  /** Its answers wait for this, once they are recorded: for the names of gateways that do not act by them yet. */
  confirmLater(names: Promise<SavedAt>): void {
    this.#confirmed.push(names);
  }

  /** Whether its answers wait for other gateways. */
  get isConfirmed(): boolean {
    return this.#confirmed.length > 0;
  }

  /** Resolves once the answers may leave. */
  async confirmed(): Promise<void> {
    const names = await Promise.all(this.#confirmed);
    this.nameUnconfirmed([...new Set(names.flatMap((each) => each ?? []))]);
  }

  addReport(report: Report): void {
    this.#reports = [...(this.#reports ?? []), report];
  }

  /** Call it before the effects of a command are added. */
  begin(): void {
    this.#firstEntry = this.#bodies.length;
    this.#firstSignal = this.#signals.length;
    this.#strangerBytesBefore = this.#strangerBytes;
  }

  /** Adds the command whose effects were added last. False: it has no entry, and waits for none. */
  add(id: number, command: Command, reply: AuditedReply['reply'], undo: Undo | undefined): boolean {
    if (this.#bodies.length === this.#firstEntry) return false;
    this.#put(id, command, reply, undo);
    return true;
  }

  /** Takes the effects that were added last out of this batch, with their command. */
  detach(id: number, command: Command, reply: AuditedReply['reply'], undo: Undo | undefined): Batch {
    const alone = new Batch(this.io, this.appliedAtMs, this.#lastOpBefore);
    alone.#bodies = this.#bodies.splice(this.#firstEntry);
    alone.#signals = this.#signals.splice(this.#firstSignal);
    alone.#strangerBytes = this.#strangerBytes - this.#strangerBytesBefore;
    this.#strangerBytes = this.#strangerBytesBefore;
    alone.#reports = this.#reports;
    this.#reports = undefined;
    alone.#confirmed = this.#confirmed;
    this.#confirmed = [];
    alone.#put(id, command, reply, undo);
    return alone;
  }

  #put(id: number, command: Command, reply: AuditedReply['reply'], undo: Undo | undefined): void {
    this.#replies.push({ type: 'command-reply', id, reply, auditIndex: this.#firstEntry });
    this.#commands.push(command);
    if (undo !== undefined) this.#undos.push(undo);
  }

  /** Has the answers name the gateways that do not act by them yet. */
  nameUnconfirmed(unconfirmed: SavedAt): void {
    if (unconfirmed === undefined || unconfirmed.length === 0) return;
    this.#replies = this.#replies.map((each) => {
      const { unconfirmed: known = [] } = each.reply as Unconfirmed;
      return {
        ...each,
        reply: Object.assign({}, each.reply, { unconfirmed: [...new Set([...known, ...unconfirmed])] }),
      };
    });
  }

  /** Calls with each check and its answer. */
  eachCheck(call: (command: CheckCommand, reply: Replies['check']) => void): void {
    for (let at = 0; at < this.#commands.length; at += 1) {
      const command = this.#commands[at]!;
      if (command.type === 'check') call(command, this.#replies[at]!.reply as Replies['check']);
    }
  }

  /** Sends the reports, or drops them. What cannot be undone has happened, even if it could not be recorded. */
  settleReports(isRecorded: boolean): void {
    this.#reports?.forEach((report) => report.settle(isRecorded || !this.isUndoable));
  }
  dropReports(): void {
    this.#reports?.forEach((report) => report.settle(false));
  }

  /** Undoes its commands. Returns the effects of that. */
  rollBack(governor: Governor, nowMs: number): readonly Effect[] {
    // Checks that may have begun operations.
    const checks = this.#commands.filter(
      (command): command is CheckCommand => command.type === 'check' && !command.dryRun,
    );
    return governor.rollBack(this.#undos, checks, this.#lastOpBefore, nowMs);
  }
}

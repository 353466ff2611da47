import type { AuditDraft } from '../../core/audit/audit.ts';
import { encodeDraft } from '../../core/audit/audit-line.ts';
import type { CheckCommand, Command, Replies } from '../../core/commands.ts';
import type { Effect } from '../../core/effects.ts';
import type { Governor } from '../../core/governor.ts';
import type { Undo } from '../../core/rollback.ts';
import type { SavedAt } from '../../ports/ports.ts';
import type { Report } from '../../webhooks/hooks.ts';
import type { Entries } from '../audit/audit-link.ts';
import type { IoId, Reply } from '../protocol.ts';

export type AuditedReply = Extract<Reply, { type: 'command-reply' }>;
export type SignalEffect = Extract<Effect, { kind: 'signal' }>;

/** Where the effects of one command begin in its batch. */
type Mark = { readonly entries: number; readonly signals: number; readonly strangerBytes: number };

/** A command that was applied, and what answers it and undoes it. */
type Applied = {
  readonly id: number;
  readonly command: Command;
  readonly reply: AuditedReply['reply'];
  readonly undo: Undo | undefined;
};

/**
 * What the commands of one turn have changed, to be recorded together or rolled back together. The effects of a command
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
  get entries(): Omit<Entries, 'isAwaited'> {
    return { bodies: this.#bodies, strangerBytes: this.#strangerBytes };
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

  addReport(report: Report): void {
    this.#reports = [...(this.#reports ?? []), report];
  }

  /** Call it before the effects of a command are added. */
  mark(): Mark {
    return { entries: this.#bodies.length, signals: this.#signals.length, strangerBytes: this.#strangerBytes };
  }

  /** Adds the command whose effects were added since the mark. False: it has no entry, and waits for none. */
  add({ id, command, reply, undo }: Applied, { entries }: Mark): boolean {
    if (this.#bodies.length === entries) return false;
    this.#replies.push({ type: 'command-reply', id, reply, auditIndex: entries });
    this.#commands.push(command);
    if (undo !== undefined) this.#undos.push(undo);
    return true;
  }

  /** Takes what was added since the mark out of this batch, with its command. */
  detach({ id, command, reply, undo }: Applied, mark: Mark): Batch {
    const alone = new Batch(this.io, this.appliedAtMs, this.#lastOpBefore);
    alone.#bodies = this.#bodies.splice(mark.entries);
    alone.#signals = this.#signals.splice(mark.signals);
    alone.#strangerBytes = this.#strangerBytes - mark.strangerBytes;
    this.#strangerBytes = mark.strangerBytes;
    alone.#reports = this.#reports;
    this.#reports = undefined;
    alone.#replies.push({ type: 'command-reply', id, reply, auditIndex: 0 });
    alone.#commands.push(command);
    if (undo !== undefined) alone.#undos.push(undo);
    return alone;
  }

  /** Has the answers name the gateways that do not act by them yet. */
  nameUnconfirmed(unconfirmed: SavedAt): void {
    if (unconfirmed === undefined || unconfirmed.length === 0) return;
    this.#replies = this.#replies.map((each) => ({ ...each, reply: Object.assign({ unconfirmed }, each.reply) }));
  }

  /** Calls with each check and its answer. */
  eachCheck(call: (command: CheckCommand, reply: Replies['check']) => void): void {
    for (const [at, command] of this.#commands.entries())
      if (command.type === 'check') call(command, this.#replies[at]!.reply as Replies['check']);
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

import type { Approval } from '../core/approvals/approval.ts';
import { type Lineage, personBehind } from '../core/approvals/approvers.ts';
import type { AgentIdentity, SecretDigest } from '../core/base/ids.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Principal } from '../core/identity/roles.ts';
import { CallerQuota } from '../fairness/fair-queue.ts';
import type { OwnCommands } from './halts.ts';

/** Who reads an approval: a person's credential, or the agent that asked. */
export type ApprovalReader =
  | { readonly principal: Principal; readonly agent?: undefined }
  | {
      readonly principal: Principal | undefined;
      readonly agent: AgentIdentity;
      readonly credential: SecretDigest | undefined;
    };

/** Finds the makers of a credential. Faults: those of the stores. */
export type FindLineage = (subject: string) => Promise<Result<Lineage, Fault>>;

export type ApprovalWaitsDeps = {
  readonly commands: OwnCommands;
  readonly nowMs: () => number;
  /** Calls back after that time. Returns what stops it. */
  readonly after: (ms: number, call: () => void) => () => void;
};

/** Callers that wait for approvals at once; one org may have half of them. */
const MAX_WAITING = 10_000;
const FULL = fail({
  kind: 'overloaded',
  retryAfterSecs: 5,
  what: 'the number of waits for approvals',
} as const);

/** `ticket` names the wait for whoever ends it early. */
type Wait = { readonly id: string; readonly waitMs: number; readonly ticket: string };
/** By when a wait ends, which may come nearer, and how it is told. */
type Until = { readonly endMs: () => number; readonly waits: (wake: () => void) => void };
type Change = { readonly happened: Promise<void>; readonly wake: () => void; readonly stop: () => void };

/** Lets agents and people wait for approvals (docs/spec.md, Approvals). */
export class ApprovalWaits {
  readonly #deps: ApprovalWaitsDeps;
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #quota = new CallerQuota(MAX_WAITING);
  /** How to end each wait early, by its ticket. */
  readonly #leaving = new Map<string, () => void>();
  #count = 0;

  constructor(deps: ApprovalWaitsDeps) {
    this.#deps = deps;
  }

  /** How many callers wait. */
  get size(): number {
    return this.#count;
  }

  /** The approval as soon as it is no longer pending, or as it is when the time is over or the caller has left. */
  async wait(reader: ApprovalReader, { id, waitMs, ticket }: Wait): Promise<Result<Approval, Fault>> {
    let endMs = this.#deps.nowMs() + waitMs;
    this.#leaving.set(ticket, () => {
      endMs = -Infinity;
      wakeNow?.();
    });
    let wakeNow: (() => void) | undefined;
    try {
      return await this.#waitUntil(reader, id, { endMs: () => endMs, waits: (wake) => (wakeNow = wake) });
    } finally {
      this.#leaving.delete(ticket);
    }
  }

  /** Ends the wait of this ticket, if there is one. */
  leave(ticket: string): void {
    this.#leaving.get(ticket)?.();
  }

  async #waitUntil(reader: ApprovalReader, id: string, { endMs, waits }: Until): Promise<Result<Approval, Fault>> {
    for (;;) {
      // Before it is read: what changes it in the same turn must wake this caller, too.
      const change = this.#listen(id);
      try {
        const approval = await this.#read(reader, id);
        const leftMs = endMs() - this.#deps.nowMs();
        if (!approval.ok || approval.value.state !== 'pending' || leftMs <= 0) return approval;
        const { orgId } = approval.value.agent;
        if (this.#count >= MAX_WAITING || !this.#quota.tryAcquire(orgId)) return FULL;
        this.#count += 1;
        waits(change.wake);
        const stopTimer = this.#deps.after(leftMs, change.wake);
        await change.happened;
        stopTimer();
        this.#count -= 1;
        this.#quota.release(orgId);
      } finally {
        change.stop();
      }
    }
  }

  /** Wakes those who wait for this approval. */
  wake({ id }: Approval): void {
    for (const wake of this.#waiting.get(id) ?? []) wake();
  }

  #read(reader: ApprovalReader, id: string): Promise<Result<Approval, Fault>> {
    const { commands } = this.#deps;
    return reader.agent === undefined
      ? commands.ask({ type: 'get-approval', principal: reader.principal, id })
      : commands.ask({ type: 'own-approval', ...reader, id });
  }

  /** `happened` resolves when the approval changes, or `wake` is called. Call `stop` in any case. */
  #listen(id: string): Change {
    const waiting = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, waiting);
    let wake = (): void => undefined;
    const happened = new Promise<void>((resolve) => {
      wake = resolve;
    });
    waiting.add(wake);
    return {
      happened,
      wake,
      stop: () => {
        waiting.delete(wake);
        if (waiting.size === 0) this.#waiting.delete(id);
      },
    };
  }
}

/** Another request or approval meanwhile has the decision considered anew. */
const MAX_TRIES = 5;

export type ApprovalDecision = {
  readonly principal: Principal;
  readonly id: string;
  readonly kind: 'approve' | 'deny';
  readonly reason: string;
};

export async function decideApproval(
  commands: OwnCommands,
  findLineage: FindLineage,
  decision: ApprovalDecision,
): Promise<Result<Approval, Fault>> {
  const { principal, id } = decision;
  const lineage = await findLineage(principal.subject);
  if (!lineage.ok) return lineage;
  for (let left = MAX_TRIES; ; left -= 1) {
    const seen = await commands.ask({ type: 'get-approval', principal, id });
    if (!seen.ok) return seen;
    const people = await peopleOf(seen.value, findLineage);
    if (!people.ok) return people;
    const decided = await commands.ask({
      type: 'decide-approval',
      lineage: lineage.value,
      people: people.value,
      ...decision,
    });
    if (decided.ok || decided.fault.kind !== 'conflict' || left <= 1) return decided;
  }
}

/** Who is behind those that asked or have decided. */
async function peopleOf(
  { requesters, decisions }: Approval,
  findLineage: FindLineage,
): Promise<Result<Readonly<Record<string, string>>, Fault>> {
  const people: Record<string, string> = {};
  for (const subject of new Set([...requesters, ...decisions.map(({ by }) => by)])) {
    const lineage = await findLineage(subject);
    if (!lineage.ok) return lineage;
    people[subject] = personBehind(lineage.value);
  }
  return ok(people);
}

import type { Approval } from '../core/approvals/approval.ts';
import { isDue } from '../core/approvals/approval.ts';
import type { ApprovalTurns } from '../core/approvals/approvals.ts';
import { changing, coveredBy } from '../core/approvals/commands.ts';
import type { OpId } from '../core/base/ids.ts';
import type { CommandOf, CommandType, Replies } from '../core/commands.ts';
import type { Governor } from '../core/governor.ts';
import type { Halt } from '../core/halts/halt.ts';
import type { Membership } from '../ports/cluster.ts';

export type SharedApprovalsOptions = {
  readonly governor: Governor;
  readonly membership: Pick<Membership, 'self' | 'others'>;
  readonly commands: { ask<T extends CommandType>(command: CommandOf<T> & { readonly type: T }): Promise<Replies[T]> };
  /** Wakes those who wait for the approval. */
  readonly onChanged: (approval: Approval) => void;
  readonly nowMs: () => number;
  readonly onError: (error: unknown, doing: string) => void;
};

/** Other gateways do what one leaves undone after this time. */
const LATE_MS = 5_000;
const CHANGES_A_TICK = 100;

type Change = CommandOf<'tick-approvals' | 'halt-approval'>;

/** Approvals that all gateways of a cluster share: what is decided of each is in their log. */
export class SharedApprovals {
  readonly #options: SharedApprovalsOptions;
  /** For the core: what is decided now is decided at its place in the log. */
  readonly turns: ApprovalTurns & { isTrial: boolean };
  /** Approvals that are being changed by time or by a halt. */
  readonly #changing = new Set<string>();
  /** Decided by others, while the operations that wait for them here have not followed yet. */
  readonly #decided = new Set<string>();
  readonly #following = new Set<string>();
  /** Approvals that operations which were terminated here still wait for, by both. */
  readonly #leaving = new Map<string, CommandOf<'leave-approval'>>();

  constructor(options: SharedApprovalsOptions) {
    this.#options = options;
    this.turns = {
      current: undefined,
      isTrial: false,
      isBusy: () => false,
      leave: ({ id }: Approval, opId: OpId, actor: string) => {
        if (this.turns.isTrial) return;
        this.#leaving.set(`${id} ${opId}`, { type: 'leave-approval', id, opId, actor });
        void this.#leave(`${id} ${opId}`);
      },
    };
    options.governor.approvalTurns = this.turns;
  }

  /**
   * Does what time and halts do. Call it often: one gateway does it, and another one where that one does not. With
   * `isOwn`, it is this one's to do now.
   */
  async tick(isOwn = this.#isFirst()): Promise<void> {
    const { governor, nowMs } = this.#options;
    for (const id of [...this.#decided]) void this.#follow(id);
    for (const key of [...this.#leaving.keys()]) void this.#leave(key);
    const now = nowMs();
    const changes: Promise<void>[] = [];
    for (const approval of changing(governor.approvalContext, now)) {
      if (changes.length === CHANGES_A_TICK) break;
      const isLate = isDue(approval, now) && approval.expiresAtMs + LATE_MS < now;
      if (isOwn || isLate) changes.push(this.#change(approval, { type: 'tick-approvals', most: 1, only: approval.id }));
    }
    await Promise.all(changes);
  }

  /** Freezes or ends what a new halt covers. */
  async halt(halt: Halt): Promise<void> {
    const { governor, nowMs } = this.#options;
    const covered = [...coveredBy(governor.approvalContext, halt, nowMs())];
    await Promise.all(
      covered.map((each) => this.#change(each, { type: 'halt-approval', haltId: halt.id, id: each.id })),
    );
  }

  /** Takes over what another gateway has decided; undefined: it is gone. Done when it returns. */
  adopt(id: string, approval: Approval | undefined): void {
    const { commands, governor, onChanged } = this.#options;
    const known = governor.approvals.get(id);
    if (JSON.stringify(known) === JSON.stringify(approval)) return;
    const adopted = commands.ask({ type: 'adopt-approval', id, approval });
    if (approval !== undefined) onChanged(approval);
    void adopted.then((reply) => {
      if (reply.ok && reply.value.isDecided) void this.#follow(id);
    });
  }

  /** The first of those that take part. */
  #isFirst(): boolean {
    const { membership } = this.#options;
    return membership.others().every(({ run, state }) => state !== 'live' || run > membership.self);
  }

  async #change({ id }: Approval, command: Change): Promise<void> {
    const { commands, onError } = this.#options;
    if (command.type === 'tick-approvals' && this.#changing.has(id)) return;
    this.#changing.add(id);
    try {
      const changed = await commands.ask(command);
      // An outage is logged as such, and the next tick tries again.
      if (!changed.ok && changed.fault.kind === 'internal') onError(changed.fault, command.type);
    } catch (error) {
      onError(error, command.type);
    } finally {
      this.#changing.delete(id);
    }
  }

  /** Until it has, it is tried again with each tick. */
  async #leave(key: string): Promise<void> {
    const { commands, governor, onError } = this.#options;
    const command = this.#leaving.get(key);
    if (command === undefined) return;
    if (governor.approvals.get(command.id) === undefined) return void this.#leaving.delete(key);
    try {
      if ((await commands.ask(command)).ok) this.#leaving.delete(key);
    } catch (error) {
      onError(error, command.type);
    }
  }

  /** Until it is recorded, it is tried again with each tick. One at a time: agents are signalled by it. */
  async #follow(id: string): Promise<void> {
    if (this.#following.has(id)) return void this.#decided.add(id);
    this.#decided.delete(id);
    this.#following.add(id);
    const followed = await this.#options.commands.ask({ type: 'follow-approval', id });
    this.#following.delete(id);
    if (!followed.ok) this.#decided.add(id);
  }
}

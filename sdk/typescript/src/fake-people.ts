/** The approvals of a fake gateway: who waits for them, and what has become of them. */
import type { ApprovalState, JsonObject } from './types.ts';

/** An approval as the fake gateway keeps it. */
export type FakeApproval = {
  readonly id: string;
  readonly action: string;
  readonly resource: string;
  readonly attributes: JsonObject;
  readonly opId: string;
  readonly state: ApprovalState;
  readonly reason: string;
};

type Kept = { -readonly [K in keyof FakeApproval]: FakeApproval[K] } & { readonly question: string };

export class FakePeople {
  readonly #approvals = new Map<string, Kept>();
  readonly #waiting = new Set<() => void>();

  get all(): readonly FakeApproval[] {
    return [...this.#approvals.values()].map(({ question: _, ...approval }) => ({ ...approval }));
  }

  find(id: string): FakeApproval | undefined {
    return this.#approvals.get(id);
  }

  /** The last one about the same, of this operation or open to any. */
  lastOn(question: string, opId: string): FakeApproval | undefined {
    const same = [...this.#approvals.values()].filter((each) => each.question === question);
    return (
      same.findLast((each) => each.opId === opId) ??
      same.findLast(({ state }) => state === 'pending' || state === 'approved')
    );
  }

  ask(question: string, about: Pick<FakeApproval, 'action' | 'resource' | 'attributes' | 'opId'>): FakeApproval {
    const approval: Kept = { id: `appr-${this.#approvals.size + 1}`, ...about, state: 'pending', reason: '', question };
    this.#approvals.set(approval.id, approval);
    this.#changed();
    return approval;
  }

  /** Throws an Error where it is not in the state from which this leads. */
  change(id: string, from: ApprovalState, to: ApprovalState, reason = ''): FakeApproval {
    const approval = this.#approvals.get(id);
    if (approval === undefined) throw new Error(`there is no approval ${id}`);
    if (approval.state !== from) throw new Error(`approval ${id} is ${approval.state}`);
    approval.state = to;
    approval.reason = reason;
    this.#changed();
    return approval;
  }

  /** Resolves once it is true, or after the time. */
  async until(isTrue: () => boolean, ms: number): Promise<boolean> {
    const endMs = performance.now() + ms;
    while (!isTrue()) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) return false;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#waiting.add(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
    return true;
  }

  #changed(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }
}

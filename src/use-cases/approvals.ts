import type { Approval } from '../core/approvals/approval.ts';
import type { AgentIdentity, SecretDigest } from '../core/base/ids.ts';
import { fail, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { keyIdOf } from '../core/identity/api-key.ts';
import { type Principal, ROLES } from '../core/identity/roles.ts';
import { CallerQuota } from '../limits/fair-queue.ts';
import type { OwnCommands } from './halts.ts';

/** Who reads an approval: a person's credential, or the agent that asked. */
export type ApprovalReader =
  | { readonly principal: Principal; readonly agent?: undefined }
  | {
      readonly principal: Principal | undefined;
      readonly agent: AgentIdentity;
      readonly credential: SecretDigest | undefined;
    };

/** How approvers are called. */
export type ApproverNames = {
  /** The name of the API key of this id; undefined if there is none. */
  readonly nameOfKey: (id: string) => Promise<string | undefined>;
  /** The e-mail address of the account; undefined if there is none. */
  readonly emailOf: (account: Principal) => Promise<string | undefined>;
};

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
  what: 'the number of those who wait for approvals',
} as const);

type Change = { readonly happened: Promise<void>; readonly wake: () => void; readonly stop: () => void };

/** Where agents and people wait for approvals (docs/spec.md, Approvals). */
export class ApprovalWaits {
  readonly #deps: ApprovalWaitsDeps;
  readonly #waiting = new Map<string, Set<() => void>>();
  readonly #quota = new CallerQuota(MAX_WAITING);
  #count = 0;

  constructor(deps: ApprovalWaitsDeps) {
    this.#deps = deps;
  }

  /** The approval as soon as it is no longer pending, or as it is when the time is over. */
  async wait(reader: ApprovalReader, id: string, waitMs: number): Promise<Result<Approval, Fault>> {
    const endMs = this.#deps.nowMs() + waitMs;
    for (;;) {
      // Before it is read: what changes it in the same turn must wake this caller, too.
      const change = this.#listen(id);
      try {
        const approval = await this.#read(reader, id);
        const leftMs = endMs - this.#deps.nowMs();
        if (!approval.ok || approval.value.state !== 'pending' || leftMs <= 0) return approval;
        const { orgId } = approval.value.agent;
        if (this.#count >= MAX_WAITING || !this.#quota.tryAcquire(orgId)) return FULL;
        this.#count += 1;
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

export async function decideApproval(
  commands: OwnCommands,
  approvers: ApproverNames,
  {
    principal,
    ...decision
  }: { readonly principal: Principal; readonly id: string; readonly kind: 'approve' | 'deny'; readonly reason: string },
): Promise<Result<Approval, Fault>> {
  const names = await namesOf(principal, approvers);
  return commands.ask({ type: 'decide-approval', principal, names, ...decision });
}

/** What rules may call the approver. An account has the roles below its own, too. */
async function namesOf(principal: Principal, { nameOfKey, emailOf }: ApproverNames): Promise<readonly string[]> {
  const keyId = keyIdOf(principal.subject);
  if (keyId !== undefined) {
    const name = await nameOfKey(keyId);
    return name === undefined ? [] : [`key:${name}`];
  }
  const roles = principal.role === undefined ? [] : ROLES.slice(ROLES.indexOf(principal.role));
  const email = await emailOf(principal);
  return [...roles.map((role) => `role:${role}`), ...(email === undefined ? [] : [`account:${email}`])];
}

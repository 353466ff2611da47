/** Calls that a person has to approve first: held until there is a decision, or as long as the client can wait. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Control } from './control.ts';
import { Ended } from './control.ts';
import type { Gateway, Verdict } from './gateway.ts';
import type { Answer, Fields } from './json-rpc.ts';

/** Clients give up after 60 seconds without progress; one that gets none is answered before. */
const WITHOUT_PROGRESS_MS = 50_000;
const WITH_PROGRESS_MS = 10 * 60_000;
const PROGRESS_MS = 10_000;
/** How long one question to the gateway waits. */
const WAIT_MS = 20_000;
/** Asks for the state as it is. */
const NO_WAIT_MS = 1;

export type Waiting = {
  readonly gateway: Gateway;
  readonly control: Control;
  /** The question, for the person who reads it. */
  readonly what: string;
  /** Undefined when the client wants no progress. */
  readonly progress: ((message: string) => void) | undefined;
  /** Shows a form to the user; undefined when the client cannot. `cancel` takes it away. */
  readonly elicit: ((params: Fields) => { readonly answer: Promise<Answer>; cancel(): void }) | undefined;
  /** Asks for the decision on the call again. */
  readonly checkAgain: () => Promise<Verdict>;
};

/**
 * The decision that the call gets in the end. Throws `Ended`.
 *
 * An approval that ends without a yes ends its operation, too, so the signal to terminate and the news of the approval
 * race. The agent always sees the cause: the approval, where it has ended like that; else the operator. A caller that
 * has cancelled sees neither.
 */
export async function decided(pending: Verdict, waiting: Waiting): Promise<Verdict> {
  const endMs = performance.now() + (waiting.progress === undefined ? WITHOUT_PROGRESS_MS : WITH_PROGRESS_MS);
  for (let asked = pending; ; ) {
    const verdict = await decidedOnce(asked, waiting, endMs);
    if (verdict.decision !== 'pending') return verdict;
    // Others that waited for more of a limit may have used it up: then people are asked again.
    if (verdict.approvalId === asked.approvalId)
      return refused(verdict, `approval ${verdict.approvalId} no longer covers this call`);
    asked = verdict;
  }
}

/** Pending: people have approved, and are asked for something else now. */
async function decidedOnce(pending: Verdict, waiting: Waiting, endMs: number): Promise<Verdict> {
  const { gateway, control, progress } = waiting;
  const approvalId = pending.approvalId;
  if (approvalId === undefined)
    return { ...pending, decision: 'deny', reason: `${pending.reason}; no approval is named` };
  const message = `${waiting.what} waits for approval ${approvalId} at the gateway (svc approvals show ${approvalId})`;
  const form = formOf(waiting, message);
  const shown = setInterval(() => progress?.(message), PROGRESS_MS);
  try {
    progress?.(message);
    for (;;) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0) return refused(pending, `${message}; call again with the same arguments once it is approved`);
      const state = await control.unlessEnded(
        Promise.race([gateway.waitApproval(approvalId, Math.min(WAIT_MS, leftMs)), form.declined]),
      );
      if (state === 'declined') {
        await gateway.cancelApproval(approvalId);
        return refused(pending, `the user declined to wait for approval ${approvalId}`);
      }
      if (state === 'unknown')
        return refused(pending, `${message}; call again with the same arguments once it is approved`);
      // Policy, budgets and halts may have changed meanwhile.
      if (state === 'approved' || state === 'used') return await waiting.checkAgain();
      if (state !== 'pending') return refused(pending, endedAs(approvalId, state));
      // A gateway that answers at once must not be asked in a loop.
      await control.unlessEnded(sleep(250));
    }
  } catch (error) {
    if (!(error instanceof Ended)) throw error;
    const { kind } = error.ending;
    if (kind === 'cancelled') await gateway.cancelApproval(approvalId);
    const state = kind === 'terminated' ? await gateway.waitApproval(approvalId, NO_WAIT_MS) : undefined;
    if (state === 'denied' || state === 'expired' || state === 'cancelled')
      return refused(pending, endedAs(approvalId, state));
    throw error;
  } finally {
    clearInterval(shown);
    form.cancel();
  }
}

const endedAs = (approvalId: string, state: string): string => `approval ${approvalId} is ${state}`;

const refused = (verdict: Verdict, reason: string): Verdict => ({ ...verdict, decision: 'deny', reason });

/** The user cannot decide here, but learns what the call waits for, and may give it up. */
function formOf({ elicit }: Waiting, message: string): { readonly declined: Promise<'declined'>; cancel(): void } {
  if (elicit === undefined) return { declined: new Promise(() => {}), cancel: () => {} };
  const form = elicit({
    mode: 'form',
    message: `${message}. Accept to keep waiting, decline to give up.`,
    requestedSchema: { type: 'object', properties: {} },
  });
  const declined = form.answer.then((answer): Promise<'declined'> | 'declined' =>
    answer.result?.action === 'decline' ? 'declined' : new Promise(() => {}),
  );
  return { declined, cancel: form.cancel };
}

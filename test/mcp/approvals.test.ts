/** The agent's view of races between the end of an approval and the signal to its operation, in every order. */
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { decided } from '../../src/mcp/approvals.ts';
import { Control, Ended } from '../../src/mcp/control.ts';
import type { ApprovalState, Gateway, Verdict } from '../../src/mcp/gateway.ts';
import type { Answer } from '../../src/mcp/json-rpc.ts';

const verdict = (decision: Verdict['decision'], reason: string): Verdict => ({
  decision,
  reason,
  cause: undefined,
  approvalId: 'apr_1',
  opState: undefined,
  obligations: [],
});

/** `approved` and the like is what becomes of the approval at the gateway; `news` is when the call learns of it. */
type Happening = ApprovalState | 'news' | 'signal' | 'cancel' | 'decline';

/** A call that waits for approval, while these things happen, a turn of the event loop apart or all at once. */
async function outcomeOf(happenings: readonly Happening[], isAtOnce = false): Promise<string> {
  const control = new Control();
  let state: ApprovalState = 'pending';
  const cancelled: string[] = [];
  const waits = new Set<() => void>();
  let decline: (answer: Answer) => void = () => {};
  const gateway = {
    waitApproval: async (_id: string, waitMs: number) => {
      if (state === 'pending' && waitMs > 1) await new Promise<void>((resolve) => waits.add(resolve));
      return state;
    },
    cancelApproval: async (id: string) => void cancelled.push(id),
  } as Partial<Gateway> as Gateway;
  const outcome = decided(verdict('pending', 'needs a person'), {
    gateway,
    control,
    what: 'bank/pay',
    progress: undefined,
    elicit: () => ({
      answer: new Promise((resolve) => {
        decline = resolve;
      }),
      cancel: () => {},
    }),
    // An operation that an operator has ended is not allowed again.
    checkAgain: () =>
      control.unlessEnded(
        turn().then(() => verdict(happenings.includes('signal') ? 'deny' : 'allow', 'checked again')),
      ),
  }).then(
    ({ decision, reason }) => `${decision}: ${reason}`,
    (error: unknown) => (error instanceof Ended ? `ended: ${error.ending.kind}` : String(error)),
  );
  for (const happening of happenings) {
    if (happening === 'signal') control.end({ kind: 'terminated', reason: 'an operator' });
    else if (happening === 'cancel') control.end({ kind: 'cancelled', reason: 'the client' });
    else if (happening === 'decline') decline({ jsonrpc: '2.0', id: 1, result: { action: 'decline' } });
    else if (happening === 'news') for (const resolve of waits) resolve();
    else state = happening;
    if (!isAtOnce) await turn();
  }
  return [await outcome, ...cancelled].join('; cancels ');
}

/** Whichever is first, and if both come at once: the agent sees the same. */
const RACES: readonly (readonly [readonly Happening[], string])[] = [
  [['denied', 'news'], 'deny: approval apr_1 is denied'],
  [['denied', 'news', 'signal'], 'deny: approval apr_1 is denied'],
  [['denied', 'signal', 'news'], 'deny: approval apr_1 is denied'],
  [['denied', 'signal'], 'deny: approval apr_1 is denied'],
  [['expired', 'news', 'signal'], 'deny: approval apr_1 is expired'],
  [['expired', 'signal', 'news'], 'deny: approval apr_1 is expired'],
  [['cancelled', 'news', 'signal'], 'deny: approval apr_1 is cancelled'],
  [['cancelled', 'signal', 'news'], 'deny: approval apr_1 is cancelled'],
  [['approved', 'news'], 'allow: checked again'],
  [['approved', 'news', 'signal'], 'ended: terminated'],
  [['approved', 'signal', 'news'], 'ended: terminated'],
  [['used', 'signal'], 'ended: terminated'],
  [['signal'], 'ended: terminated'],
  [['unknown', 'signal'], 'ended: terminated'],
  [['signal', 'cancel'], 'ended: terminated'],
  [['cancel'], 'ended: cancelled; cancels apr_1'],
  [['cancel', 'signal'], 'ended: cancelled; cancels apr_1'],
  [['denied', 'cancel', 'signal', 'news'], 'ended: cancelled; cancels apr_1'],
];

describe('an approval that ends while its operation is terminated', () => {
  test.each(RACES)('%j: %s', async (happenings, expected) => {
    expect(await outcomeOf(happenings)).toBe(expected);
    expect(await outcomeOf(happenings, true)).toBe(expected);
  });

  test.each<[readonly Happening[], string]>([
    [['decline'], 'deny: the user declined to wait for approval apr_1; cancels apr_1'],
    [['decline', 'signal'], 'deny: the user declined to wait for approval apr_1; cancels apr_1'],
    [['decline', 'denied', 'news'], 'deny: the user declined to wait for approval apr_1; cancels apr_1'],
    [['denied', 'news', 'decline'], 'deny: approval apr_1 is denied'],
    [['signal', 'decline'], 'ended: terminated'],
  ])('a user who gives up: %j: %s', async (happenings, expected) => {
    expect(await outcomeOf(happenings)).toBe(expected);
  });
});

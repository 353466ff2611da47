/** A gateway of a cluster, which uses only what the ledger has granted it of a limit. */
import { describe, expect, test } from 'vitest';
import type { AccountRow, Grant } from '../../../src/core/budget/escrow.ts';
import { LimitGrants } from '../../../src/core/limits/grants.ts';
import { CRAWLER, checkOf } from '../../support/governor.ts';
import { ask, openLimited, START_MS } from '../../support/limits.ts';

const FEW = { id: 'few', per: 'session', calls: 5, on_exceed: 'ask' };

function openShared() {
  const grants = new LimitGrants(5_000);
  const governor = openLimited([FEW], { grants });
  /** Decides a check; undefined: the ledger is to be asked first, for as much. */
  const check = (op: string, nowMs = START_MS) => {
    const { short, reply } = governor.apply<'check'>(checkOf(CRAWLER, op), nowMs);
    return short === undefined ? reply : short;
  };
  const answer = (rows: readonly AccountRow[], more: Partial<Grant>, nowMs = START_MS) =>
    governor.limits.takeGrants(
      rows,
      rows.map(({ owner, period }) => ({
        ...{ owner, period, grantedMicroUsd: 0, spentByAllMicroUsd: 0, heldByAllMicroUsd: 0 },
        alertPercent: undefined,
        ...more,
      })),
      nowMs,
    );
  return { governor, grants, check, answer };
}

describe('limits that the ledger grants', () => {
  test('have a check wait for the ledger, and then let as much pass as was granted', () => {
    const { governor, grants, check, answer } = openShared();
    const short = check('t:1');
    expect(short).toMatchObject([{ lacksMicroUsd: 1, limited: { key: 'acme/t', period: 'life' } }]);
    expect(governor.ops.find('t:1' as never, 'acme')).toBeUndefined();
    grants.need((short as any)[0].limited, 1, START_MS);
    const rows = grants.due(10, false, START_MS);
    expect(rows).toMatchObject([{ capMicroUsd: 5, keptMicroUsd: 0, spentMicroUsd: 0, neededMicroUsd: 1 }]);
    answer(rows, { grantedMicroUsd: 2, heldByAllMicroUsd: 2 });
    expect(ask(governor, 't:1').decision).toBe('allow');
    expect(ask(governor, 't:2').decision).toBe('allow');
    expect(check('t:3')).toMatchObject([{ lacksMicroUsd: 1 }]);
  });

  test('deny without asking anybody while the ledger cannot be asked, and say so', () => {
    const { governor, grants, check } = openShared();
    const [{ limited }] = check('t:1') as any;
    grants.exhaust(limited, 1, START_MS, true);
    expect(ask(governor, 't:1')).toMatchObject({
      decision: 'deny',
      cause: 'limit',
      reason: 'the limit of 5 calls per session cannot be confirmed without the database (limit few of policy limited)',
    });
  });

  test('ask people once the ledger says that all is used, with the use of all gateways', () => {
    const { governor, grants, check, answer } = openShared();
    const [{ limited }] = check('t:1') as any;
    grants.need(limited, 1, START_MS);
    answer(grants.due(10, false, START_MS), { spentByAllMicroUsd: 5 });
    grants.exhaust(limited, 1, START_MS, false);
    expect(ask(governor, 't:1')).toMatchObject({
      decision: 'pending',
      reason: 'the limit of 5 calls per session is reached (limit few of policy limited)',
    });
    const [approval] = governor.approvals.all();
    expect(approval?.limit).toMatchObject({ key: 't', used: 5, max: 5, step: 5 });
  });

  test('take over a raise that others know of, and use it once it is granted', () => {
    const { grants, check, answer } = openShared();
    const [{ limited }] = check('t:1') as any;
    grants.need(limited, 1, START_MS);
    const raised = { amount: 5, atMs: START_MS - 1 };
    answer(grants.due(10, false, START_MS), { spentByAllMicroUsd: 5, raised });
    grants.need(limited, 1, START_MS);
    expect(grants.due(10, false, START_MS)).toMatchObject([{ capMicroUsd: 10, raised }]);
  });

  test('alert of the use of all gateways, as the ledger says', () => {
    const { grants, check, answer } = openShared();
    const [{ limited }] = check('t:1') as any;
    grants.need(limited, 1, START_MS);
    const alerts = answer(grants.due(10, false, START_MS), { spentByAllMicroUsd: 4, alertPercent: 80 });
    expect(alerts).toMatchObject([{ policy: 'limited', key: 'acme/t', used: 4, max: 5, percent: 80 }]);
  });
});

import { describe, expect, test } from 'vitest';
import type { Command } from '../../../src/core/commands.ts';
import { openSwitchboard } from '../../support/switchboard.ts';

const ADMIN = { subject: 'key:1', scopes: ['admin'], orgId: null } as const;
const halt: Command = {
  type: 'create-halt',
  principal: ADMIN,
  halt: { id: 'h', scope: 'org:acme', mode: 'terminate', actions: ['*'], reason: 'test', expiresAtMs: undefined },
};

/** Collects the outcomes of reports, with a store that saves each when the test says so. */
function open() {
  const became: (string | boolean)[] = [];
  let save: () => void = () => undefined;
  const board = openSwitchboard({
    webhooks: {
      reportEffect: ({ kind }) => {
        became.push(kind);
        return {
          saved: new Promise<void>((resolve) => {
            save = resolve;
          }),
          settle: (isRecorded) => void became.push(isRecorded),
        };
      },
      reportExceeded: () => undefined,
    },
  });
  return { ...board, became, save: () => save() };
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
};

describe('reports of webhooks', () => {
  test('are saved before the change is recorded, and sent after that', async () => {
    const { ask, batches, became, save, write, audit } = open();
    ask(halt);
    await turns();
    expect({ became, batches: batches.length }).toEqual({ became: ['halt-changed'], batches: 0 });
    save();
    await turns();
    expect({ became, batches: batches.length }).toEqual({ became: ['halt-changed'], batches: 1 });
    write(1);
    audit.catchUp();
    expect(became).toEqual(['halt-changed', true]);
  });

  test('are dropped with a change that could not be recorded', async () => {
    const { ask, became, governor, save, refuse } = open();
    ask(halt);
    save();
    await turns();
    refuse();
    expect(became).toEqual(['halt-changed', false]);
    expect(governor.halts.activeCount).toBe(0);
  });
});

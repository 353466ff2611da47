import { describe, expect, test } from 'vitest';
import type { Effect } from '../../../src/core/effects.ts';
import type { ControlSharing } from '../../../src/ports/sharing.ts';
import { Batch } from '../../../src/threads/main/batch.ts';
import { EffectRunner } from '../../../src/threads/main/effect-runner.ts';

const SAVED = { kind: 'state-saved', table: 'approvals', id: 'a-1', row: {} } as const;
const SIGNAL = { kind: 'signal', agent: 'acme/search/crawler', opId: 't:1', signal: 'terminate' } as unknown as Effect;

/** `notActing`: the gateways that do not act yet by what was saved. */
async function unconfirmedBy(notActing: { readonly states: string[] | undefined; readonly controls: string[] }) {
  const runner = new EffectRunner({
    states: { load: () => [], save: async () => notActing.states, remove: async () => {} },
    controls: { nextSequence: () => 1, save: async () => notActing.controls, forget: () => {} } as ControlSharing,
    events: { publishEffect: () => {} },
  } as unknown as ConstructorParameters<typeof EffectRunner>[0]);
  const batch = new Batch(0, 0, 0);
  batch.begin();
  const saved = await runner.run([SAVED, SIGNAL], batch);
  batch.addEntry({ eventType: 'OpTerminated', lineage: { orgId: '', teamId: '', agentId: '' }, actor: 'key:a' });
  batch.add(1, {} as never, { ok: true, value: undefined }, undefined);
  batch.nameUnconfirmed(saved);
  await batch.confirmed();
  return (batch.replies[0]!.reply as { unconfirmed?: readonly string[] }).unconfirmed;
}

describe('effect runner', () => {
  test('an answer names each gateway that does not act by one of its changes, once', async () => {
    const [neither, second, both] = await Promise.all([
      unconfirmedBy({ states: undefined, controls: [] }),
      unconfirmedBy({ states: [], controls: ['gateway-2'] }),
      unconfirmedBy({ states: ['gateway-2', 'gateway-3'], controls: ['gateway-1', 'gateway-2'] }),
    ]);
    expect({ neither, second, both }).toEqual({
      neither: undefined,
      second: ['gateway-2'],
      both: ['gateway-2', 'gateway-3', 'gateway-1'],
    });
  });
});

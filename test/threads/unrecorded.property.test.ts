import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Command } from '../../src/core/commands.ts';
import { decodeToIo } from '../../src/threads/codec.ts';
import { ADMIN, checkOf, controlOf, CRAWLER, opId } from '../support/governor.ts';
import { openSwitchboard } from '../support/switchboard.ts';

const OPS = ['t:0', 't:1'];
const STATE_AFTER = { pause: 'paused', resume: 'running', terminate: 'terminated', complete: 'completing' } as const;

type Shown = { state: string; heldMicroUsd: number };

/** What the entry of this command, with this answer, says of its operation. */
function record(op: Shown, command: Command, reply: { readonly ok: boolean; readonly value?: unknown }): void {
  if (!reply.ok) return;
  const hasBegun = op.state !== 'unknown' && op.state !== 'pending';
  switch (command.type) {
    case 'register-op': op.state = 'pending'; return;
    case 'control-op':
      op.state = STATE_AFTER[command.trigger];
      if (op.state === 'terminated' || op.state === 'completing') op.heldMicroUsd = 0;
      return;
    case 'check': {
      const { decision, reason, opState } = reply.value as { readonly decision: string; readonly reason: string; readonly opState: string };
      if (decision === 'allow') {
        if (!hasBegun) op.state = 'running';
        op.heldMicroUsd = Math.max(op.heldMicroUsd, command.estimatedCostMicroUsd);
      } else if (reason === 'forbidden' && opState === 'terminated' && !hasBegun) op.state = 'terminated';
      return;
    }
    default: throw new Error(command.type);
  }
}

const command = fc.oneof(
  { weight: 5, arbitrary: fc.tuple(fc.constantFrom(...OPS), fc.constantFrom('web', 'web', 'web', 'forbidden'), fc.integer({ min: 0, max: 3 })).map(([op, resource, cost]): Command => checkOf(CRAWLER, op, { resource, estimatedCostMicroUsd: cost })) },
  { weight: 4, arbitrary: fc.tuple(fc.constantFrom(...OPS), fc.constantFrom('pause', 'pause', 'resume', 'resume', 'terminate', 'complete') as fc.Arbitrary<keyof typeof STATE_AFTER>).map(([op, trigger]): Command => controlOf(op, trigger)) },
  { weight: 1, arbitrary: fc.constantFrom(...OPS).map((op): Command => ({ type: 'register-op', principal: ADMIN, opId: opId(op), agent: CRAWLER })) },
);
/** Batches that are all on their way at once, and which of them the log takes. */
const flight = fc.array(fc.record({ commands: fc.array(command, { minLength: 1, maxLength: 3, size: 'max' }), isWritten: fc.boolean(), waitsMs: fc.constantFrom(0, 1) }), { minLength: 1, maxLength: 6, size: 'max' });

test('once all writes have ended, operations and the money they hold are what the entries in the log say, whichever batches are missing there', () => {
  fc.assert(fc.property(fc.array(flight, { minLength: 1, maxLength: 4, size: 'max' }), (flights) => {
    let nowMs = 1_000;
    const { ask, audit, batches, write, refuse, governor } = openSwitchboard({ nowMs: () => nowMs });
    const log = new Map(OPS.map((op): [string, Shown] => [op, { state: 'unknown', heldMicroUsd: 0 }]));
    for (const each of flights) {
      const first = batches.length;
      const asked = new Map<number, Command>();
      const fates: boolean[] = [];
      for (const { commands, isWritten, waitsMs } of each) {
        nowMs += waitsMs;
        const before = batches.length;
        ask(...commands).forEach((id, index) => asked.set(id, commands[index]!));
        if (batches.length > before) fates.push(isWritten);
      }
      fates.forEach((isWritten, index) => {
        const { batch, replies } = batches[first + index]!;
        nowMs += 1;
        if (!isWritten) return refuse(batch);
        write(batch);
        for (const message of decodeToIo(replies!)) if (message.type === 'command-reply') record(log.get((asked.get(message.id) as { opId: string }).opId)!, asked.get(message.id)!, message.reply);
      });
      audit.catchUp();
      audit.receive({ type: 'writable' });
      expect(audit.entriesInFlight).toBe(0);
      // An operation that only a check without a record began is over; nobody may have begun it.
      const shown = OPS.map((op) => {
        const slot = governor.ops.find(opId(op));
        return slot === undefined ? 'unknown' : governor.ops.stateOf(slot);
      });
      OPS.forEach((op, index) => {
        const { state } = log.get(op)!;
        expect(state === 'unknown' ? ['unknown', 'terminated'] : [state]).toContain(shown[index]);
      });
      const held = [...log.values()].map(({ heldMicroUsd }) => heldMicroUsd).filter((microUsd) => microUsd > 0);
      expect(governor.budgets.reservations).toEqual({ count: held.length, microUsd: held.reduce((sum, microUsd) => sum + microUsd, 0) });
    }
  }), { numRuns: 500 });
});

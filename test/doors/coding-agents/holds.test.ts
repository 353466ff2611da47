import { describe, expect, test } from 'vitest';
import { ok } from '../../../src/core/base/result.ts';
import { Holds } from '../../../src/doors/coding-agents/holds.ts';
import { ControlSwitch } from '../../../src/doors/rpc/control-switch.ts';
import { digestOfPresented } from '../../../src/doors/rpc/credential-digests.ts';

describe('held answers', () => {
  const ports = { link: { ask: async () => ({ reply: ok({ pending: [] }) }) } } as never;
  const hold = (holds: Holds, orgId: string, bytes = 0) => {
    const agent = { orgId, teamId: 'code', agentId: 'coder' };
    const speaker = { agent, credential: digestOfPresented('a-token-of-the-agent-0123456789'), principal: undefined };
    const vouch = async () => ok(speaker);
    const held = { speaker, vouch, opId: 't:s' as never, caller: { cancelled: false }, bytes };
    return holds.with(ports, held, (next) => next(performance.now() + 60_000));
  };

  test('leave half of the places to other orgs, and are given back', async () => {
    const holds = new Holds(new ControlSwitch(() => undefined), { calls: 4, bytes: 0 });
    const own = [hold(holds, 'acme'), hold(holds, 'acme')];
    expect(await hold(holds, 'acme')).toBe('over');
    own.push(hold(holds, 'globex'));
    await expect.poll(() => holds.size).toBe(3);
    holds.drain();
    expect(await Promise.all(own)).toEqual(['over', 'over', 'over']);
    expect(holds.size).toBe(0);
  });

  test('keep at most half of the bytes for one org, and all together all of them', async () => {
    const holds = new Holds(new ControlSwitch(() => undefined), { calls: 100, bytes: 1_000 });
    const held = [hold(holds, 'acme', 300), hold(holds, 'acme', 200)];
    expect(await hold(holds, 'acme', 1)).toBe('over');
    held.push(hold(holds, 'globex', 500));
    expect(await hold(holds, 'initech', 1)).toBe('over');
    await expect.poll(() => holds.size).toBe(3);
    holds.drain();
    await Promise.all(held);
    expect(holds.size).toBe(0);
  });
});

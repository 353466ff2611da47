import { describe, expect, test } from 'vitest';
import { ok } from '../../../src/core/base/result.ts';
import { Holds } from '../../../src/doors/hooks/holds.ts';
import { ControlSwitch } from '../../../src/doors/rpc/control-switch.ts';

describe('held answers', () => {
  const ports = { link: { ask: async () => ({ reply: ok({ pending: [] }) }) } } as never;
  const hold = (holds: Holds, orgId: string) => {
    const agent = { orgId, teamId: 'code', agentId: 'coder' };
    const speaker = { agent, credentialToken: 'a-token-of-the-agent-0123456789', authorization: undefined };
    const held = { speaker, opId: 't:s' as never, caller: { cancelled: false } };
    return holds.with(ports, held, (next) => next(performance.now() + 60_000));
  };

  test('of one org leave half of the places to others, and are given back', async () => {
    const holds = new Holds(new ControlSwitch(() => undefined), 4);
    const own = [hold(holds, 'acme'), hold(holds, 'acme')];
    expect(await hold(holds, 'acme')).toBe('over');
    own.push(hold(holds, 'globex'));
    await expect.poll(() => holds.size).toBe(3);
    holds.drain();
    expect(await Promise.all(own)).toEqual(['over', 'over', 'over']);
    expect(holds.size).toBe(0);
  });
});

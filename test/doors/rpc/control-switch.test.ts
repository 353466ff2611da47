import { describe, expect, test } from 'vitest';
import type { AgentKey } from '../../../src/core/base/ids.ts';
import { explain } from '../../../src/core/fault.ts';
import { ControlSwitch } from '../../../src/doors/rpc/control-switch.ts';

/** Two streams of one agent, by its own credential and by a bearer, and one of another agent. */
function threeStreams() {
  const events: string[] = [];
  const control = new ControlSwitch((stream, agent) => events.push(`${agent} has closed ${stream}`));
  const open = (name: string, agent: string, subject: string | undefined): number => {
    const stream = control.open({
      agent: agent as AgentKey,
      subject,
      signal: ({ sequence }) => events.push(`${name} hears ${sequence}`),
      close: (fault) => {
        events.push(`${name}: ${explain(fault)}`);
        control.close(stream);
      },
    });
    return stream;
  };
  return {
    control,
    events,
    streams: [
      open('own', 'acme/search/crawler', undefined),
      open('vouched', 'acme/search/crawler', 'key:w'),
      open('other', 'acme/search/lead', undefined),
    ],
  };
}

describe('control switch', () => {
  test('a signal reaches its own stream only, and no closed one', () => {
    const { control, events, streams } = threeStreams();
    for (const [nth, stream] of streams.entries())
      control.deliver(stream, { opId: 't:s' as never, signal: 'pause', sequence: nth });
    control.close(streams[1]!);
    control.close(streams[1]!);
    control.deliver(streams[1]!, { opId: 't:s' as never, signal: 'pause', sequence: 9 });
    expect(events).toEqual([
      'own hears 0',
      'vouched hears 1',
      'other hears 2',
      `acme/search/crawler has closed ${streams[1]}`,
    ]);
  });

  test("replacing an agent's credential closes its own streams, not those of a bearer", () => {
    const { control, events, streams } = threeStreams();
    control.revokeAgent('acme/search/crawler' as AgentKey);
    expect(events).toEqual([
      'own: the credential token of the agent is no longer valid',
      `acme/search/crawler has closed ${streams[0]}`,
    ]);
    expect(control.size).toBe(2);
  });

  test("revoking a bearer closes the streams it opened, and no agent's own", () => {
    const { control, events, streams } = threeStreams();
    control.revokeSubject('key:w');
    expect(events).toEqual(['vouched: the credential was revoked', `acme/search/crawler has closed ${streams[1]}`]);
    expect(control.size).toBe(2);
  });
});

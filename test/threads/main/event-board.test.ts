import { describe, expect, test } from 'vitest';
import type { OpId } from '../../../src/core/base/ids.ts';
import type { Effect } from '../../../src/core/effects.ts';
import type { GatewayEvent } from '../../../src/ports/events.ts';
import { decodeToIo, encodeToIo } from '../../../src/threads/codec.ts';
import { EventBoard } from '../../../src/threads/main/event-board.ts';
import { PEERS } from '../../../src/threads/protocol.ts';

const CHECKED = {
  action: 'tool.call',
  resource: 'web_search',
  policy: 'starter',
  ruleId: 'web',
  reason: 'web tools only',
  estimatedMicroUsd: 5,
  spentMicroUsd: 7,
  approvalId: 'a1',
  error: 'refused',
  ended: 'failed',
} as const;

const changed = (orgId: string): Effect => ({
  kind: 'op-changed',
  op: {
    ...CHECKED,
    opId: 't:1' as OpId,
    state: 'paused',
    registeredAtMs: 1,
    updatedAtMs: 2,
    agent: { orgId, teamId: 'search', agentId: 'crawler' },
    acknowledgedAtMs: undefined,
  },
});

function board() {
  const delivered: [number, GatewayEvent][] = [];
  return { delivered, events: new EventBoard((io, event) => delivered.push([io, event]), 5) };
}

describe('event board', () => {
  test('a thread gets the events of the orgs that it has readers for, or of all', () => {
    const { events, delivered } = board();
    events.publishEffect(changed('early'), 3);
    events.setInterest(0, ['acme']);
    events.setInterest(1, 'all');
    events.publishEffect({ kind: 'spend-recorded' }, 3);
    for (const orgId of ['acme', 'globex', '']) events.publishEffect(changed(orgId), 3);
    expect(delivered.map(([io, { id, orgId }]) => [io, id, orgId])).toEqual([
      [0, 5001, 'acme'],
      [1, 5001, 'acme'],
      [1, 5002, 'globex'],
      [1, 5003, null],
    ]);
    events.setInterest(0, []);
    events.dropThread(1);
    expect(events.isWatched).toBe(false);
  });

  test('events of another gateway reach the readers here, and go no further', () => {
    const { events, delivered } = board();
    const reported: unknown[] = [];
    events.followInterest((interest) => reported.push(interest));
    events.setInterest(PEERS, 'all');
    events.setInterest(0, ['acme']);
    events.setInterest(1, ['acme', 'globex']);
    events.setInterest(2, 'all');
    events.dropThread(2);
    expect(reported).toEqual([['acme'], ['acme', 'globex'], 'all', ['acme', 'globex']]);
    events.show({ kind: 'halt', orgId: 'globex', agentId: null, atMs: 4, payload: {} });
    events.publish({ kind: 'halt', orgId: 'globex', agentId: null, atMs: 4, payload: {} });
    expect(delivered.map(([io, { id }]) => [io, id])).toEqual([
      [1, 5001],
      [PEERS, 5002],
      [1, 5002],
    ]);
    const missed: number[] = [];
    events.reportLost((io) => missed.push(io));
    expect(missed).toEqual([0, 1]);
  });

  test('events cross to another thread unchanged', () => {
    const { events, delivered } = board();
    events.setInterest(0, 'all');
    events.publishEffect(changed('acme'), 3.5);
    events.publishEffect(changed(''), 4);
    events.publish({
      kind: 'account',
      orgId: null,
      agentId: null,
      atMs: 4,
      payload: { change: 'locked', account_id: 'a1', email: 'a@example.com', role: 'viewer' },
    });
    const list = delivered.map(([, event]) => event);
    expect(decodeToIo(encodeToIo([{ type: 'events', events: list }]))).toEqual([
      {
        type: 'events',
        events: [
          {
            id: 5001,
            kind: 'ops_change',
            orgId: 'acme',
            agentId: 'crawler',
            atMs: 3.5,
            payload: { ...CHECKED, opId: 't:1', state: 'paused', registeredAtMs: 1, updatedAtMs: 2, teamId: 'search' },
          },
          {
            id: 5002,
            kind: 'ops_change',
            orgId: null,
            agentId: 'crawler',
            atMs: 4,
            payload: { ...CHECKED, opId: 't:1', state: 'paused', registeredAtMs: 1, updatedAtMs: 2, teamId: 'search' },
          },
          {
            id: 5003,
            kind: 'account',
            orgId: null,
            agentId: null,
            atMs: 4,
            payload: { change: 'locked', account_id: 'a1', email: 'a@example.com', role: 'viewer' },
          },
        ],
      },
    ]);
  });

  test.each<[Effect, object]>([
    [
      {
        kind: 'budget-alert',
        alert: {
          tier: 'team',
          orgId: 'acme',
          teamId: 'search',
          agentId: null,
          period: 'daily',
          percent: 80,
          spentMicroUsd: 8_000_000,
          limitMicroUsd: 10_000_000,
        } as never,
      },
      {
        kind: 'budget',
        orgId: 'acme',
        agentId: null,
        payload: { tier: 'team', team_id: 'search', period: 'daily', percent: 80, spent_usd: 8, limit_usd: 10 },
      },
    ],
    ...(
      [
        [false, 'registered'],
        [true, 'rotated'],
      ] as const
    ).map(([rotated, change]): [Effect, object] => [
      {
        kind: 'agent-saved',
        rotated,
        registration: { identity: { orgId: 'acme', teamId: 'search', agentId: 'crawler' } } as never,
        key: 'acme/search/crawler' as never,
      },
      {
        kind: 'agent',
        orgId: 'acme',
        agentId: 'crawler',
        payload: { change, team_id: 'search', key: 'acme/search/crawler', parent: null },
      },
    ]),
    [
      {
        kind: 'agent-removed',
        identity: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
        key: 'acme/search/crawler' as never,
      },
      {
        kind: 'agent',
        orgId: 'acme',
        agentId: 'crawler',
        payload: { change: 'deregistered', team_id: 'search', key: 'acme/search/crawler' },
      },
    ],
  ])('%o is written in the words of the wire', (effect, expected) => {
    const { events, delivered } = board();
    events.setInterest(0, 'all');
    events.publishEffect(effect, 3);
    expect(delivered).toEqual([[0, { id: 5001, atMs: 3, ...expected }]]);
  });
});

/** The registrations of all gateways, as one of them follows what others write while it writes itself. */
import { describe, expect, test } from 'vitest';
import { AgentFeed } from '../../src/cluster/agent-feed.ts';
import { type AgentRegistration, AgentRegistry } from '../../src/core/agents/agents.ts';
import { type AgentKey, agentKeyOf, type SecretDigest } from '../../src/core/base/ids.ts';
import { fail, ok, type Result } from '../../src/core/base/result.ts';
import type { Fault } from '../../src/core/fault.ts';
import type { AgentChange, SharedAgents } from '../../src/ports/cluster.ts';

const registration = (agentId: string, credential: string): AgentRegistration => ({
  identity: { orgId: 'acme', teamId: 'search', agentId },
  credential: credential as SecretDigest,
  registeredAtMs: 0,
  parent: undefined,
});

/** Answers of the database come when the test says so. */
function open() {
  const table = new Map<AgentKey, AgentRegistration>();
  const waiting: (() => void)[] = [];
  const later = <T>(answer: T): Promise<T> => new Promise((resolve) => waiting.push(() => resolve(answer)));
  const world = { refuses: undefined as Fault | undefined, revoked: [] as string[] };
  const registry = new AgentRegistry();
  const changesNow = (): readonly AgentChange[] => Array.from(table, ([key, each]) => ({ key, registration: each }));
  const store = {
    save: (each: AgentRegistration): Promise<Result<boolean, Fault>> => {
      if (world.refuses !== undefined) return later(fail(world.refuses));
      table.set(agentKeyOf(each.identity), each);
      return later(ok(true));
    },
    changes: () => later(ok({ changes: changesNow(), isWhole: false, seen: () => undefined })),
    find: () => later(ok(changesNow().flatMap((each) => each.registration ?? []))),
  } as unknown as SharedAgents;
  const feed = new AgentFeed(
    {
      store,
      bus: { send: () => true } as never,
      barrier: { pass: async () => [] },
      onRevoked: (agent) => world.revoked.push(agent),
      steadyMs: () => 0,
    },
    [],
  );
  feed.follow(registry);
  /** The latest first. */
  const answer = async (): Promise<void> => {
    for (const each of waiting.splice(0).reverse()) {
      each();
      await new Promise((resolve) => setImmediate(resolve));
    }
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return { table, registry, feed, answer, world };
}

describe('the registrations of all gateways', () => {
  test('are not undone by a reading that began before a rotation was written', async () => {
    const { table, registry, feed, answer } = open();
    const old = registration('crawler', 'old');
    table.set(agentKeyOf(old.identity), old);
    registry.register(old);
    const reading = feed.refresh(); // has read the old one
    await new Promise((resolve) => setImmediate(resolve));
    registry.register(registration('crawler', 'new'));
    const saved = feed.save(registration('crawler', 'new'), true);
    await answer();
    await Promise.all([saved, reading]);
    expect(registry.ownerOf('old' as SecretDigest)).toBeUndefined();
    expect(registry.ownerOf('new' as SecretDigest)?.identity.agentId).toBe('crawler');
  });

  test('keep the agent that has a credential, whoever else asked for it at once', async () => {
    const { table, registry, feed, answer, world } = open();
    const winner = registration('winner', 'same');
    const loser = registration('loser', 'same');
    registry.register(loser);
    world.refuses = { kind: 'conflict', detail: 'taken' };
    const refused = feed.save(loser).catch(() => registry.deregister(agentKeyOf(loser.identity)));
    table.set(agentKeyOf(winner.identity), winner);
    const reading = feed.refresh(); // while the other one is being refused
    await new Promise((resolve) => setImmediate(resolve));
    await answer();
    await answer();
    await Promise.all([refused, reading]);
    expect(registry.ownerOf('same' as SecretDigest)?.identity.agentId).toBe('winner');
  });
});

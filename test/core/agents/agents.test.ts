import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AgentEntry, viewOfAgent } from '../../../src/core/agents/agent-entry.ts';
import { type AgentRegistration, AgentRegistry } from '../../../src/core/agents/agents.ts';
import {
  type AgentIdentity,
  type AgentKey,
  agentKeyOf,
  isName,
  isOpHalf,
  isOrgName,
  parseAgentKey,
  parseOpId,
  type SecretDigest,
} from '../../../src/core/base/ids.ts';
import { CODE_POINT } from '../../support/code-point.ts';
import { runs } from '../../support/runs.ts';

const CRAWLER: AgentIdentity = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const registration = (identity: AgentIdentity, credential: string, parent?: AgentIdentity): AgentRegistration => ({
  identity,
  credential: credential as SecretDigest,
  registeredAtMs: 1,
  parent: parent === undefined ? undefined : agentKeyOf(parent),
});
const digest = (text: string): SecretDigest => text as SecretDigest;

describe('agents', () => {
  test('agents with equal names in different orgs, or in none, are different agents', () => {
    const agents = new AgentRegistry();
    const entries = ['acme', 'globex', ''].map((orgId) =>
      agents.register(registration({ ...CRAWLER, orgId }, `token-${orgId}`)),
    );
    expect(new Set(entries.map(({ key }) => key))).toEqual(
      new Set(['acme/search/crawler', 'globex/search/crawler', '/search/crawler']),
    );
    expect(agents.ownerOf(digest('token-globex'))).toBe(entries[1]);
    expect([...agents.groups.orgs.get('globex')!.agents.after(0)]).toEqual([entries[1]]);
    expect(agents.groups.orgs.get('nobody')).toBeUndefined();
  });

  test('registering again rotates the token at once and keeps position and time', () => {
    const agents = new AgentRegistry();
    const first = agents.register(registration(CRAWLER, 'old'));
    const place = first.registration;
    expect(agents.register({ ...registration(CRAWLER, 'new'), registeredAtMs: 99 })).toBe(first);
    expect({ ownerOld: agents.ownerOf(digest('old')), ownerNew: agents.ownerOf(digest('new')) }).toEqual({
      ownerOld: undefined,
      ownerNew: first,
    });
    expect({
      registration: first.registration,
      registeredAtMs: first.registeredAtMs,
      registeredCount: agents.registeredCount,
    }).toEqual({ registration: place, registeredAtMs: 1, registeredCount: 1 });
  });

  test('a lookup alone stores nothing', () => {
    const agents = new AgentRegistry();
    const looked = agents.lookUp(CRAWLER);
    expect({ knownCount: agents.knownCount, agents: agents.get(looked.key) }).toEqual({
      knownCount: 0,
      agents: undefined,
    });
    agents.keep(looked);
    expect(agents.lookUp(CRAWLER)).toBe(looked);
  });

  test('a deregistered agent stays known until its last operation is gone', () => {
    const forgotten: AgentEntry[] = [];
    const agents = new AgentRegistry((entry) => forgotten.push(entry));
    const entry = agents.register(registration(CRAWLER, 'token'));
    entry.ops = 1;
    expect(agents.deregister(entry.key)).toBe(true);
    expect({
      owner: agents.ownerOf(digest('token')),
      agentCount: agents.groups.orgs.get('acme')!.agents.size,
      agents: agents.get(entry.key),
      forgotten,
    }).toEqual({ owner: undefined, agentCount: 0, agents: entry, forgotten: [] });
    entry.ops = 0;
    agents.dropIfUnused(entry);
    expect({ agents: agents.get(entry.key), forgotten }).toEqual({ agents: undefined, forgotten: [entry] });
    expect(agents.deregister(entry.key)).toBe(false);
  });

  test('a re-registered agent counts as unseen until its next call', () => {
    const agents = new AgentRegistry();
    const entry = agents.register(registration(CRAWLER, 'token'));
    entry.ops = 1; // which keeps it known
    agents.touch(entry, 600_000);
    expect({ lastSeenMs: viewOfAgent(entry).lastSeenMs, count: agents.groups.seen.count(600_000) }).toEqual({
      lastSeenMs: 600_000,
      count: 1,
    });
    for (let round = 0; round < 2; round += 1) {
      agents.deregister(entry.key);
      agents.register(registration(CRAWLER, 'again'));
      expect({ lastSeenMs: viewOfAgent(entry).lastSeenMs, count: agents.groups.seen.count(600_000) }).toEqual({
        lastSeenMs: undefined,
        count: 0,
      });
    }
    agents.touch(entry, 600_000);
    expect(agents.groups.seen.count(600_000)).toBe(1);
  });

  test('counts the agents seen in this minute and in the five before it', () => {
    const agents = new AgentRegistry();
    for (let minute = 0; minute <= 5; minute += 1)
      agents.touch(
        agents.register(registration({ ...CRAWLER, agentId: `a${minute}` }, `token-${minute}`)),
        (100 + minute) * 60_000,
      );
    const seenAt = (minute: number) => agents.groups.seen.count((100 + minute) * 60_000);
    expect([5, 6, 7, 10, 11].map(seenAt)).toEqual([6, 5, 4, 1, 0]);
  });

  test('all indexes agree after any sequence of registrations and deregistrations', () => {
    const names = fc.record({
      orgId: fc.constantFrom('', 'acme', 'globex'),
      teamId: fc.constantFrom('a', 'b'),
      agentId: fc.constantFrom('x', 'y', 'z'),
    });
    const steps = fc.array(fc.tuple(fc.boolean(), names, fc.option(names, { nil: undefined })), {
      maxLength: 60,
      size: 'max',
    });
    fc.assert(
      fc.property(steps, (changes) => {
        const agents = new AgentRegistry();
        const model = new Map<
          AgentKey,
          { identity: AgentIdentity; credential: string; parent: AgentKey | undefined }
        >();
        for (const [index, [comes, identity, parent]] of changes.entries()) {
          const key = agentKeyOf(identity);
          if (comes) {
            agents.register(registration(identity, `token-${index}`, parent));
            model.set(key, {
              identity,
              credential: `token-${index}`,
              parent: parent === undefined ? undefined : agentKeyOf(parent),
            });
          } else expect(agents.deregister(key)).toBe(model.delete(key));
        }
        expect({ registeredCount: agents.registeredCount, knownCount: agents.knownCount }).toEqual({
          registeredCount: model.size,
          knownCount: model.size,
        });
        expect([...agents.registeredAfter(0)].map(({ key }) => key).sort()).toEqual([...model.keys()].sort());
        for (const index of changes.keys()) {
          const owner = [...model].find(([, agent]) => agent.credential === `token-${index}`)?.[0];
          expect(agents.ownerOf(digest(`token-${index}`))?.key).toBe(owner);
        }
        const orgs = new Set([...model.values()].map(({ identity }) => identity.orgId));
        expect(new Set([...agents.groups.orgs.registered.after(0)].map(({ orgId }) => orgId))).toEqual(orgs);
        for (const orgId of orgs) {
          const members = [...model].filter(([, { identity }]) => identity.orgId === orgId);
          expect([...agents.groups.orgs.get(orgId)!.agents.after(0)].map(({ key }) => key).sort()).toEqual(
            members.map(([key]) => key).sort(),
          );
          for (const teamId of new Set(members.map(([, { identity }]) => identity.teamId))) {
            const team = members.filter(([, { identity }]) => identity.teamId === teamId).map(([key]) => key);
            expect(
              [...agents.groups.orgs.get(orgId)!.teams.get(teamId)!.agents.after(0)].map(({ key }) => key).sort(),
            ).toEqual(team.sort());
          }
          expect(agents.groups.orgs.get(orgId)!.teams.registered.size).toBe(
            new Set(members.map(([, { identity }]) => identity.teamId)).size,
          );
        }
        for (const parent of new Set([...model.values()].flatMap(({ parent: key }) => key ?? []))) {
          const children = [...model].filter(([, agent]) => agent.parent === parent).map(([key]) => key);
          expect([...agents.childrenOf(parent)].map(({ key }) => key).sort()).toEqual(children.sort());
        }
      }),
      { numRuns: runs(70) },
    );
  });

  test('an id has no separator, space or invisible character, and at most 256 bytes', () => {
    const anything = fc.oneof(
      fc.string(),
      fc.string({ unit: CODE_POINT }),
      fc.constantFrom(
        'a:b',
        'a/b',
        '',
        ' ',
        '.',
        '..',
        '...',
        '-',
        '\u0000',
        '\ud800',
        '\u200d',
        'ä'.repeat(128),
        `${'ä'.repeat(128)}a`,
        'x'.repeat(257),
      ),
    );
    fc.assert(
      fc.property(anything, anything, (one, two) => {
        const isPlain = (text: string, separator: string): boolean =>
          text !== '' &&
          new TextEncoder().encode(text).length <= 256 &&
          !text.includes(separator) &&
          !/[\s\p{C}]/u.test(text);
        expect(isOpHalf(one)).toBe(isPlain(one, ':'));
        expect(isName(one)).toBe(isPlain(one, '/') && !['.', '..'].includes(one)); // clients resolve these two in a path
        expect(isOrgName(one)).toBe(isPlain(one, '/') && !['.', '..', '-'].includes(one)); // in a path it stands for no org
        expect(parseOpId(`${one}:${two}`) !== undefined).toBe(isOpHalf(one) && isOpHalf(two));
        const identity = { orgId: one, teamId: two, agentId: 'x' };
        if (isOrgName(one) && isName(two)) expect(parseAgentKey(agentKeyOf(identity))).toEqual(identity);
      }),
      { numRuns: runs(300) },
    );
  });

  test.each([
    ['ä', 128],
    ['\u0800', 85],
    ['語', 85],
    ['\u{10000}', 64],
    ['😀', 64],
  ])('have ids that are limited in bytes: of %s no more than %i', (character, most) => {
    for (const isId of [isName, isOrgName, isOpHalf])
      expect([most, most + 1].map((count) => isId(character.repeat(count)))).toEqual([true, false]);
  });

  test('finds an agent by name in an org with very many teams', () => {
    const agents = new AgentRegistry();
    const identityOf = (n: number) => ({
      orgId: 'acme',
      teamId: `team-${n}`,
      agentId: n % 3 === 0 ? 'crawler' : `n${n}`,
    });
    const register = (n: number): void =>
      void agents.register({
        identity: identityOf(n),
        credential: `digest-${n}` as SecretDigest,
        registeredAtMs: 0,
        parent: undefined,
      });
    const found = (after = 0): readonly string[] =>
      [...agents.namedInOrgAfter('acme', 'crawler', after)].map(({ identity }) => identity.teamId);
    for (let n = 0; n < 20_000; n += 1) register(n);
    for (let time = 0; time < 100; time += 1)
      expect([...agents.namedInOrgAfter('acme', 'nobody', 0), ...agents.namedInOrgAfter('acme', 'n1', 0)]).toHaveLength(
        1,
      );
    const expected = Array.from({ length: 20_000 }, (_, n) => n).filter((n) => n % 3 === 0);
    expect(found()).toEqual(expected.map((n) => `team-${n}`));
    agents.deregister(agentKeyOf(identityOf(3)));
    agents.deregister(agentKeyOf(identityOf(9)));
    register(3);
    register(20_001);
    expect(found()).toEqual([...expected.filter((n) => n !== 3 && n !== 9), 3, 20_001].map((n) => `team-${n}`));
    expect(found(20_000)).toEqual(['team-3', 'team-20001']);
    // Also once it has few.
    for (let n = 0; n < 20_000; n += 1) if (n !== 3) agents.deregister(agentKeyOf(identityOf(n)));
    expect(found()).toEqual(['team-3', 'team-20001']);
  });
});

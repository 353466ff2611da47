import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../../src/core/audit/audit.ts';
import type { AgentIdentity } from '../../../src/core/base/ids.ts';
import { parsePolicyCases, runPolicyCases } from '../../../src/core/policy/cases.ts';
import { type Suggested, type SuggestionSource, Suggestions } from '../../../src/core/policy/suggest.ts';
import { runs } from '../../support/runs.ts';
import { policiesOf } from './harness.ts';

type Asked = { readonly agent: AgentIdentity; readonly action: string; readonly resource: string };

const entryOf = ({ agent, action, resource }: Asked, id: number, more: object = {}): AuditEntry =>
  ({
    ...{ id, event_type: 'ActionDenied', decision: 'deny', cause: 'no_rule', rule_id: null, policy: null },
    lineage: { org_id: agent.orgId === '' ? null : agent.orgId, team_id: agent.teamId, agent_id: agent.agentId },
    payload: { action, resource },
    ...more,
  }) as unknown as AuditEntry;

function suggest(entries: readonly AuditEntry[], source: SuggestionSource = 'denials'): Suggested {
  const suggestions = new Suggestions(source);
  for (const entry of entries) suggestions.add(entry);
  return suggestions.result();
}

const compiled = ({ documents }: Suggested) =>
  policiesOf(
    ...documents.map(({ name, scope, suggestions }) => ({ name, scope, rules: suggestions.map(({ rule }) => rule) })),
  );
const allows = (suggested: Suggested, asked: Asked): boolean =>
  compiled(suggested).decide({ ...asked, attributes: undefined, caller: undefined, estimatedCostMicroUsd: 0 }).kind ===
  'allow';

const A1 = { orgId: 'acme', teamId: 'search', agentId: 'a1' };
const A2 = { ...A1, agentId: 'a2' };
const read = (resource: string, agent: AgentIdentity = A1): Asked => ({ agent, action: 'file.read', resource });

describe('suggestions', () => {
  test('are one rule for agents that asked alike, with what they are drawn from', () => {
    const suggested = suggest([entryOf(read('/srv/x'), 9), entryOf(read('/srv/x', A2), 8), entryOf(read('/srv/x'), 7)]);
    expect(suggested).toEqual({
      denials: 3,
      leftOut: {},
      documents: [
        {
          name: 'suggested-acme/search',
          scope: 'team:acme/search',
          suggestions: [
            {
              rule: {
                ...{ id: 'suggested-1', effect: 'allow', actions: ['file.read'], resources: ['/srv/x'] },
                when: 'agent.agent_id in ["a1","a2"]',
              },
              evidence: [
                { ...read('/srv/x'), count: 2, auditIds: [9, 7] },
                { ...read('/srv/x', A2), count: 1, auditIds: [8] },
              ],
              widens: [],
            },
          ],
        },
      ],
      cases: [
        { ...caseOf('acme/search/a1', 'may'), expect: 'allow' },
        { ...caseOf('acme/search/a2', 'may'), expect: 'allow' },
        { ...caseOf('acme/search/somebody-else', 'may not'), expect: 'deny' },
      ],
    });
  });

  test('make a pattern only of a folder of which several were seen', () => {
    const seen = ['/srv/a/1', '/srv/a/2', '/srv/a/3', '/srv/a/4', '/etc/hosts', '/1', '/2', '/3', '/4', 'https://x'];
    const [document] = suggest(seen.map((resource, at) => entryOf(read(resource), at + 1))).documents;
    expect(document?.suggestions.map(({ rule }) => rule.resources)).toEqual([
      ['/1', '/2', '/3', '/4', '/etc/hosts', 'https://x', '/srv/a/*'].sort(),
    ]);
  });

  test('name what else was denied and would be let through', () => {
    const seen = ['/srv/a/1', '/srv/a/2', '/srv/a/3', '/srv/a/4'];
    const shadow = { decision: 'deny', cause: 'no_rule', version: 'x', policy: null, rule_id: null };
    const allowed = seen.map((resource, at) =>
      entryOf(read(resource), at + 1, {
        ...{ event_type: 'ActionAllowed', decision: 'allow', cause: null },
        payload: { action: 'file.read', resource, shadow },
      }),
    );
    const suggested = suggest([...allowed, entryOf(read('/srv/a/key'), 9), entryOf(read('/srv/b'), 10)], 'shadow');
    expect(suggested.denials).toBe(4);
    expect(suggested.documents[0]?.suggestions.map(({ widens }) => widens)).toEqual([
      [{ ...read('/srv/a/key'), count: 1, auditIds: [9] }],
    ]);
  });

  test('are of denials for want of a rule, and leave out what the log does not have', () => {
    const suggested = suggest([
      entryOf(read('/srv/[redacted]'), 1),
      entryOf(read('x'.repeat(900)), 2),
      entryOf(read('\ud800'), 3),
      entryOf(read('/srv/x'), 4, { cause: 'rule', rule_id: 'no-srv' }),
      entryOf(read('/srv/x'), 5, { event_type: 'ActionAllowed', decision: 'allow', cause: null }),
    ]);
    expect(suggested).toEqual({
      ...{ denials: 3, leftOut: { redacted: 1, too_long: 1, unreadable: 1 }, documents: [], cases: [] },
    });
  });

  test('allow what they claim, nobody else, a star as a star; their tests pass', () => {
    const text = fc.constantFrom(
      '/srv/a/1',
      '/srv/a/2',
      '/srv/a/3',
      '/srv/a/4',
      '/srv/*',
      'a?c',
      '*',
      '',
      '"\\n"',
      'ä€',
    );
    const asked = fc.record({
      agent: fc.record({
        orgId: fc.constantFrom('acme', 'globex', ''),
        teamId: fc.constantFrom('search', 'ops'),
        agentId: fc.constantFrom('a1', 'a2', 'a3'),
      }),
      action: fc.constantFrom('file.read', 'tool.call', 'x.*', 'x.?'),
      resource: text,
    });
    fc.assert(
      fc.property(fc.array(asked, { minLength: 1, maxLength: 40, size: 'max' }), asked, (seen, other) => {
        const suggested = suggest(seen.map((each, at) => entryOf(each, at + 1)));
        for (const each of seen) expect(allows(suggested, each)).toBe(true);
        const isSeen = (each: Asked) => seen.some((one) => JSON.stringify(one) === JSON.stringify(each));
        // Nothing that was not asked for, but for a folder of which all four were seen by its agent.
        const inFolder = (each: Asked) => each.resource.startsWith('/srv/a/');
        if (!inFolder(other))
          expect({ other, allowed: allows(suggested, other) }).toEqual({ other, allowed: isSeen(other) });
        for (const each of seen) {
          const starred = {
            ...each,
            resource: each.resource.replace(/[*?]/g, 'zz'),
            action: each.action.replace(/[*?]/, 'zz'),
          };
          if (starred.action !== each.action || starred.resource !== each.resource)
            expect({ starred, allowed: allows(suggested, starred) }).toEqual({ starred, allowed: false });
          for (const stranger of [{ orgId: 'other' }, { teamId: 'other' }, { agentId: 'other' }])
            expect(allows(suggested, { ...each, agent: { ...each.agent, ...stranger } })).toBe(false);
        }
        const cases = parsePolicyCases({ cases: suggested.cases });
        expect(cases.ok && runPolicyCases(compiled(suggested), cases.value).filter(({ passed }) => !passed)).toEqual(
          [],
        );
      }),
      { numRuns: runs(30) },
    );
  });

  test('fit into rules however many agents and long names there are', () => {
    const agents = Array.from({ length: 60 }, (_, at) => ({ ...A1, agentId: `${at}-${'n"'.repeat(60)}` }));
    const suggested = suggest(agents.map((agent, at) => entryOf({ ...read('*'.repeat(700), agent) }, at + 1)));
    expect(agents.every((agent) => allows(suggested, read('*'.repeat(700), agent)))).toBe(true);
  });
});

const caseOf = (agent: string, may: string) => ({
  ...{ name: `${agent} ${may} file.read /srv/x`, agent, action: 'file.read', resource: '/srv/x' },
});

import { describe, expect, test } from 'vitest';
import type { Approval, AuditEntry, Budget, Change, OpRecord, TreeNode, TreeOrg } from '../src/base/api-types.ts';
import { agentName, agentPath, count, duration, measured, money, plural, shortId } from '../src/base/format.ts';
import { visible } from '../src/base/visible.ts';
import { filterTree } from '../src/pages/agents/tree.ts';
import { diffOf, lastApproved } from '../src/pages/approvals/diff.ts';
import { chainOf, sentenceOf } from '../src/pages/audit/sentence.ts';
import { byNearest, projectionOf } from '../src/pages/budgets/projection.ts';
import { ruleLines } from '../src/pages/changes/rule-lines.ts';
import { runsOf } from '../src/pages/changes/runs.ts';
import { timelineOf } from '../src/pages/operations/timeline.ts';
import { lineOfRule, partsOfYaml } from '../src/pages/policies/highlight.ts';
import { documentText } from '../src/pages/policies/rule-text.ts';
import { bestOf } from '../src/shell/matches.ts';
import { type Minute, perSecond, seriesOf, sumsOf } from '../src/ui/series.ts';

describe('words and figures', () => {
  test('are as people read them', () => {
    expect([duration(8_000), duration(485_000), duration(7_260_000), duration(3 * 86_400_000)]).toEqual([
      '8 s',
      '8 min 05 s',
      '2 h 01 min',
      '3 days',
    ]);
    expect([money(3), money(0.000_5), money(0)]).toEqual(['$3.00', '$0.0005', '$0.00']);
    expect([count(12_345), measured(1.234_5), plural(1, 'halt'), plural(2, 'halt')]).toEqual([
      '12,345',
      '1.23',
      '1 halt',
      '2 halts',
    ]);
  });

  test('name an agent without an org by a dash, in its address too', () => {
    expect(agentName({ org_id: '', team_id: 'search', agent_id: 'lone' })).toBe('– / search / lone');
    expect(agentPath({ org_id: '', team_id: 'a b', agent_id: 'lone' })).toBe('/agents/-/a%20b/lone');
  });

  test('show what hides, or moves its neighbours, by its code', () => {
    expect(visible('\u202efdp.exe')).toBe('\\u202efdp.exe');
    expect(visible('a\u200bb\nc')).toBe('a\\u200bb\nc');
    expect(visible('<img onerror=x>')).toBe('<img onerror=x>');
  });

  test('shorten an id to both its ends', () => {
    expect(shortId('4066df9390d59835cbb6494ba7c68343:a24fb1')).toBe('4066df93…4fb1');
    expect(shortId('short:id')).toBe('short:id');
  });
});

describe('series', () => {
  const minute = (at: string, allow: number): Minute => ({
    ...{ at, allow, deny: 1, pending: 0, spend_usd: 0.5 },
    latency_ms: { p50: 1, p95: 2, p99: allow },
  });

  test('are even steps, with zeros where nothing happened', () => {
    const endMs = Date.parse('2026-03-01T12:30:20Z');
    const { steps, stepMs } = seriesOf(
      [minute('2026-03-01T12:28:00Z', 5), minute('2026-03-01T12:30:00Z', 7)],
      '15m',
      endMs,
    );
    expect(steps.length).toBe(15);
    expect(steps.slice(-4).map(({ allow, p99 }) => [allow, p99])).toEqual([
      [0, null],
      [5, 5],
      [0, null],
      [7, 7],
    ]);
    expect(perSecond(steps.at(-1)!, stepMs)).toBeCloseTo(8 / 60);
    expect(sumsOf(steps)).toEqual({ allow: 12, deny: 2, pending: 0, spendUsd: 1 });
  });

  test('leave out the time before the figures begin', () => {
    const endMs = Date.parse('2026-03-01T12:30:00Z');
    expect(seriesOf([], '30d', endMs, endMs - 60_000).steps.length).toBe(10);
  });
});

describe('an approval', () => {
  const request = (over: Partial<Approval>): Approval =>
    ({
      ...{ id: 'new', action: 'deploy.run', resource: 'prod/web', policy: 'p', rule_id: 'r', estimated_cost_usd: 0 },
      agent: { org_id: 'acme', team_id: 'release', agent_id: 'bot' },
      attributes: { version: '2', opts: { replicas: 3 } },
      changed_at: '2026-03-01T12:00:00Z',
      ...over,
    }) as Approval;

  test('differs from the last approved in what is said, by dotted path', () => {
    const before = request({ id: 'old', attributes: { version: '1', opts: { replicas: 3 }, force: true } });
    expect(diffOf(request({}), before).map(({ path, kind }) => `${kind} ${path}`)).toEqual([
      'changed attributes.version',
      'removed attributes.force',
      'same resource',
      'same attributes.opts.replicas',
    ]);
    expect(diffOf(request({}), undefined).every(({ kind }) => kind === 'same')).toBe(true);
  });

  test('is compared with the last of the same agent, else with one of the same rule', () => {
    const other = { org_id: 'acme', team_id: 'release', agent_id: 'other' };
    const old = request({ id: 'old' });
    const newer = request({ id: 'newer', agent: other, changed_at: '2026-03-02T12:00:00Z' });
    const foreign = request({ id: 'foreign', rule_id: 'x' });
    expect(lastApproved(request({}), [old, newer, foreign])?.id).toBe('old');
    expect(lastApproved(request({}), [newer, foreign])?.id).toBe('newer');
    expect(lastApproved(request({}), [foreign])).toBeUndefined();
  });
});

describe('budgets', () => {
  const period = (spent: number, limit: number | null) => ({
    ...{ spent_usd: spent, limit_usd: limit },
    period_start: '2026-03-01T00:00:00Z',
    reset: '2026-03-02T00:00:00Z',
  });
  const NOON_MS = Date.parse('2026-03-01T12:00:00Z');

  test('end when the money does at this rate, or last until they reset', () => {
    expect(projectionOf(period(6, 9), NOON_MS)).toEqual({ kind: 'ends', atMs: Date.parse('2026-03-01T18:00:00Z') });
    expect(projectionOf(period(2, 9), NOON_MS)).toEqual({ kind: 'lasts' });
    expect(projectionOf(period(9, 9), NOON_MS)).toEqual({ kind: 'over' });
    expect(projectionOf(period(9, null), NOON_MS)).toEqual({ kind: 'unlimited' });
    expect(projectionOf(period(0, 9), NOON_MS)).toEqual({ kind: 'idle' });
  });

  test('stand with the nearest to its end first', () => {
    const row = (org: string, spent: number, limit: number | null): Budget => ({
      ...{ tier: 'org', org_id: org, team_id: null, agent_id: null, reserved_usd: 0 },
      daily: period(spent, limit),
      monthly: period(spent, null),
    });
    const rows = byNearest([row('idle', 1, 100), row('free', 500, null), row('near', 9, 10)]);
    expect(rows.map(({ org_id }) => org_id)).toEqual(['near', 'idle', 'free']);
  });
});

describe('the audit log', () => {
  const entry = (id: number, over: Partial<AuditEntry> = {}): AuditEntry => ({
    ...{ id, timestamp: `2026-03-01T12:00:0${id}.000Z`, event_type: 'ActionAllowed', op_id: 't:s', decision: 'allow' },
    lineage: { org_id: 'acme', team_id: 'search', agent_id: 'crawler' },
    ...{ reason: null, policy: null, rule_id: null, actor: 'agent:acme/search/crawler' },
    payload: { action: 'tool.call', resource: 'web_search' },
    ...{ prev_hash: `h${id - 1}`, hash: `h${id}` },
    ...over,
  });

  test('says in words what happened', () => {
    expect(sentenceOf(entry(1))).toEqual({ title: 'Allowed', subject: 'tool.call web_search', tone: 'good' });
    expect(sentenceOf(entry(1, { payload: { action: 'tool.call', resource: 'x', dry_run: true } })).title).toBe(
      'Allowed (dry run)',
    );
    expect(
      sentenceOf(entry(1, { event_type: 'ApiKeyCreated', payload: { name: 'ci', scopes: ['read', 'write'] } })),
    ).toEqual({
      title: 'Api Key Created',
      subject: 'name ci, scopes read write',
      tone: 'plain',
    });
  });

  test('shows where its chain does not link', () => {
    expect(chainOf([entry(3), entry(2), entry(1)])).toEqual({ checked: 2, broken: [] });
    expect(chainOf([entry(3, { prev_hash: 'other' }), entry(2)])).toEqual({ checked: 1, broken: [3] });
    expect(chainOf([entry(9), entry(2)])).toEqual({ checked: 0, broken: [] });
  });

  test('tells the life of an operation, the oldest first, with the times between', () => {
    const record = {
      ...{ state: 'terminated', ended: 'terminated', spent_usd: 0.5, updated_at: '2026-03-01T12:00:04.000Z' },
      acknowledged_at: '2026-03-01T12:00:03.500Z',
    } as OpRecord;
    const moments = timelineOf(record, [
      entry(3, { event_type: 'OpTerminated', actor: 'key:1', payload: {} }),
      entry(1),
    ]);
    expect(moments.map(({ title, by, afterMs }) => [title, by, afterMs])).toEqual([
      ['Allowed', 'agent:acme/search/crawler', null],
      ['Terminated', 'key:1', 2_000],
      ['Signal acknowledged by the agent', null, 500],
      ['Ended: terminated', null, 500],
    ]);
  });
});

describe('the list of changes', () => {
  test('fills one line for many changes of one kind by one hand', () => {
    const change = (kind: string, by: string): Change => ({ kind, by }) as Change;
    const many = Array.from({ length: 5 }, () => change('agent', 'key:a'));
    const runs = runsOf([change('halt', 'key:a'), ...many, change('agent', 'key:b'), change('key', 'key:b')]);
    expect(runs.map((run) => run.length)).toEqual([1, 5, 1, 1]);
  });

  test('names the rules of a policy, and how many more there are', () => {
    const changes = [
      { kind: 'added', document: 'p', rule_id: 'r' },
      { kind: 'changed', document: 'p', rule_id: null },
    ];
    expect(ruleLines({ changes, more: 3 })).toEqual(['added p · r', 'changed p', 'and 3 more']);
    expect(ruleLines({ name: 'ci' })).toEqual([]);
  });
});

describe('policy sources', () => {
  const kinds = (line: string): readonly string[] => partsOfYaml(line).map(({ kind, text }) => `${kind} ${text}`);

  test('are coloured by their parts', () => {
    expect(kinds('  - id: no-secrets # why')).toEqual([
      'mark   - ',
      'key id',
      'mark :',
      'text  no-secrets ',
      'comment # why',
    ]);
    expect(kinds('actions: ["a#b", \'c\']')).toEqual([
      ...['key actions', 'mark :', 'text  [', 'string "a#b"', 'text , ', "string 'c'", 'text ]'],
    ]);
    expect(kinds('# all of it')).toEqual(['comment # all of it']);
  });

  test('are found by their rules', () => {
    const lines = ['rules:', '  - id: one', '    effect: allow', '  - { id: "two.b", effect: deny }'];
    expect([lineOfRule(lines, 'one'), lineOfRule(lines, 'two.b'), lineOfRule(lines, 'three')]).toEqual([1, 3, -1]);
  });

  test('are written from the rules where the file is not kept', () => {
    const rule = {
      id: 'r',
      effect: 'deny',
      actions: ['a'],
      resources: ['*'],
      when: 'x > 1',
      reason: null,
      approval: null,
    };
    expect(documentText({ name: 'p', scope: 'global' }, [{ ...rule, obligations: [] } as never])).toBe(
      'name: p\nscope: global\n\nrules:\n  - id: r\n    actions: ["a"]\n    when: "x > 1"\n    effect: deny\n',
    );
  });
});

describe('finding', () => {
  test('an agent in the tree keeps those above it', () => {
    const node = (agent_id: string, children: readonly TreeNode[] = []) =>
      ({ agent_id, children }) as unknown as TreeNode;
    const tree = [
      { org_id: 'acme', teams: [{ team_id: 'search', agents: [node('lead', [node('crawler'), node('other')])] }] },
    ];
    const [org] = filterTree(tree as unknown as readonly TreeOrg[], '', 'craw');
    expect(org?.teams[0]?.agents).toMatchObject([{ agent_id: 'lead', children: [{ agent_id: 'crawler' }] }]);
    expect(filterTree(tree as unknown as readonly TreeOrg[], 'billing', '')).toEqual([]);
  });

  test('anything by a few letters: what begins with them comes first', () => {
    const candidate = (title: string) => ({ id: title, kind: 'Page', title, detail: '', href: '/' });
    const all = ['Cluster', 'Audit', 'acme / search / auditor'].map(candidate);
    expect(bestOf(all, 'aud').map(({ title }) => title)).toEqual(['Audit', 'acme / search / auditor']);
    expect(bestOf(all, 'acme/search').map(({ title }) => title)).toEqual(['acme / search / auditor']);
    expect(bestOf(all, '').length).toBe(3);
  });
});

/** Policies that are replaced while the gateway runs. */
import { describe, expect, test } from 'vitest';
import { fail, ok } from '../../src/core/base/result.ts';
import { parsePolicyDocument } from '../../src/core/policy/document.ts';
import { compilePolicies, type PolicySet } from '../../src/core/policy/policy.ts';
import { type LoadPolicies, PolicyKeeper } from '../../src/use-cases/policies.ts';
import { eventually } from '../support/eventually.ts';
import { ACME_ADMIN, ADMIN, faultOf, must, testAudit, testClock } from '../support/harness.ts';

const FIRST_PAGE = { perPage: 10, cursor: undefined };

function policiesOf(scopes: readonly string[]): PolicySet {
  const rules = [{ id: 'all', actions: ['*'], resources: ['*'], effect: 'allow', reason: 'allowed for the test' }];
  const compiled = compilePolicies(
    scopes.map((scope) => parsePolicyDocument({ name: scope, scope, rules }, 'test.yaml').document!),
  );
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  return compiled.value;
}

function scene(
  before: readonly string[],
  after: readonly string[],
  load: LoadPolicies = async () => ok({ policies: policiesOf(after), warnings: [], texts: [] }),
) {
  const audit = testAudit();
  const installed: string[][] = [];
  const news: string[] = [];
  const namesOf = (policies: PolicySet): string[] => policies.summary().documents.map(({ name }) => name);
  const keeper = new PolicyKeeper({
    policies: policiesOf(before),
    load,
    hasRead: (fingerprint) => fingerprint === 'read by now',
    overruling: () => undefined,
    install: (policies) => void installed.push(namesOf(policies)),
    audit,
    clock: testClock(),
    log: { info: () => undefined, error: () => undefined },
    onFailed: ({ by, problems }) => void news.push(`failed by ${by}: ${problems.join()}`),
    onReloaded: ({ documents }, by) => void news.push(`${documents} by ${by}`),
    compile: async ([first]) =>
      first?.text === 'bad'
        ? fail(['draft.yaml:1:1: bad'])
        : ok({ policies: policiesOf(after), warnings: [], texts: [] }),
    // The next step waits until all that has been asked meanwhile is done.
    inSlices: async (steps) => {
      let step = steps.next();
      for (; step.done !== true; step = steps.next()) await new Promise((resolve) => setImmediate(resolve));
      return step.value;
    },
  });
  const shown = (principal = ADMIN): string[] => must(keeper.list(principal, FIRST_PAGE)).items.map(({ name }) => name);
  return { audit, installed, keeper, news, shown };
}

describe('policies', () => {
  test('policies take effect only if the audit log can record them, at a later reload', async () => {
    const { audit, installed, keeper, shown } = scene(['org:acme'], ['org:acme', 'org:globex']);
    audit.broken = true;
    expect(faultOf(await keeper.reloadFor(ADMIN))).toEqual({ kind: 'audit_unavailable' });
    expect({ installed, shown: shown(), reloads: keeper.reloads }).toEqual({
      installed: [],
      shown: ['org:acme'],
      reloads: { done: 0, failed: 1 },
    });
    audit.broken = false;
    expect(must(await keeper.reloadFor(ADMIN))).toMatchObject({ documents: 2, changed: true });
    expect({ installed, shown: shown(), reloads: keeper.reloads }).toEqual({
      installed: [['org:acme', 'org:globex']],
      shown: ['org:acme', 'org:globex'],
      reloads: { done: 1, failed: 1 },
    });
    expect(audit.drafts).toMatchObject([
      { eventType: 'PolicyReloaded', actor: 'account:root', payload: { documents: 2, changed: true } },
    ]);
  });

  test('a reload whose files cannot be read counts as failed, and the next one works', async () => {
    const loads = [
      () => Promise.reject(new Error('the thread died')),
      async () => ok({ policies: policiesOf(['global']), warnings: [], texts: [] }),
    ];
    const { installed, keeper } = scene(['global'], [], () => loads.shift()!());
    await expect(keeper.reload('gateway')).rejects.toThrow('the thread died');
    expect(keeper.reloads).toEqual({ done: 0, failed: 1 });
    expect(must(await keeper.reload('gateway'))).toMatchObject({ documents: 1 });
    expect({ installed, reloads: keeper.reloads }).toEqual({
      installed: [['global']],
      reloads: { done: 1, failed: 1 },
    });
  });

  test('reloads run one after the other, and one beyond the queue is refused at once', async () => {
    const ends: (() => void)[] = [];
    const { keeper, installed } = scene(
      ['global'],
      [],
      () =>
        new Promise((resolve) =>
          ends.push(() => resolve(ok({ policies: policiesOf(['global']), warnings: [], texts: [] }))),
        ),
    );
    const reloads = Array.from({ length: 64 }, (_, nth) => keeper.reload(`account:${nth}`));
    expect(faultOf(await keeper.reloadFor(ADMIN))).toEqual({
      kind: 'overloaded',
      what: 'policy reloading',
      retryAfterSecs: 1,
    });
    for (let done = 1; done <= 64; done += 1) {
      await eventually(() => expect(ends).toHaveLength(1)); // the next one begins only now
      ends.pop()!();
      must(await reloads[done - 1]!);
      expect({ installedCount: installed.length, reloads: keeper.reloads }).toEqual({
        installedCount: done,
        reloads: { done, failed: 0 },
      });
    }
    const next = keeper.reloadFor(ADMIN);
    await eventually(() => expect(ends).toHaveLength(1));
    ends.pop()!();
    expect(must(await next)).toMatchObject({ documents: 1 });
  });

  /** A keeper whose reads end when told to, with names of the sets that they read. */
  function slowScene() {
    const reads: ((name: string) => void)[] = [];
    const read: LoadPolicies = () =>
      new Promise((resolve) => {
        reads.push((name) => resolve(ok({ policies: policiesOf([name]), warnings: [], texts: [] })));
      });
    return { reads, ...scene(['global'], [], read) };
  }

  test('changes that come while files are read become one reload, of the newest', async () => {
    const { audit, installed, keeper, reads } = slowScene();
    const first = keeper.reload('gateway', 'change 0');
    const changes = Array.from({ length: 200 }, (_, nth) => keeper.reload('gateway', `change ${nth + 1}`));
    reads[0]!('org:first');
    must(await first);
    await eventually(() => expect(reads).toHaveLength(2));
    reads[1]!('org:newest');
    for (const change of changes) expect(must(await change)).toMatchObject({ documents: 1, changed: true });
    expect(installed).toEqual([['org:first'], ['org:newest']]);
    expect([reads.length, audit.drafts.length, keeper.reloads]).toEqual([2, 2, { done: 2, failed: 0 }]);
  });

  test('a reload that somebody asks for reads the files though a waiting change was read', async () => {
    const { keeper, reads } = slowScene();
    const first = keeper.reload('gateway');
    const both = [keeper.reload('gateway', 'read by now'), keeper.reload('gateway')];
    reads[0]!('org:first');
    must(await first);
    await eventually(() => expect(reads).toHaveLength(2));
    reads[1]!('org:asked');
    for (const each of both) expect(must(await each)).toMatchObject({ changed: true });
  });

  test('a stop drops reloads that wait or read, and neither records nor reports them', async () => {
    const { audit, installed, keeper, news, reads } = slowScene();
    const reloads = [keeper.reload('gateway'), keeper.reload('gateway'), keeper.reloadFor(ADMIN)];
    keeper.close();
    reads[0]!('org:late');
    const dropped = { kind: 'shutting_down', retryAfterSecs: 1 };
    for (const each of [...reloads, keeper.reloadFor(ADMIN)]) expect(faultOf(await each)).toEqual(dropped);
    expect({ reads: reads.length, installed, news, drafts: audit.drafts, reloads: keeper.reloads }).toEqual({
      reads: 1,
      installed: [],
      news: [],
      drafts: [],
      reloads: { done: 0, failed: 0 },
    });
  });

  test('an admin of one org replaces no policies and sees its own and the global ones', async () => {
    const { audit, installed, keeper, shown } = scene(['global', 'org:acme', 'org:globex', 'team:globex/search'], []);
    expect(faultOf(await keeper.reloadFor(ACME_ADMIN))).toMatchObject({ kind: 'org_forbidden' });
    expect({ installed, drafts: audit.drafts, shownAcmeAdmin: shown(ACME_ADMIN), shown: shown() }).toEqual({
      installed: [],
      drafts: [],
      shownAcmeAdmin: ['global', 'org:acme'],
      shown: ['global', 'org:acme', 'org:globex', 'team:globex/search'],
    });
  });

  test('an explanation yields between rules and describes one set throughout a swap', async () => {
    const scopes = Array.from({ length: 50 }, (_, nth) => `org:o${nth}`);
    const { keeper, shown } = scene([...scopes, 'org:acme'], ['org:globex', ...scopes]);
    const { version } = must(keeper.list(ADMIN, FIRST_PAGE));
    const agent = { orgId: 'acme', teamId: 'search', agentId: 'a1' };
    const explaining = keeper.explain(ADMIN, {
      subject: {
        agent,
        action: 'tool.call',
        resource: '',
        attributes: undefined,
        caller: undefined,
        estimatedCostMicroUsd: 0,
      },
    });
    let isExplained = false;
    void explaining.then(() => {
      isExplained = true;
    });
    must(await keeper.reloadFor(ADMIN));
    expect({ shown: shown()[0], isExplained }).toEqual({ shown: 'org:globex', isExplained: false });
    expect(must(await explaining)).toMatchObject({
      version,
      decision: { kind: 'allow', policy: 'org:acme' },
      documents: [{ name: 'org:acme', rules: [{ id: 'all', decided: true }] }],
    });
  });

  test('a failed reload is told to who sees all orgs, until one succeeds', async () => {
    const loads = [
      async () => fail(['a.yaml:3:5: no such key']),
      async () => ok({ policies: policiesOf([]), warnings: [], texts: [] }),
    ];
    const { keeper, news } = scene(['global'], [], () => loads.shift()!());
    const failureOf = (principal: typeof ADMIN) => must(keeper.list(principal, FIRST_PAGE)).failure;
    expect(failureOf(ADMIN)).toBeUndefined();
    await keeper.reload('gateway');
    expect(failureOf(ADMIN)).toMatchObject({ by: 'gateway', problems: ['a.yaml:3:5: no such key'] });
    expect(failureOf(ACME_ADMIN)).toBeUndefined();
    must(await keeper.reload('key:k'));
    expect(failureOf(ADMIN)).toBeUndefined();
    expect(news).toEqual(['failed by gateway: a.yaml:3:5: no such key', '0 by key:k']);
  });

  test('a draft explains a check in place of the set in force, and changes nothing', async () => {
    const { audit, installed, keeper, shown } = scene(['global'], ['org:acme']);
    const agent = { orgId: 'acme', teamId: 'search', agentId: 'a1' };
    const more = { resource: '', attributes: undefined, caller: undefined, estimatedCostMicroUsd: 0 };
    const subject = { agent, action: 'tool.call', ...more };
    const explain = (text: string) => keeper.explain(ADMIN, { subject, draft: [{ file: 'draft.yaml', text }] });
    expect(must(await explain('good'))).toMatchObject({ decision: { kind: 'allow', policy: 'org:acme' } });
    expect(faultOf(await explain('bad'))).toEqual({ kind: 'policy_invalid', problems: ['draft.yaml:1:1: bad'] });
    expect([installed, audit.drafts, shown()]).toEqual([[], [], ['global']]);
    const asked = Array.from({ length: 17 }, () => explain('good'));
    expect(faultOf(await asked[16]!)).toMatchObject({ kind: 'overloaded', what: 'compiling drafts' });
    await Promise.all(asked);
  });
});

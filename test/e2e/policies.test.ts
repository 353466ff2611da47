import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { policyPage, policyReload, rulePage } from '../../src/doors/api/shapes.ts';
import { auditEntries } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, type GatewayOptions, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { temporaryFolder } from '../support/harness.ts';
import { ALLOW_ALL, policyFile } from '../support/policies.ts';
import { withPostgres } from '../support/postgres.ts';
import { startProxy } from '../support/proxy.ts';

const newDatabase = withPostgres();

/** For the tests to which it is all one who has loaded the policies: the gateway looks at its file, too. */
const policies = policyFile(ALLOW_ALL, afterAll);
let gateway: TestGateway;
describe('policies', () => {
  beforeAll(async () => {
    gateway = await startTestGateway({ env: { SVC_POLICY_PATH: policies.path } });
  });
  afterAll(async () => {
    await gateway?.stop('SIGKILL');
  });

  async function inForce(text: string): Promise<void> {
    policies.write(text);
    expect((await gateway.call('POST', '/api/v1/policies/reload')).status).toBe(200);
  }

  async function start(path: string, options: GatewayOptions = {}): Promise<TestGateway> {
    const gateway = await startTestGateway({ ...options, env: { SVC_POLICY_PATH: path } });
    onTestFinished(async () => {
      await gateway.stop('SIGKILL');
    });
    return gateway;
  }

  let checks = 0;
  async function check(gateway: TestGateway, orgId = 'acme'): Promise<string> {
    checks += 1;
    const { body } = await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
      agent: { orgId, teamId: 'search', agentId: 'crawler' },
      traceId: `t${checks}`,
      spanId: 's',
      action: 'tool.call',
      resource: 'web_search',
    });
    return body.decision;
  }

  const DENY_ACME = `---
name: acme-freeze
scope: org:acme
rules:
  - { id: freeze, actions: ["*"], resources: ["*"], effect: deny, reason: frozen }
`;
  const OTHERS = `---
name: globex-team
scope: team:globex/search
rules: []
`;
  const BROKEN = `name: broken\nscope: nowhere\nrules: []\n`;

  const key = async (gateway: TestGateway, scopes: readonly string[], org_id: string | null = null): Promise<string> =>
    (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'test', scopes, org_id })).body.key;

  test('shows the documents in force, and to an org only the global ones and its own', async () => {
    await inForce(ALLOW_ALL + DENY_ACME + OTHERS);
    const { body } = await gateway.call('GET', '/api/v1/policies');
    expect(policyPage.safeParse(body).error).toBeUndefined();
    expect(body.documents.map(({ name, scope, rule_count }: any) => [name, scope, rule_count])).toEqual([
      ['everything', 'global', 1],
      ['acme-freeze', 'org:acme', 1],
      ['globex-team', 'team:globex/search', 0],
    ]);
    const seen = async (org: string) =>
      (await gateway.call('GET', '/api/v1/policies', undefined, await key(gateway, ['read'], org))).body;
    expect((await seen('acme')).documents.map(({ name }: any) => name)).toEqual(['everything', 'acme-freeze']);
    expect((await seen('globex')).documents.map(({ name }: any) => name)).toEqual(['everything', 'globex-team']);
    const page = (await gateway.call('GET', '/api/v1/policies?per_page=2')).body;
    expect(
      (await gateway.call('GET', `/api/v1/policies?per_page=2&cursor=${page.next_cursor}`)).body.documents.map(
        ({ name }: any) => name,
      ),
    ).toEqual(['globex-team']);
  });

  test("shows the rules as written, in order, and to an org none of another's", async () => {
    const acme =
      '---\nname: acme-team\nscope: team:acme/search\nrules:\n  - { id: first, effect: deny, actions: ["tool.*"], resources: [a, "b*"], when: attributes.size > 3, reason: too large }\n  - { id: second, effect: allow }\n';
    const globex = '---\nname: globex-only\nscope: org:globex\nrules:\n  - { id: hidden, effect: deny }\n';
    await inForce(acme + globex + ALLOW_ALL.replace(/^(?!---)/, '---\n'));
    const of = async (query: string, bearer?: string) =>
      (await gateway.call('GET', `/api/v1/policies/rules${query}`, undefined, bearer)).body;
    const idsOf = ({ rules }: any) => rules.map(({ policy, id }: any) => `${policy}/${id}`);
    const all = await of('');
    expect(rulePage.safeParse(all).error).toBeUndefined();
    const [global] = idsOf(all);
    expect(idsOf(all)).toEqual([
      expect.stringMatching(/^everything\//),
      'globex-only/hidden',
      'acme-team/first',
      'acme-team/second',
    ]);
    expect(all.version).toBe((await gateway.call('GET', '/api/v1/policies')).body.version);
    expect(all.rules[2]).toEqual({
      policy: 'acme-team',
      scope: 'team:acme/search',
      source: expect.any(String),
      id: 'first',
      effect: 'deny',
      actions: ['tool.*'],
      resources: ['a', 'b*'],
      when: 'attributes.size > 3',
      reason: 'too large',
      obligations: [],
      remedy: null,
      approval: null,
    });
    expect(all.rules[3]).toMatchObject({ actions: ['*'], resources: ['*'], when: null, reason: null });
    const pages = [await of('?per_page=3')];
    pages.push(await of(`?per_page=3&cursor=${pages[0].next_cursor}`));
    expect({ pages: pages.flatMap(idsOf), next_cursor: pages[1].next_cursor }).toEqual({
      pages: idsOf(all),
      next_cursor: null,
    });
    expect(idsOf(await of('?policy=acme-team&per_page=1&cursor=1'))).toEqual(['acme-team/second']);
    const acmes = await key(gateway, ['read'], 'acme');
    expect(idsOf(await of('', acmes))).toEqual([global, 'acme-team/first', 'acme-team/second']);
    expect(idsOf(await of('?policy=globex-only', acmes))).toEqual([]);
  });

  test('explain accepts the same attributes as a check, and refuses the same', async () => {
    const agent = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
    const answered = async (attributes: string) => {
      const response = await fetch(`${gateway.url}/api/v1/policies/explain`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
        body: `{"agent":${JSON.stringify(agent)},"action":"tool.call","attributes":${attributes}}`,
      });
      return [response.status, ((await response.json()) as { detail?: string }).detail];
    };
    for (const attributes of ['{"size":1}', 'null']) expect(await answered(attributes)).toEqual([200, undefined]);
    for (const attributes of ['{"__proto__":{"size":1}}', '{"a":[{"__proto__":1}]}'])
      expect(await answered(attributes)).toEqual([400, 'attributes: has a key named __proto__']);
    for (const attributes of ['[]', '7', '"x"'])
      expect(await answered(attributes)).toEqual([400, 'attributes: must be an object']);
  });

  test("another org's documents do not change the version that an org sees", async () => {
    await inForce(ALLOW_ALL + DENY_ACME);
    const acme = await key(gateway, ['read'], 'acme');
    const before = (await gateway.call('GET', '/api/v1/policies', undefined, acme)).body.version;
    await inForce(ALLOW_ALL + DENY_ACME + OTHERS);
    expect((await gateway.call('GET', '/api/v1/policies')).body.documents).toHaveLength(3);
    expect((await gateway.call('GET', '/api/v1/policies', undefined, acme)).body.version).toBe(before);
  });

  test('a reload applies from the next check, is recorded, and needs an admin of all', async () => {
    const policies = policyFile(ALLOW_ALL);
    const gateway = await start(policies.path);
    expect(await check(gateway)).toBe('DECISION_ALLOW');
    policies.write(ALLOW_ALL + DENY_ACME);
    expect(
      (await gateway.call('POST', '/api/v1/policies/reload', undefined, await key(gateway, ['write']))).status,
    ).toBe(403);
    expect(
      (await gateway.call('POST', '/api/v1/policies/reload', undefined, await key(gateway, ['admin'], 'acme'))).body
        .code,
    ).toBe('org_forbidden');
    const { status, body } = await gateway.call('POST', '/api/v1/policies/reload');
    expect(status).toBe(200);
    expect(policyReload.safeParse(body).error).toBeUndefined();
    expect({ checkGateway: await check(gateway), checkGlobex: await check(gateway, 'globex') }).toEqual({
      checkGateway: 'DECISION_DENY',
      checkGlobex: 'DECISION_ALLOW',
    });
    expect(auditEntries(gateway.dataDir).at(-3)).toMatchObject({
      event_type: 'PolicyReloaded',
      lineage: { org_id: null },
      payload: { version: body.version, documents: 2 },
    });
  });

  test('a set with a mistake keeps the old one and names the place', async () => {
    await inForce(ALLOW_ALL);
    policies.write(BROKEN);
    const { status, body } = await gateway.call('POST', '/api/v1/policies/reload');
    expect({ status, code: body.code }).toEqual({ status: 409, code: 'policy_invalid' });
    expect(body.problems[0]).toContain('policies.yaml:2:8');
    expect(await check(gateway)).toBe('DECISION_ALLOW');
    expect(gateway.output.stderr).toContain('policies were not reloaded');
  });

  test('a folder without policies is named at start, with what follows from it', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const gateway = await start(folder);
    await eventually(() =>
      expect(gateway.output.stdout).toContain('There are no policies, so every check will be denied.'),
    );
    expect(gateway.output.stdout).toContain(`  policies   0 from ${folder}\n`);
  });

  test('a changed file is loaded automatically; SIGHUP also loads the signing keys', async () => {
    const policies = policyFile(ALLOW_ALL);
    const gateway = await start(policies.path);
    policies.write(ALLOW_ALL + DENY_ACME);
    await eventually(async () => expect(await check(gateway)).toBe('DECISION_DENY'));
    gateway.process.kill('SIGHUP');
    await eventually(() => expect(gateway.output.stderr).toContain('signing keys reloaded'));
    expect(gateway.process.exitCode).toBeNull();
  });

  test('SIGHUP loads the signing keys even if the thread reading policies dies', async () => {
    const folder = temporaryFolder();
    const gateway = await startTestGateway({
      env: {
        BREAK_DIR: folder,
        NODE_OPTIONS: `--import=${new URL('../support/break-thread.mjs', import.meta.url).href}`,
      },
    });
    onTestFinished(async () => {
      await gateway.stop('SIGKILL');
    });
    writeFileSync(join(folder, 'policy-reader'), '');
    gateway.process.kill('SIGHUP');
    await eventually(() => expect(gateway.output.stderr).toContain('signing keys reloaded'));
    expect(gateway.output.stderr).toMatch(
      /"error":"the thread workers\/policy-reader\.js failed: broken by a test[^"]*","msg":"reloading policies failed"/,
    );
  });

  test('a file changed while the gateway waits for its database applies once ready', async () => {
    const policies = policyFile(ALLOW_ALL);
    const database = new URL(await newDatabase());
    const proxy = await startProxy(database.host);
    onTestFinished(() => proxy.close());
    proxy.refuse();
    database.host = proxy.address;
    const starting = startTestGateway({ env: { SVC_POLICY_PATH: policies.path, SVC_DATABASE_URL: database.href } });
    await eventually(() => expect(proxy.accepted()).toBeGreaterThan(0));
    policies.write(ALLOW_ALL + DENY_ACME);
    const seenAfter = proxy.accepted() + 2; // longer than the watcher takes to see it
    await eventually(() => expect(proxy.accepted()).toBeGreaterThan(seenAfter));
    proxy.serve();
    const gateway = await starting;
    onTestFinished(async () => {
      await gateway.stop('SIGKILL');
    });
    await eventually(async () => expect(await check(gateway)).toBe('DECISION_DENY'));
  });

  test('apply the set read last among concurrent reloads', async () => {
    await inForce(ALLOW_ALL);
    const reloads = Array.from({ length: 6 }, (_, n) => {
      policies.write(n % 2 === 0 ? ALLOW_ALL + DENY_ACME : ALLOW_ALL);
      return gateway.call('POST', '/api/v1/policies/reload');
    });
    expect((await Promise.all(reloads)).map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => 200));
    expect(await check(gateway)).toBe('DECISION_ALLOW');
  });
});

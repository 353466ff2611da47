/** The sets of policies over time, at a real gateway, across restarts. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { type DoorAgent, newestEntries, registerAgent } from '../support/door-agent.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { type PolicyFile, policyFile } from '../support/policies.ts';

const rules = (...lines: readonly string[]): string =>
  `name: p\nscope: global\nrules:\n${lines.map((each) => `  - ${each}\n`).join('')}`;
const ALL = '{ id: all, effect: allow }';
const NO_ETC = '{ id: no-etc, effect: deny, resources: ["/etc/*"], remedy: read below /srv }';
const NEXT = rules('{ id: reads, effect: allow, actions: [file.read] }', NO_ETC);

let gateway: TestGateway;
let agent: DoorAgent;
let file: PolicyFile;
let first: string;
let span = 0;
const dataDirs: string[] = [];

async function start(dataDir?: string): Promise<void> {
  gateway = await startTestGateway({ env: { SVC_POLICY_PATH: file.path }, ...(dataDir && { dataDir }) });
  dataDirs.push(gateway.dataDir);
}

async function check(action: string, resource: string) {
  const [org_id, team_id, agent_id] = agent.name.split('/');
  const { body } = await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
    agent: { org_id, team_id, agent_id },
    credential_token: agent.token,
    trace_id: 'trace',
    span_id: `s${(span += 1)}`,
    ...{ action, resource },
  });
  return body;
}

const svc = (...args: readonly string[]): Promise<{ status: number; out: string }> =>
  new Promise((resolve) => {
    const command = [join(PACKAGE_ROOT, 'dist', 'src', 'cli', 'main.js'), ...args, '-o', 'json'];
    const env = { ...process.env, SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY };
    execFile(process.execPath, command, { env }, (error, out) =>
      resolve({ status: error === null ? 0 : Number(error.code), out }),
    );
  });

const versions = async (): Promise<any[]> => (await gateway.call('GET', '/api/v1/policies/versions')).body.versions;
const shadow = (method: string, body?: unknown) => gateway.call(method, '/api/v1/policies/shadow', body);

describe('the life of policies', () => {
  beforeAll(async () => {
    file = policyFile(rules(ALL), afterAll);
    const { mkdtempSync } = await import('node:fs');
    const { tmpdir } = await import('node:os');
    const folder = mkdtempSync(join(tmpdir(), 'svc-life-'));
    await start(folder);
    agent = await registerAgent(gateway, 'acme/search/crawler');
    first = (await gateway.call('GET', '/api/v1/policies')).body.version;
  });
  afterAll(async () => void (await gateway?.stop()));

  test('each set that was in force is kept with its files, and who put it in force', async () => {
    file.write(rules(ALL, NO_ETC));
    const { body } = await gateway.call('POST', '/api/v1/policies/reload');
    const kept = await versions();
    expect(kept).toEqual([
      {
        ...{ version: body.version, state: 'in_force', until: null, documents: 1, rules: 2 },
        since: expect.any(String),
        by: expect.stringMatching(/^(key:|gateway)/),
      },
      {
        ...{ version: first, state: 'past', documents: 1, rules: 1, by: 'gateway' },
        since: expect.any(String),
        until: kept[0].since,
      },
    ]);
    const old = await gateway.call('GET', `/api/v1/policies/versions/${first}`);
    expect(old.body.files).toEqual([{ name: 'policies.yaml', text: rules(ALL) }]);
    const diff = await gateway.call('GET', `/api/v1/policies/diff?from=${first}&to=${body.version}`);
    expect(diff.body).toEqual({
      from: first,
      to: body.version,
      changes: [
        {
          ...{ kind: 'added', document: 'p', scope: 'global', rule_id: 'no-etc', before: null },
          after: {
            ...{ id: 'no-etc', actions: ['*'], resources: ['/etc/*'], effect: 'deny', remedy: 'read below /srv' },
          },
        },
      ],
    });
    const reloaded = (await gateway.call('GET', '/api/v1/logs?event_type=PolicyReloaded')).body.entries[0];
    expect(reloaded.payload.changes).toEqual([{ kind: 'added', document: 'p', rule_id: 'no-etc' }]);
  });

  test('a version that is not kept is 404, a page goes on, and one org sees none', async () => {
    expect((await gateway.call('GET', '/api/v1/policies/versions/0123456789abcdef')).status).toBe(404);
    expect((await gateway.call('GET', '/api/v1/policies/diff')).status).toBe(400);
    const page = await gateway.call('GET', '/api/v1/policies/versions?per_page=1');
    expect(page.body.versions).toHaveLength(1);
    const next = await gateway.call('GET', `/api/v1/policies/versions?per_page=1&cursor=${page.body.next_cursor}`);
    expect(next.body).toMatchObject({ versions: [{ version: first }], next_cursor: null });
  });

  test('a shadow is compared on live checks, found in the log, and survives a restart', async () => {
    expect((await shadow('GET')).status).toBe(404);
    const started = await shadow('PUT', { files: [{ name: 'next.yaml', text: NEXT }] });
    expect(started).toMatchObject({ status: 200, body: { documents: 1, warnings: [] } });
    expect(Date.parse(started.body.expires_at) - Date.now()).toBeGreaterThan(604_000_000);
    expect((await check('file.read', '/srv/x')).decision).toBe('DECISION_ALLOW');
    expect((await check('tool.call', 'mail')).decision).toBe('DECISION_ALLOW');
    const counts = {
      ...{ version: started.body.version, checks: 2, differing: 1, errors: 0 },
      changes: [{ from: 'allow', to: 'deny', policy: 'p', rule_id: 'all', count: 1 }],
    };
    expect((await shadow('GET')).body).toMatchObject(counts);
    const found = (await gateway.call('GET', '/api/v1/logs?shadow=differs')).body.entries;
    expect(found).toMatchObject([
      { payload: { resource: 'mail', shadow: { version: started.body.version, decision: 'deny', cause: 'no_rule' } } },
    ]);
    expect((await versions())[0]).toMatchObject({ version: started.body.version, state: 'shadow' });
    const folder = gateway.dataDir.replace(/\/data$/, '');
    await gateway.stop();
    await start(folder);
    expect((await shadow('GET')).body).toMatchObject(counts);
    expect((await versions()).map(({ state }) => state)).toEqual(['shadow', 'in_force', 'past']);
    await check('tool.call', 'mail');
    expect((await shadow('GET')).body).toMatchObject({ checks: 3, differing: 2 });
  });

  test('a mistake in a shadow is 409, and leaves the one before', async () => {
    const before = (await shadow('GET')).body.version;
    const refused = await shadow('PUT', { files: [{ name: 'bad.yaml', text: 'name: x\n' }] });
    expect(refused).toMatchObject({ status: 409, body: { code: 'policy_invalid' } });
    expect((await shadow('GET')).body.version).toBe(before);
    expect((await shadow('PUT', { files: [], expires_in_secs: 2_592_001 })).status).toBe(400);
  });

  test('a shadow ends when its time is over, and a second end is none', async () => {
    await shadow('PUT', { files: [], expires_in_secs: 1 });
    await eventually(async () => expect((await shadow('GET')).status).toBe(404));
    const entry = (await newestEntries(gateway, 1))[0];
    expect(entry).toMatchObject({ event_type: 'PolicyShadowEnded', actor: 'gateway', payload: { ending: 'expired' } });
    expect((await shadow('DELETE')).status).toBe(204);
    expect((await newestEntries(gateway, 1))[0].id).toBe(entry.id);
  });

  test('recorded checks are decided again, from the gateway and from its data directory', async () => {
    const { path } = policyFile(NEXT);
    const remote = await svc('policy', 'replay', path, '--fail-on-change');
    expect(remote.status).toBe(1);
    const result = JSON.parse(remote.out);
    expect(result).toMatchObject({ checks: 3, same: 1, changed: 2, skipped: {} });
    expect(result.changes).toMatchObject([
      { from: 'allow', to: 'deny', policy: 'p', rule_id: 'all', action: 'tool.call', resource: 'mail', count: 2 },
    ]);
    const offline = await svc('policy', 'replay', path, '--dir', gateway.dataDir);
    expect({ ...offline, out: JSON.parse(offline.out) }).toEqual({ status: 0, out: result });
    expect((await svc('policy', 'replay', first, '--fail-on-change')).status).toBe(0);
  });

  test('a gateway replays at its own address: progress, then the result', async () => {
    const replay = (body: unknown) => gateway.call('POST', '/api/v1/policies/replay', body);
    const files = [{ name: 'next.yaml', text: NEXT }];
    const { status, headers, body } = await replay({ files });
    expect({ status, type: headers.get('content-type') }).toEqual({ status: 200, type: 'application/x-ndjson' });
    const lines = String(body)
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines.at(-1)).toMatchObject({ result: { checks: 3, same: 1, changed: 2, skipped: {} } });
    for (const { progress } of lines.slice(0, -1))
      expect(progress).toEqual({ read: expect.any(Number), total: expect.any(Number) });
    const none = await replay({ files, until: '2020-01-01T00:00:00Z' });
    expect(JSON.parse(none.body.trimEnd().split('\n').at(-1)).result.checks).toBe(0);
    const other = await replay({ files, org_id: 'other' });
    expect(JSON.parse(other.body.trimEnd().split('\n').at(-1)).result.checks).toBe(0);
  });

  test('a replay of neither or both, of a mistake, and of no version is refused', async () => {
    const replay = (body: unknown) => gateway.call('POST', '/api/v1/policies/replay', body);
    const files = [{ name: 'next.yaml', text: NEXT }];
    expect((await replay({})).status).toBe(400);
    expect((await replay({ files, version: first })).status).toBe(400);
    expect((await replay({ version: '0123456789abcdef' })).status).toBe(404);
    expect(await replay({ files: [{ name: 'bad.yaml', text: 'name: x\n' }] })).toMatchObject({
      status: 409,
      body: { code: 'policy_invalid' },
    });
    expect((await replay({ files, since: 'yesterday' })).status).toBe(400);
  });

  test('rules are suggested from what a shadow denies, with a test that passes', async () => {
    const folder = join(gateway.dataDir, '..', 'suggested');
    const { status, out } = await svc('policy', 'suggest', '--from', 'shadow', '--out', folder);
    expect({ status, out: JSON.parse(out) }).toMatchObject({
      status: 0,
      out: {
        ...{ denials: 2, left_out: {} },
        rules: [{ scope: 'team:acme/search', rule_id: 'suggested-1', covers: 2, agents: ['acme/search/crawler'] }],
      },
    });
    expect((await svc('policy', 'test', join(folder, 'suggested.test.yaml'))).status).toBe(0);
    const after = await svc('policy', 'replay', folder);
    expect(JSON.parse(after.out).changes).toMatchObject([{ from: 'allow', to: 'deny', action: 'file.read', count: 1 }]);
    expect((await svc('policy', 'suggest', '--from', 'shadow', '--out', folder)).status).not.toBe(0);
    const none = await svc('policy', 'suggest', '--from', 'denials', '--dir', gateway.dataDir);
    expect(JSON.parse(none.out)).toMatchObject({ denials: 0, rules: [] });
  });

  test('a credential of one org is refused', async () => {
    const { body } = await gateway.call('POST', '/api/v1/iam/api-keys', {
      name: 'x',
      scopes: ['admin'],
      org_id: 'acme',
    });
    for (const path of ['versions', `versions/${first}`, `diff?from=${first}`, 'shadow'])
      expect((await gateway.call('GET', `/api/v1/policies/${path}`, undefined, body.key)).status).toBe(403);
    const replay = await gateway.call('POST', '/api/v1/policies/replay', { version: first }, body.key);
    expect(replay.status).toBe(403);
    expect(ADMIN_KEY).not.toBe(body.key);
  });
});

/** The audit log of a real gateway, at real receivers that die and come back (docs/audit-sinks.md). */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { auditEntries } from '../support/audit-log.ts';
import { type Authority, createAuthority } from '../support/authority.ts';
import { createCliHome } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { ALLOW_ALL } from '../support/policies.ts';
import { answered, isSigned, type Receiver, startReceiver } from '../support/receiver.ts';

const SECRET = `whsec_${Buffer.from('a key of thirty-two bytes, or so').toString('base64')}`;
const TOKEN = 'splunk-token-that-nobody-may-see';

const folder = mkdtempSync(join(tmpdir(), 'svc-sinks-'));
const at = (name: string): string => join(folder, name);
const dataDir = at('data-folder');
const svc = createCliHome();
let authority: Authority;
let receiver: Receiver;
let syslogPort: number;
let rsyslog: ChildProcess | undefined;
let gateway: TestGateway;
let agents: { org: string; token: string }[] = [];
let spans = 0;

const settings = () => ({ SVC_AUDIT_SINKS: at('sinks.yaml'), SVC_POLICY_PATH: at('policies.yaml'), SIEM_TOKEN: TOKEN });
const start = (): Promise<TestGateway> => startTestGateway({ dataDir, env: settings() });

async function check(count: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, () => {
      const { org, token } = agents[spans % agents.length]!;
      const agent = { orgId: org, teamId: 'team', agentId: 'agent' };
      const call = {
        agent,
        credentialToken: token,
        traceId: org,
        spanId: `s${(spans += 1)}`,
        action: 'a',
        resource: 'r',
      };
      return gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', call, null);
    }),
  );
}

/** As the log has them on the disk. */
const written = () => auditEntries(join(dataDir, 'data')).map(({ id }) => id);
const idsInFile = (path: string): number[] =>
  existsSync(path) ? [...readFileSync(path, 'utf8').matchAll(/^\{"id":(\d+),/gm)].map(([, id]) => Number(id)) : [];
const idsAtReceiver = (): number[] =>
  receiver.received.flatMap(({ body }) =>
    ((JSON.parse(body).data.entries ?? []) as { id: number }[]).map(({ id }) => id),
  );
/** Removes repetitions: sending again is allowed, out of order is not. */
const firsts = (ids: readonly number[]): number[] => ids.filter((id, n) => ids.indexOf(id) === n);

const hasRsyslog =
  spawnSync('rsyslogd', ['-v']).error === undefined &&
  spawnSync('sh', ['-c', 'ls /usr/lib/*/rsyslog/lmnsd_gtls.so']).status === 0;
if (!hasRsyslog) console.warn('rsyslogd with its driver for TLS (rsyslog-gnutls) is not installed: not tested with it');

async function startRsyslog(): Promise<ChildProcess> {
  const child = spawn('rsyslogd', ['-n', '-f', at('rsyslog.conf'), '-i', at('rsyslog.pid')], { stdio: 'ignore' });
  await eventually(() => {
    const probe = spawnSync('sh', ['-c', `exec 3<>/dev/tcp/127.0.0.1/${syslogPort}`], { shell: '/bin/bash' });
    if (probe.status !== 0) throw new Error('it does not listen yet');
  }, 10_000);
  return child;
}

describe('sinks of the audit log', () => {
  beforeAll(async () => {
    authority = createAuthority('sinks');
    const { cert, key } = authority.issue('log');
    receiver = await startReceiver();
    syslogPort = await freePort();
    for (const [name, text] of Object.entries({ 'cert.pem': cert, 'key.pem': key, 'ca.pem': authority.ca }))
      writeFileSync(at(name), text);
    writeFileSync(at('policies.yaml'), ALLOW_ALL);
    writeFileSync(
      at('rsyslog.conf'),
      `global(workDirectory="${folder}" maxMessageSize="64k" defaultNetstreamDriver="gtls"
  defaultNetstreamDriverCAFile="${at('ca.pem')}" defaultNetstreamDriverCertFile="${at('cert.pem')}"
  defaultNetstreamDriverKeyFile="${at('key.pem')}")
module(load="imtcp" streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="anon")
input(type="imtcp" port="${syslogPort}" address="127.0.0.1")
template(name="text" type="string" string="%msg%\\n")
action(type="omfile" file="${at('syslog.ndjson')}" template="text")
`,
    );
    writeFileSync(
      at('sinks.yaml'),
      `sinks:
  - { name: copy, type: file, path: copy.ndjson }
  - { name: siem, type: http, url: '${receiver.url}?key=${TOKEN}', headers: { authorization: 'Splunk \${SIEM_TOKEN}' }, secret: '${SECRET}' }
${hasRsyslog ? `  - { name: log, type: syslog, url: 'syslog+tls://localhost:${syslogPort}', tls: { ca: ca.pem } }\n` : ''}`,
    );
    if (hasRsyslog) rsyslog = await startRsyslog();
    gateway = await start();
    agents = await Promise.all(
      ['one', 'two'].map(async (org) => {
        const agent = { org_id: org, team_id: 'team', agent_id: 'agent' };
        return { org, token: (await gateway.call('POST', '/api/v1/agents', { agent })).body.credential_token };
      }),
    );
  });
  afterAll(async () => {
    await gateway?.stop();
    rsyslog?.kill('SIGKILL');
    await receiver?.close();
    authority?.remove();
    svc.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  test('get the entries of all orgs, over signed calls and in a file', async () => {
    await check(20);
    await eventually(() => expect(firsts(idsAtReceiver())).toEqual(written()));
    await eventually(() => expect(idsInFile(at('copy.ndjson'))).toEqual(written()));
    expect(receiver.received.every((call) => isSigned(call, SECRET))).toBe(true);
    const orgs = new Set(auditEntries(join(dataDir, 'data')).map(({ lineage }) => lineage.org_id));
    expect([...orgs]).toEqual(expect.arrayContaining(['one', 'two']));
  });

  test('lose nothing when the gateway is killed while a receiver hangs', async () => {
    receiver.answer = () => undefined;
    await check(30);
    gateway.process.kill('SIGKILL');
    await gateway.stop('SIGKILL');
    receiver.answer = answered(500);
    gateway = await start();
    await check(10);
    receiver.answer = answered(204);
    await eventually(() => expect(firsts(idsAtReceiver())).toEqual(written()));
    await eventually(() => expect(firsts(idsInFile(at('copy.ndjson')))).toEqual(written()));
  });

  test.skipIf(!hasRsyslog)('lose nothing when rsyslog is killed and comes back', async () => {
    await check(50);
    rsyslog?.kill('SIGKILL');
    await check(50);
    await eventually(async () => {
      const { sinks } = (await gateway.call('GET', '/api/v1/audit/sinks')).body;
      expect(sinks.find(({ name }: { name: string }) => name === 'log').trouble).not.toBe(null);
    });
    rsyslog = await startRsyslog();
    await eventually(() => expect(new Set(idsInFile(at('syslog.ndjson')))).toEqual(new Set(written())));
    expect(firsts(idsInFile(at('syslog.ndjson')))).toEqual(written());
  });

  test('are for operators who see every org', async () => {
    const make = async (scope: string, org_id?: string): Promise<string> =>
      (await gateway.call('POST', '/api/v1/iam/api-keys', { name: scope, scopes: [scope], org_id })).body.key;
    const [reader, ofOrg] = [await make('read'), await make('admin', 'one')];
    expect((await gateway.call('GET', '/api/v1/audit/sinks', undefined, reader)).status).toBe(200);
    expect((await gateway.call('GET', '/api/v1/audit/sinks', undefined, ofOrg)).status).toBe(403);
    expect((await gateway.call('GET', '/api/v1/audit/sinks', undefined, null)).status).toBe(401);
    for (const [path, body] of [['test'], ['replay', { from: 1 }]] as const)
      for (const bearer of [reader, ofOrg])
        expect((await gateway.call('POST', `/api/v1/audit/sinks/copy/${path}`, body, bearer)).status).toBe(403);
    expect((await gateway.call('POST', '/api/v1/audit/sinks/none/test')).status).toBe(404);
    expect((await gateway.call('POST', '/api/v1/audit/sinks/copy/replay', { from: 0 })).status).toBe(400);
  });

  test('are listed, tried and replayed by svc audit sinks, and in svc status', async () => {
    const run = (...args: string[]) =>
      svc.run(args, { env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY } });
    expect(await run('audit', 'sinks', 'test', 'siem')).toMatchObject({
      status: 0,
      stdout: 'siem takes what is sent.\n',
    });
    expect(receiver.types()).toContain('audit.test');
    receiver.answer = answered(401);
    const refused = await run('audit', 'sinks', 'test', 'siem');
    expect(refused).toMatchObject({ status: 1, stdout: 'siem did not take a test: answered 401\n' });
    await check(1);
    await eventually(async () =>
      expect((await run('status')).stdout).toContain('the audit sink siem takes no entries'),
    );
    receiver.answer = answered(200);
    await eventually(async () =>
      expect((await run('audit', 'sinks', 'ls')).stdout).toMatch(/^siem +http +native .* 0 +0 +-/m),
    );
    const before = idsInFile(at('copy.ndjson')).length;
    expect(await run('audit', 'sinks', 'replay', 'copy', '--from', '3')).toMatchObject({ status: 0 });
    await eventually(() => expect(idsInFile(at('copy.ndjson'))[before]).toBe(3));
    expect((await run('audit', 'sinks', 'replay', 'copy', '--from', 'x')).status).toBe(2);
    expect((await run('changes')).stdout).toContain('settings changed: audit sink copy');
    expect((await run('status')).stdout).toMatch(/^sinks +copy \d+ behind, siem \d+ behind/m);
    expect((await gateway.call('GET', '/metrics')).body).toMatch(/^svc_audit_sink_lag_entries\{sink="copy"\} \d+$/m);
  });

  test('show their credentials nowhere', async () => {
    const shown = [
      gateway.output.stderr,
      JSON.stringify((await gateway.call('GET', '/api/v1/audit/sinks')).body),
      (await svc.run(['serve', '--print-config'], { env: settings() })).stdout,
      readFileSync(at('copy.ndjson'), 'utf8'),
    ].join();
    expect(shown).not.toContain(TOKEN);
    expect(shown).not.toContain(SECRET);
  });

  test('keep the gateway from starting where their file is wrong, as serve --check says', async () => {
    writeFileSync(
      at('wrong.yaml'),
      'sinks: [{ name: a, type: http, url: "http://x", headers: { a: "${SIEM_TOKEN}" } }, 7]',
    );
    const env = { ...settings(), SVC_AUDIT_SINKS: at('wrong.yaml'), SVC_DATA_DIR: at('other') };
    const checked = await svc.run(['serve', '--check'], { env });
    expect(checked).toMatchObject({ status: 1, stderr: expect.stringContaining('sinks[1]: must be a mapping') });
    expect((await svc.run(['serve'], { env })).stderr).toContain('sinks[1]: must be a mapping');
    expect(checked.stderr).not.toContain(TOKEN);
  });

  test('have the end of the log when the gateway has stopped', async () => {
    await check(10);
    await gateway.stop();
    expect(firsts(idsAtReceiver())).toEqual(written());
    expect(firsts(idsInFile(at('copy.ndjson')))).toEqual(written());
  });
});

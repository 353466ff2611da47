import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { endIfOrphaned } from '../support/orphans.ts';

const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const TOKEN = 'crawler-token-0123456789-0123456789-0123';
const CHECK = '/svc.governance.v1.PolicyService/CheckAction';

let gateway: TestGateway;
describe('first check', () => {
  beforeAll(async () => {
    gateway = await startTestGateway();
    await gateway.call('POST', '/svc.governance.v1.AgentService/RegisterAgent', {
      agent: AGENT,
      credentialToken: TOKEN,
    });
  });
  afterAll(async () => {
    await gateway.stop();
  });

  test('a registered agent is allowed by the starter policy, and its operation runs', async () => {
    const { status, body } = await gateway.call(
      'POST',
      CHECK,
      {
        agent: AGENT,
        credentialToken: TOKEN,
        traceId: 't1',
        spanId: 's1',
        action: 'tool.call',
        resource: 'web_search',
      },
      null,
    );
    expect(status).toBe(200);
    expect(body).toMatchObject({ decision: 'DECISION_ALLOW', opId: 't1:s1', opState: 'OP_STATE_RUNNING' });
    expect((await gateway.call('GET', '/api/v1/ops/t1:s1')).body).toMatchObject({
      op_id: 't1:s1',
      state: 'running',
      agent: { org_id: 'acme', team_id: 'search', agent_id: 'crawler' },
    });
  });

  test('an action without a rule is denied with a reason, and its operation is over', async () => {
    const { status, body } = await gateway.call(
      'POST',
      CHECK,
      {
        agent: AGENT,
        credentialToken: TOKEN,
        traceId: 't2',
        spanId: 's1',
        action: 'tool.call',
        resource: 'launch_rocket',
      },
      null,
    );
    expect(status).toBe(200);
    expect(body).toMatchObject({
      decision: 'DECISION_DENY',
      reason: 'no policy allows tool.call on launch_rocket for acme/search/crawler',
      opState: 'OP_STATE_TERMINATED',
    });
  });

  test('the first check of the README works as printed, over HTTP and gRPC', (context) => {
    const printed =
      /^## The first check[^]*?```sh\n([^]*?)```/m.exec(readFileSync(join(PACKAGE_ROOT, 'README.md'), 'utf8'))?.[1] ??
      '';
    const script = printed
      .replace(/svc_….*/, ADMIN_KEY)
      .replaceAll('http://127.0.0.1:8080', gateway.url)
      .replaceAll('127.0.0.1:50051', gateway.grpc)
      .replaceAll('curl http', 'curl -sS http');
    const { status, stdout, error } = spawnSync('bash', ['-e', '-c', script], {
      cwd: PACKAGE_ROOT,
      encoding: 'utf8',
      timeout: 60_000,
    });
    if (error !== undefined || status === 127) return context.skip('there is no bash or no curl here');
    expect(stdout.match(/"(decision|opState)": ?"[A-Z_]+"/g)).toEqual([
      '"decision":"DECISION_ALLOW"',
      '"opState":"OP_STATE_RUNNING"',
      '"decision":"DECISION_DENY"',
      '"opState":"OP_STATE_TERMINATED"',
      '"decision": "DECISION_ALLOW"',
      '"opState": "OP_STATE_RUNNING"',
    ]);
    const promised = [...printed.matchAll(/\? (\{"decision".*?)(?: …",)?,?…\}/g)].map(([, beginning]) => beginning!);
    expect(promised).toHaveLength(2);
    for (const beginning of promised) expect(stdout).toContain(beginning);
  });

  test('SIGTERM exits with 0', async () => {
    const other = await startTestGateway();
    expect(await other.stop('SIGTERM')).toBe(0);
  });

  test('a gateway without a reader of its output starts, answers and stops in order', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'svc-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const port = await freePort();
    const child = spawn(process.execPath, [join(PACKAGE_ROOT, 'dist', 'src', 'cli', 'main.js'), 'serve'], {
      env: {
        PATH: process.env.PATH ?? '',
        SVC_HTTP_ADDR: `127.0.0.1:${port}`,
        SVC_GRPC_ADDR: '127.0.0.1:0',
        SVC_DATA_DIR: join(folder, 'data'),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve(code ?? signal));
    });
    endIfOrphaned(child);
    child.stdout.destroy();
    child.stderr.destroy();
    await eventually(async () => expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200));
    child.kill('SIGHUP'); // it reloads, and says so
    expect((await fetch(`http://127.0.0.1:${port}/healthz`)).status).toBe(200);
    child.kill('SIGTERM');
    expect(await ended).toBe(0);
  });
});

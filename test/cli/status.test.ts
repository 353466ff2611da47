import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAuthority } from '../support/authority.ts';
import { createCliHome } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { ALLOW_ALL } from '../support/policies.ts';

const svc = createCliHome();
const folder = mkdtempSync(join(tmpdir(), 'svc-status-'));
const policyPath = join(folder, 'policies.yaml');
let gateway: TestGateway;
beforeAll(async () => {
  writeFileSync(policyPath, ALLOW_ALL);
  gateway = await startTestGateway({ env: { SVC_POLICY_PATH: policyPath } });
});
afterAll(async () => {
  await gateway.stop();
  svc.remove();
  rmSync(folder, { recursive: true, force: true });
});
const run = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  svc.run(['status', ...args], { env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY, ...env } });

describe('svc status', () => {
  test('says that nothing needs attention', async () => {
    const { status, stdout } = await run([]);
    expect(stdout).toContain('Nothing needs attention.');
    expect(stdout).toMatch(/^health +ready$/m);
    expect(stdout).toMatch(/^version +\d+\.\d+\.\d+/m);
    expect(status).toBe(0);
    expect(JSON.parse((await run(['-o', 'json'])).stdout)).toMatchObject({
      status: 'ok',
      health: 'ready',
      audit: 'writable',
      database: 'not_configured',
      witness: 'not_configured',
      attention: [],
    });
  });

  test('without a credential it shows what anybody may see', async () => {
    expect(await run([], { SVC_CLI_API_KEY: '' })).toMatchObject({ status: 0 });
  });

  test('exits with 1 where policies were not reloaded, and says why', async () => {
    writeFileSync(policyPath, 'policies: 7\n');
    gateway.process.kill('SIGHUP');
    await eventually(async () => expect((await run([])).status).toBe(1));
    expect((await run([])).stdout).toMatch(/Needs attention:\n {2}the policies were not reloaded at /);
    writeFileSync(policyPath, ALLOW_ALL);
    gateway.process.kill('SIGHUP');
    await eventually(async () => expect((await run([])).status).toBe(0));
  });

  test('exits with 1 where no gateway answers', async () => {
    expect(await run([], { SVC_CLI_API_URL: 'http://127.0.0.1:1' })).toMatchObject({ status: 1 });
  });

  test('warns of a certificate that ends soon', async () => {
    const authority = createAuthority('authority');
    const { cert, key } = authority.issue('gateway', 3);
    writeFileSync(join(folder, 'cert.pem'), cert);
    writeFileSync(join(folder, 'key.pem'), key);
    const secure = await startTestGateway({
      env: { SVC_TLS_CERT: join(folder, 'cert.pem'), SVC_TLS_KEY: join(folder, 'key.pem') },
    });
    const env = { SVC_CLI_API_URL: secure.url, SVC_CLI_API_KEY: ADMIN_KEY, NODE_EXTRA_CA_CERTS: authority.caFile };
    const { status, stdout } = await svc.start(['status'], { env });
    await secure.stop();
    authority.remove();
    expect(stdout).toContain('the certificate expires in 2 days');
    expect(status).toBe(1);
  });
});

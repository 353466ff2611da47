import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createCliHome } from '../support/cli.ts';

const svc = createCliHome();
const folder = mkdtempSync(join(tmpdir(), 'svc-check-'));
afterAll(() => {
  svc.remove();
  rmSync(folder, { recursive: true, force: true });
});
const policies = (text: string): string => {
  const path = join(folder, 'policies.yaml');
  writeFileSync(path, text);
  return path;
};

describe('svc serve --check', () => {
  test('says that the settings are valid, and opens nothing', async () => {
    const data = join(folder, 'data');
    const found = await svc.run(['serve', '--check'], { env: { SVC_DATA_DIR: data } });
    expect(found).toMatchObject({ status: 0, stderr: '' });
    expect(found.stdout).toBe('The settings are valid; policy documents: 1\n');
    expect(readdirSync(folder)).not.toContain('data');
  });

  test.each([
    [{ SVC_HTTP_ADDR: 'nowhere' }, 'SVC_HTTP_ADDR must be host:port'],
    [{ SVC_CLUSTER: 'on' }, 'SVC_CLUSTER requires SVC_DATABASE_URL'],
    [{ SVC_POLICY_PATH: '/nowhere' }, '/nowhere'],
    [{ SVC_TLS_CERT: '/nowhere', SVC_TLS_KEY: '/nowhere' }, 'cannot read /nowhere of SVC_TLS_CERT (ENOENT)'],
    [{ SVC_JWT_PRIVATE_KEY: '/nowhere' }, 'cannot read the file of SVC_JWT_PRIVATE_KEY (ENOENT)'],
  ])('exits with 1 for %j, and says why', async (env, reason) => {
    const { status, stdout, stderr } = await svc.run(['serve', '--check'], { env: env as Record<string, string> });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toContain(reason);
  });

  test('names every mistake of the policies', async () => {
    const path = policies('policies:\n  - rules: 7\n');
    const { status, stderr } = await svc.run(['serve', '--check'], { env: { SVC_POLICY_PATH: path } });
    expect(status).toBe(1);
    expect(stderr).toContain('policies.yaml');
  });

  test('warns of variables that are no settings', async () => {
    const { status, stderr } = await svc.run(['serve', '--check'], { env: { SVC_HTP_ADDR: 'x' } });
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: 'warning: SVC_HTP_ADDR is not a setting; docs/configuration.md lists all\n',
    });
  });
});

describe('svc serve --print-config', () => {
  test('shows every setting and where it is from, and no secret', async () => {
    const env = {
      SVC_HTTP_ADDR: '127.0.0.1:9090',
      SVC_BOOTSTRAP_API_KEY: 'a-secret-of-more-than-32-characters-0123456789',
      SVC_DATABASE_URL: 'postgres://svc:hidden@db/svc',
    };
    const { status, stdout } = await svc.run(['serve', '--print-config', '-o', 'json'], { env });
    expect(status).toBe(0);
    expect(stdout).not.toMatch(/a-secret-of|hidden/);
    const { settings } = JSON.parse(stdout) as { settings: object[] };
    expect(settings).toContainEqual({ name: 'SVC_HTTP_ADDR', value: '127.0.0.1:9090', source: 'set' });
    expect(settings).toContainEqual({ name: 'SVC_BOOTSTRAP_API_KEY', value: '********', source: 'set' });
    expect(settings).toContainEqual({ name: 'SVC_GRPC_ADDR', value: '127.0.0.1:50051', source: 'default' });
  });
});

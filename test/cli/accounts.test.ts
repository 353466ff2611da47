import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliHome, createCliHome } from '../support/cli.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { withPostgres } from '../support/postgres.ts';

const newDatabase = withPostgres();

let gateway: GatewayHere;
let cli: CliHome;

describe('accounts', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere({
      env: { SVC_DATABASE_URL: await newDatabase(), SVC_ARGON2_MEMORY_KIB: '1024' },
    });
    cli = createCliHome();
  });
  afterAll(async () => {
    await gateway.stop();
    cli.remove();
  });

  const svc = (command: string) =>
    cli.run(command.split(' '), { env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY } });
  const OWNER = { email: 'owner@example.com', password: 'a long enough passphrase 1' };

  test('accounts are invited, given roles, disabled, enabled and unlocked', async () => {
    expect((await gateway.call('POST', '/api/v1/auth/register', OWNER, null)).status).toBe(201);
    const invited = await svc('accounts invite ann@example.com --role viewer');
    expect(invited.stdout).toMatch(
      /^Invited ann@example\.com as viewer\. Send them this link\. It is shown only once, works once, and expires at \S+:\n {2}\S+\n$/,
    );
    const [, link, token] =
      /^ {2}(.+)\/#\/accept-invite\/([\w-]+)\?email=ann%40example\.com$/m.exec(invited.stdout) ?? [];
    expect(link).toBe(gateway.url);
    expect(
      (
        await gateway.call(
          'POST',
          '/api/v1/auth/invite/accept',
          { invite_token: token, password: 'a long enough passphrase 2' },
          null,
        )
      ).status,
    ).toBe(201);
    expect((await svc('accounts ls')).stdout).toMatch(/^ann@example\.com +viewer +- +enabled +- +\S+$/m);
    // On a terminal an id is whole or not there.
    const narrow = cli.inTerminal(['accounts', 'ls'], {
      columns: 60,
      env: { NO_COLOR: '1', SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY },
    });
    await narrow.ended;
    expect(narrow.shown()).toMatch(/^ann@example\.com +viewer +- +enabled +-\r?$/m);
    expect(await svc('accounts role Ann@example.com developer')).toEqual({
      status: 0,
      stdout: 'ann@example.com now has the role developer.\n',
      stderr: '',
    });
    const { accounts } = JSON.parse((await svc('accounts ls -o json')).stdout);
    const ann = accounts.find(({ email }: { email: string }) => email === 'ann@example.com');
    expect((await svc(`accounts disable ${ann.id}`)).stdout).toBe(
      'ann@example.com is disabled and signed out everywhere.\n',
    );
    expect(
      (
        await gateway.call(
          'POST',
          '/api/v1/auth/login',
          { email: 'ann@example.com', password: 'a long enough passphrase 2' },
          null,
        )
      ).status,
    ).toBe(401);
    expect((await svc('accounts enable ann@example.com')).stdout).toBe('ann@example.com is enabled.\n');
    for (let attempt = 0; attempt < 5; attempt++)
      await gateway.call('POST', '/api/v1/auth/login', { email: 'ann@example.com', password: 'not this one' }, null);
    expect((await svc('accounts ls')).stdout).toMatch(/^ann@example\.com +developer +- +locked:1[45]m +- +\S+$/m);
    for (let times = 0; times < 2; times++)
      expect(await svc('accounts unlock ann@example.com')).toEqual({
        status: 0,
        stdout: 'ann@example.com is not locked.\n',
        stderr: '',
      });
    expect((await svc('accounts ls')).stdout).toMatch(/^ann@example\.com +developer +- +enabled +- +\S+$/m);
    expect(await svc('accounts role nobody@example.com viewer')).toEqual({
      status: 1,
      stdout: '',
      stderr: 'error: account nobody@example.com not found\nSee `svc accounts ls`.\n',
    });
    expect(await svc('accounts role ann@example.com emperor')).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/role/),
    });
  });

  test('open invites are listed and revoked by e-mail', async () => {
    await svc('accounts invite Ben@example.com --org acme');
    await svc('accounts invite ben@example.com --role viewer');
    expect((await svc('accounts invites')).stdout).toMatch(
      /^E-MAIL +ROLE +ORG +EXPIRES IN +INVITED BY +ID\nBen@example\.com +developer +acme +\dd +key:\S+ +\S+\nben@example\.com +viewer +- +\dd +key:\S+ +\S+\n$/,
    );
    expect((await svc('accounts invites --org acme')).stdout).not.toContain('viewer');
    expect(await svc('accounts uninvite ben@example.com')).toEqual({
      status: 0,
      stdout: 'Revoked 2 invites for ben@example.com.\n',
      stderr: '',
    });
    expect(await svc('accounts invites')).toEqual({ status: 0, stdout: '', stderr: 'There are no open invites.\n' });
    expect(await svc('accounts uninvite ben@example.com')).toEqual({
      status: 1,
      stdout: '',
      stderr: 'error: no open invite for ben@example.com\nSee `svc accounts invites`.\n',
    });
  });
});

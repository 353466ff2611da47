/** Views that follow changes at a gateway: the live table, a watch, a followed log. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { type CliHome, type CliOptions, type CliResult, SVC } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import type { ServingGateway } from '../support/gateway.ts';

export type Operator = {
  readonly gateway: () => ServingGateway;
  /** Logged in there. */
  readonly cli: () => CliHome;
  readonly svc: (command: string, options?: CliOptions) => Promise<CliResult>;
  readonly json: (command: string) => Promise<{ readonly id: string; readonly key: string }>;
};

/** Declares tests at a gateway that others use, too. */
export function liveViews({ gateway, cli, svc, json }: Operator): void {
  test('a terminal of unknown size, as in a container, shows tables and the live table', async () => {
    await svc('agents register sizeless/team/agent');
    await svc('check --agent sizeless/team/agent --action tool.call --resource web_search --op sizeless:1');
    const script = 'stty rows 0 cols 0 && exec "$@"';
    const list = cli().inTerminal(['ops', 'ls', '--org', 'sizeless'], { script, env: { NO_COLOR: '1' } });
    await list.ended;
    expect(list.shown()).toMatch(/sizeless:1 +running +sizeless\/team\/agent/);
    const live = cli().inTerminal(['ops', 'watch', '--org', 'sizeless'], { script });
    await live.until(/sizeless:1 +running +sizeless\/team\/agent/);
    live.type('\u0003');
    expect(await live.ended).toBe(0);
  });

  test('a followed log shows entries as they are written, each once', async () => {
    await svc('agents register acme/follow/a1');
    const terminal = cli().inTerminal(['logs', '--follow', '--team', 'follow', '--event', 'ActionAllowed'], {
      columns: 200,
    });
    await eventually(async () => {
      await svc('check --agent acme/follow/a1 --action tool.call --resource web_search');
      expect(terminal.shown()).toContain('ActionAllowed');
    });
    await svc('check --agent acme/follow/a1 --action tool.call --resource web_search --op follow:last');
    await terminal.until('follow:last');
    terminal.type('\u0003');
    await terminal.ended;
    const ids = [...terminal.shown().matchAll(/Z {2}(\d+) {2}ActionAllowed/g)].map(([, id]) => Number(id));
    expect(ids.length).toBeGreaterThanOrEqual(2);
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b));
  });

  test('the live table redraws in place, fits the terminal, and restores it', async () => {
    await svc('agents register acme/watch/a1');
    await svc('check --agent acme/watch/a1 --action tool.call --resource web_search --op watch:1');
    const terminal = cli().inTerminal(['ops', 'watch', '--org', 'acme'], { columns: 60, rows: 12 });
    await terminal.until(/watch:1 +running/);
    await svc('ops pause watch:1');
    await terminal.until(/watch:1 +paused/);
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(0);
    const shown = terminal.shown();
    expect(shown).toMatch(/^\u001b\[\?1049h\u001b\[\?25l/);
    expect(shown).toMatch(/\u001b\[\?25h\u001b\[\?1049l$/);
    const pictures = shown
      .split('\u001b[H')
      .slice(1)
      .map((picture) => picture.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, '').split(/\r+\n/));
    expect(pictures.length).toBeGreaterThan(1);
    for (const lines of pictures) {
      expect(lines.length).toBeLessThanOrEqual(12);
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(60);
    }
  });

  test('on a narrow screen the live table shortens ids as lists do', async () => {
    const opId = `${'ef'.repeat(16)}:${'01'.repeat(8)}`;
    await gateway().call('POST', '/api/v1/ops', {
      op_id: opId,
      agent: { org_id: 'slim', team_id: 't', agent_id: 'a' },
    });
    const terminal = cli().inTerminal(['ops', 'watch', '--org', 'slim'], { columns: 40, env: { NO_COLOR: '1' } });
    await terminal.until(/OPERATION {6}STATE {7}AGENT[^]*efefef:010101 {2}pending {5}slim\/t\/a/);
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(0);
  });

  test('a live table whose key is revoked restores the terminal and says why', async () => {
    const { id, key } = await json('keys create short-lived --scope read');
    const terminal = cli().inTerminal(['ops', 'watch', '--api-url', gateway().url], { env: { SVC_CLI_API_KEY: key } });
    await terminal.until('q to quit.');
    await svc(`keys revoke ${id}`);
    expect(await terminal.ended).toBe(1);
    const [, after = ''] = terminal.shown().split('\u001b[?1049l');
    expect(after).toBe(
      `error: not logged in to ${gateway().url}: the gateway rejected the API key\r\nRun \`svc login\` first.\r\n`,
    );
  });

  test('a watch without a terminal prints plain lines and stops in order on request', async () => {
    await svc('agents register acme/piped/a1');
    const child = spawn(process.execPath, [SVC, 'ops', 'watch', '--org', 'acme'], {
      env: { PATH: process.env.PATH ?? '', HOME: cli().home },
    });
    let shown = '';
    child.stdout.on('data', (chunk: Buffer) => {
      shown += chunk.toString();
    });
    await svc('check --agent acme/piped/a1 --action tool.call --resource web_search --op piped:1');
    await eventually(() =>
      expect(shown).toMatch(
        /^\d{4}-\d\d-\d\dT[0-9:.]+Z {2}piped:1 {2}running {2}acme\/piped\/a1 {2}tool\.call {2}web_search$/m,
      ),
    );
    expect(shown).not.toContain('\u001b');
    child.kill('SIGTERM');
    expect((await once(child, 'exit'))[0]).toBe(0);
  });

  test("the live stream refuses in the gateway's words", async () => {
    expect(await svc('ops watch', { env: { SVC_CLI_API_URL: gateway().url } })).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: not logged in to ${gateway().url}: this requires a session or an API key\nRun \`svc login\` first.\n`,
    });
    const { key } = await json('keys create bound --scope read --org globex');
    expect(
      await svc('ops watch --org acme', { env: { SVC_CLI_API_URL: gateway().url, SVC_CLI_API_KEY: key } }),
    ).toMatchObject({ status: 1, stderr: expect.stringMatching(/acme/) });
    expect((await svc(`ops watch --org ${'x'.repeat(300)}`)).stderr).toBe(
      'error: org_id: is not a valid org name\nRun the command with --help to see what it accepts.\n',
    );
  });
}

import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { statementsIn } from '../../src/audit-log/witness/statement.ts';
import { targetOf } from '../../src/audit-log/witness/target.ts';
import type { WitnessStatement } from '../../src/core/audit/witness.ts';
import { type CliHome, createCliHome } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { startFakeServer } from '../support/fake-server.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

let cli: CliHome;

describe('audit', () => {
  beforeEach(() => {
    cli = createCliHome();
  });
  afterEach(() => cli.remove());

  const write = (name: string, text: string): string => {
    const path = join(cli.home, name);
    writeFileSync(path, text);
    return path;
  };

  let gateway: GatewayHere;
  beforeAll(async () => {
    gateway = await startGatewayHere();
    for (const name of ['a1', 'a2', 'a3'])
      await gateway.call('POST', '/api/v1/agents', { agent: { org_id: 'acme', team_id: 't', agent_id: name } });
  });
  afterAll(async () => {
    await gateway.stop();
  });

  function deferred() {
    let resolve = (): void => undefined;
    const promise = new Promise<void>((done) => {
      resolve = done;
    });
    return { promise, resolve };
  }

  const segmentIn = (folder: string): string =>
    join(folder, readdirSync(folder).find((name) => /^\d+\.ndjson$/.test(name)) ?? '');

  test('verifies a whole log, also in the data directory of a running gateway', async () => {
    for (const path of [gateway.dataDir, join(gateway.dataDir, 'audit')]) {
      const { status, stdout, stderr } = await cli.run(['audit', 'verify', path]);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      const { signatures_checked: isSigned } = JSON.parse(
        (await cli.run(['audit', 'verify', path, '-o', 'json'])).stdout,
      );
      expect(isSigned).toBe(path === gateway.dataDir);
      expect(stdout).toMatch(/^ok {4}\d+ entries, unbroken from 1 to \d+\nhead {2}[0-9a-f]{64}\n/);
    }
  });

  test('a log without checkpoints is reported with what cannot be noticed', async () => {
    const copy = join(cli.home, 'unsigned');
    mkdirSync(copy);
    const segment = segmentIn(join(gateway.dataDir, 'audit'));
    cpSync(segment, join(copy, basename(segment)));
    const { status, stdout } = await cli.run(['audit', 'verify', copy]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/\nno checkpoints: a log that was truncated or rebuilt would look the same\n$/);
  });

  test('the first broken entry of a tampered log is named', async () => {
    const copy = join(cli.home, 'copy');
    mkdirSync(copy);
    for (const name of readdirSync(join(gateway.dataDir, 'audit')).filter((each) => /json$/.test(each)))
      cpSync(join(gateway.dataDir, 'audit', name), join(copy, name));
    const segment = segmentIn(copy);
    writeFileSync(segment, readFileSync(segment, 'utf8').replace('"agent_id":"a2"', '"agent_id":"zz"'));
    const { status, stdout, stderr } = await cli.run(['audit', 'verify', copy]);
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' });
    expect(stdout).toMatch(
      /^BROKEN {2}entry 3 was changed: the entry does not match its hash\n {8}\d+\.ndjson, line 3; the 2 entries before it are intact\n$/,
    );
    expect(JSON.parse((await cli.run(['audit', 'verify', copy, '-o', 'json'])).stdout)).toMatchObject({
      ok: false,
      entries: 2,
      first_broken: { id: 3, problem: 'changed', line: 3 },
    });
    for (const path of [join(cli.home, 'nowhere'), cli.home, segment])
      expect(await cli.run(['audit', 'verify', path])).toMatchObject({
        status: 1,
        stdout: '',
        stderr: expect.stringMatching(/^error: no audit log in /),
      });
  });

  test('problems of the checkpoints are not blamed on an entry', async () => {
    const copy = join(cli.home, 'checkpointed');
    const started = await startGatewayHere({ dataDir: copy });
    await started.stop();
    rmSync(join(copy, 'data', 'keys', 'audit-checkpoint.pem'));
    const again = await startGatewayHere({ dataDir: copy });
    await again.stop();
    const audit = join(copy, 'data', 'audit');
    expect((await cli.run(['audit', 'verify', join(copy, 'data')])).stdout).toBe(
      `BROKEN  checkpoints.ndjson, line 1, is forged or signed with another key: the signature does not match\n        if the key was replaced, svc audit verify ${audit} checks everything except the signatures\n`,
    );
    expect((await cli.run(['audit', 'verify', audit])).stdout).toContain('check their signatures with --key');
    rmSync(segmentIn(audit));
    expect((await cli.run(['audit', 'verify', audit])).stdout).toMatch(
      /^BROKEN {2}entry 1 was cut: the checkpoint from \S+ covers entry 1, but the log ends at 0\n$/,
    );
  });

  test('detects, with a witness, a log that was cut with its checkpoints', async () => {
    const copy = join(cli.home, 'witnessed');
    const witness = join(cli.home, 'witness.ndjson');
    const started = await startGatewayHere({
      dataDir: copy,
      env: { SVC_AUDIT_WITNESS: `file://${witness}, http://127.0.0.1:9/`, SVC_LOG_LEVEL: 'warn' },
    });
    // The second one cannot be reached: checks go on, and it is said.
    await started.call('POST', '/api/v1/policies/reload');
    await started.stop();
    const strict = () =>
      cli.run(['audit', 'verify', join(copy, 'data'), '--witness', witness, '--strict', '-o', 'json']);
    const whole = JSON.parse((await strict()).stdout) as { ok: boolean; entries: number; witnessed_up_to: number };
    expect(whole).toEqual(expect.objectContaining({ ok: true, witnessed_up_to: whole.entries }));
    const without = await cli.run(['audit', 'verify', join(copy, 'data'), '--strict']);
    expect(without).toMatchObject({ status: 1, stdout: expect.stringContaining('no witness vouches for it') });
    const audit = join(copy, 'data', 'audit');
    const segment = segmentIn(audit);
    writeFileSync(segment, readFileSync(segment, 'utf8').replace(/[^\n]+\n$/, ''));
    rmSync(join(audit, 'checkpoints.ndjson'));
    expect((await cli.run(['audit', 'verify', join(copy, 'data')])).status).toBe(0);
    const cut = await strict();
    expect({ status: cut.status, report: JSON.parse(cut.stdout) }).toMatchObject({
      status: 1,
      report: { ok: false, first_broken: { id: whole.entries, problem: 'cut' } },
    });
    await witnessedByGateway(join(copy, 'data'), statementsIn(readFileSync(witness, 'utf8')).at(-1)!);
  });

  /** The log was cut after it had stated this to another gateway, which is a witness of somebody else's log too. */
  async function witnessedByGateway(dataDir: string, statement: WitnessStatement): Promise<void> {
    const keys = await Promise.all(
      ['branch', 'other'].map(async (name) => {
        const asked = { name, scopes: ['write'], org_id: 'witnesses' };
        return (await gateway.call('POST', '/api/v1/iam/api-keys', asked)).body as { id: string; key: string };
      }),
    );
    const [own, others] = keys as [(typeof keys)[0], (typeof keys)[0]];
    const send = (key: string, stated: WitnessStatement) =>
      targetOf(`${gateway.url}/api/v1/audit/witness`, key).send(stated, AbortSignal.timeout(60_000));
    await send(own.key, statement);
    await send(own.key, statement);
    await send(others.key, { ...statement, id: 9_000, hash: 'b'.repeat(64) });
    // The author of a cut log cannot take that back, or state anything else.
    const [first = ''] = readFileSync(segmentIn(join(dataDir, 'audit')), 'utf8').split('\n');
    const { hash } = JSON.parse(first) as { hash: string };
    await expect(send(own.key, { ...statement, id: 1, hash })).rejects.toThrow('it answered 409');
    await expect(send(own.key, { ...statement, hash: 'c'.repeat(64) })).rejects.toThrow('it answered 409');
    const verify = (...more: readonly string[]) => cli.run(['audit', 'verify', dataDir, ...more]);
    expect(await verify('--witness', gateway.dataDir)).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(/has checkpoints from 2 credentials: key:[\w-]+, key:[\w-]+\n.*--witness-actor/),
    });
    const file = join(cli.home, 'witnessed.ndjson');
    const filters = ['--event', 'CheckpointWitnessed', '--actor', `key:${own.id}`];
    const exported = await cli.run(['audit', 'export', ...filters, '--dir', gateway.dataDir, '--file', file]);
    expect(exported.status).toBe(0);
    expect(statementsIn(readFileSync(file, 'utf8')).map(({ id }) => id)).toEqual([statement.id, 1, statement.id]);
    for (const more of [
      ['--witness', gateway.dataDir, '--witness-actor', `key:${own.id}`],
      ['--witness', file],
    ])
      expect(await verify(...more)).toMatchObject({
        stderr: '',
        status: 1,
        stdout: expect.stringContaining(`covers entry ${statement.id}, but the log ends at ${statement.id - 1}`),
      });
  }

  test('exports from the gateway or its folder, to a private file never overwritten', async () => {
    const env = { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY };
    const remote = await cli.start(['audit', 'export', '--org', 'acme'], { env });
    const local = await cli.run(['audit', 'export', '--org', 'acme', '--dir', gateway.dataDir]);
    expect(remote).toMatchObject({ status: 0, stderr: '' });
    expect(local.stdout).toBe(remote.stdout);
    expect(
      remote.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).lineage.agent_id),
    ).toEqual(['a3', 'a2', 'a1']);
    const file = join(cli.home, 'log.csv');
    expect(
      await cli.run(['audit', 'export', '--format', 'csv', '--event', 'AgentRegistered', '--file', file], { env }),
    ).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(readFileSync(file, 'utf8').split('\r\n')).toHaveLength(5);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(await cli.run(['audit', 'export', '--file', file], { env })).toMatchObject({
      status: 1,
      stderr: `error: ${file} already exists\nChoose another file, or overwrite it with --force.\n`,
    });
    expect((await cli.run(['audit', 'export', '--file', file, '--force'], { env })).status).toBe(0);
    expect(await cli.run(['audit', 'export', '--event', 'Nothing'], { env })).toMatchObject({ status: 1, stdout: '' });
  });

  test('a server that is no gateway is named, with what to look at', async () => {
    const server = await startFakeServer((request, response) =>
      response
        .writeHead(request.method === 'GET' ? 404 : 501, { 'content-type': 'text/html' })
        .end('<h1>It works!</h1>'),
    );
    onTestFinished(() => server.stop());
    const env = { SVC_CLI_API_URL: server.url, SVC_CLI_API_KEY: 'a-key-0123456789-0123456789-0123456789' };
    const advice = 'Check the URL, which must be the HTTP address of svc-gateway, and any proxy in front of it.\n';
    expect(await cli.run(['ops', 'ls'], { env })).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: the server that answered, with status 404, is not a gateway\n${advice}`,
    });
    expect(await cli.run(['login'], { env })).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: the gateway did not create a session: the server that answered, with status 501, is not a gateway\n${advice}`,
    });
  });

  test.each([401, 403])("a proxy's page with status %i is no refusal of the key or session", async (status) => {
    const server = await startFakeServer((_request, response) =>
      response.writeHead(status, { 'content-type': 'text/html' }).end('<h1>Please sign in</h1>'),
    );
    onTestFinished(() => server.stop());
    const env = { SVC_CLI_API_URL: server.url, SVC_CLI_API_KEY: 'a-key-0123456789-0123456789-0123456789' };
    const printed = `the server that answered, with status ${status}, is not a gateway\nCheck the URL, which must be the HTTP address of svc-gateway, and any proxy in front of it.\n`;
    for (const command of ['ops ls', 'ops watch', 'keys revoke k']) {
      expect({ command, run: await cli.run(command.split(' '), { env }) }).toEqual({
        command,
        run: { status: 1, stdout: '', stderr: `error: ${printed}` },
      });
    }
    expect(await cli.run(['login'], { env })).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: the gateway did not create a session: ${printed}`,
    });
    mkdirSync(cli.folder, { recursive: true });
    const session = { api_url: server.url, token: 't', expires_at: 4_000_000_000, scopes: ['read'], source_key: 'k' };
    writeFileSync(join(cli.folder, 'credentials.yaml'), JSON.stringify({ sessions: { [server.url]: session } }), {
      mode: 0o600,
    });
    onTestFinished(() => rmSync(cli.folder, { recursive: true, force: true }));
    expect((await cli.run(['ops', 'ls'], { env })).stderr).toBe(
      `error: ${status === 401 ? 'the gateway did not create a session: ' : ''}${printed}`,
    );
  });

  test.each([
    ['a page', 'text/html', '<h1>Please sign in</h1>'],
    ['JSON of its own', 'application/json', '{"status":"ok"}'],
    ['a list', 'application/json', '[]'],
  ])('an answer of 200 with %s counts as nothing done', async (_, type, body) => {
    const server = await startFakeServer((_request, response) =>
      response.writeHead(200, { 'content-type': type }).end(body),
    );
    onTestFinished(() => server.stop());
    const env = { SVC_CLI_API_URL: server.url, SVC_CLI_API_KEY: 'a-key-0123456789-0123456789-0123456789' };
    const commands = [
      'ops terminate a:b',
      'check --agent a/b/c --action x',
      'audit export',
      'keys revoke k',
      'agents register a/b/c',
      'topology',
    ];
    for (const command of commands) {
      expect({ command, run: await cli.run(command.split(' '), { env }) }).toEqual({
        command,
        run: {
          status: 1,
          stdout: '',
          stderr: `error: the server at ${server.url} does not answer like a gateway\nCheck the URL: it must be the HTTP address of svc-gateway.\n`,
        },
      });
    }
  });

  test.each([
    ['what is no item', '{"ops":[null],"next_cursor":null}'],
    ['pages that lead to themselves', '{"ops":[],"next_cursor":"1"}'],
  ])('a list of %s is not accepted as one of a gateway', async (_, body) => {
    const server = await startFakeServer((_request, response) =>
      response.writeHead(200, { 'content-type': 'application/json' }).end(body),
    );
    onTestFinished(() => server.stop());
    const env = { SVC_CLI_API_URL: server.url, SVC_CLI_API_KEY: 'a-key-0123456789-0123456789-0123456789' };
    expect(await cli.run(['ops', 'ls'], { env })).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: the server at ${server.url} does not answer like a gateway\nCheck the URL: it must be the HTTP address of svc-gateway.\n`,
    });
  });

  test('a busy gateway says when to retry; a cut connection is not a stopped gateway', async () => {
    const busy = await startFakeServer((_request, response) =>
      response
        .writeHead(503, { 'content-type': 'application/problem+json', 'retry-after': '3' })
        .end('{"code":"overloaded","detail":"too much is asked"}'),
    );
    const cutting = await startFakeServer((_request, response) => void response.destroy());
    onTestFinished(() => Promise.all([busy.stop(), cutting.stop()]).then(() => undefined));
    const to = ({ url }: { readonly url: string }) => ({
      env: { SVC_CLI_API_URL: url, SVC_CLI_API_KEY: 'a-key-0123456789-0123456789-0123456789' },
    });
    expect((await cli.run(['login'], to(busy))).stderr).toBe(
      'error: the gateway did not create a session: too much is asked\nWait 3 seconds and try again.\n',
    );
    expect((await cli.run(['ops', 'ls'], to(cutting))).stderr).toBe(
      `error: cannot reach the gateway at ${cutting.url}: the connection was closed\nTry again. If that does not help, check the URL, including http or https.\n`,
    );
  });

  test('an export cut or interrupted leaves the old file and nothing beside it', async () => {
    const server = await startFakeServer((request, response) => {
      response.writeHead(200, { 'content-type': 'application/x-ndjson' }).write('{"id":1}\n');
      if (request.url?.includes('org_id=cut') === true) setTimeout(() => response.destroy(), 50);
    });
    onTestFinished(() => server.stop());
    const env = { SVC_CLI_API_URL: server.url };
    const file = write('log.ndjson', 'from before\n');
    const absent = join(cli.home, 'absent.ndjson');
    const before = readdirSync(cli.home).sort();
    expect(await cli.run(['audit', 'export', '--org', 'cut', '--file', absent], { env })).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: the connection was lost before the export ended\n${absent} is unchanged; run the command again.\n`,
    });
    expect(await cli.run(['audit', 'export', '--org', 'cut', '--file', file, '--force'], { env })).toMatchObject({
      status: 1,
    });
    const terminal = cli.inTerminal(['audit', 'export', '--file', file, '--force'], { env });
    await eventually(() => expect(readdirSync(cli.home).some((name) => name.endsWith('.partial'))).toBe(true));
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(130);
    expect(terminal.shown()).toContain(
      `error: the export was interrupted\r\n${file} is unchanged; run the command again.`,
    );
    expect(readFileSync(file, 'utf8')).toBe('from before\n');
    expect(readdirSync(cli.home).sort()).toEqual(before);
  });

  test('an export shows its progress on the terminal, and then the total', async () => {
    const release = deferred();
    const server = await startFakeServer((request, response) => {
      const isCsv = request.url?.includes('format=csv') === true;
      response
        .writeHead(200, { 'content-type': isCsv ? 'text/csv' : 'application/x-ndjson' })
        .write(isCsv ? 'id,reason\r\n1,"two\r\nlines"\r\n' : '{"id":2,"reason":"\\""}\n');
      void release.promise.then(() => response.end(isCsv ? '2,x\r\n' : '{"id":1}\n'));
    });
    onTestFinished(() => server.stop());
    const env = { SVC_CLI_API_URL: server.url };
    const running = ['ndjson', 'csv'].map((format) =>
      cli.inTerminal(['audit', 'export', '--format', format, '--file', join(cli.home, format)], { env }),
    );
    await running[0]?.until(/Exporting: 1 entry, 23 B, \d+s/);
    await running[1]?.until(/Exporting: 1 entry, 27 B, \d+s/);
    release.resolve();
    expect(await Promise.all(running.map(({ ended }) => ended))).toEqual([0, 0]);
    expect(running[0]?.shown()).toMatch(/\r\u001b\[K2 entries, 32 B, \d+s\r\n$/);
    expect(running[1]?.shown()).toMatch(/\r\u001b\[K2 entries, 32 B, \d+s\r\n$/);
    expect(readFileSync(join(cli.home, 'ndjson'), 'utf8')).toBe('{"id":2,"reason":"\\""}\n{"id":1}\n');
  });

  test('the size of a large export is readable', async () => {
    const sizes = [999, 1_000, 4_240_000];
    const server = await startFakeServer(
      (request, response) =>
        void response
          .writeHead(200, { 'content-type': 'application/x-ndjson' })
          .end(`${'x'.repeat(Number(/org_id=(\d+)/.exec(request.url ?? '')?.[1]) - 1)}\n`),
    );
    onTestFinished(() => server.stop());
    const printed = await Promise.all(
      sizes.map(async (size) => {
        const terminal = cli.inTerminal(
          ['audit', 'export', '--org', String(size), '--file', join(cli.home, String(size))],
          { env: { SVC_CLI_API_URL: server.url } },
        );
        const line = /1 entry, ([^,]+), \d+s\r\n$/;
        await terminal.until(line); // on a busy machine the end may be told before the last that was shown
        expect(await terminal.ended).toBe(0);
        return line.exec(terminal.shown())?.[1];
      }),
    );
    expect(printed).toEqual(['999 B', '1.0 kB', '4.2 MB']);
  });

  test('an export into a pipe closed by its reader says that it is incomplete', async () => {
    const server = await startFakeServer(
      (_request, response) =>
        void response.writeHead(200, { 'content-type': 'application/x-ndjson' }).end('{"id":1}\n'.repeat(1_000_000)),
    );
    onTestFinished(() => server.stop());
    const pipe = join(cli.home, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const [first, ended] = await Promise.all([
      text(spawn('head', ['-n', '1', pipe]).stdout),
      cli.start(['audit', 'export', '--file', pipe, '--force'], { env: { SVC_CLI_API_URL: server.url } }),
    ]);
    expect({ first, ended }).toEqual({
      first: '{"id":1}\n',
      ended: { status: 1, stdout: '', stderr: 'error: the reader of the export closed the pipe\n' },
    });
  });

  test('an interrupted export to standard output says that it is incomplete', async () => {
    const server = await startFakeServer(
      (_request, response) =>
        void response.writeHead(200, { 'content-type': 'application/x-ndjson' }).write('{"id":1}\n'),
    );
    onTestFinished(() => server.stop());
    const terminal = cli.inTerminal(['audit', 'export'], { env: { SVC_CLI_API_URL: server.url } });
    await terminal.until('{"id":1}');
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(130);
    expect(terminal.shown()).toContain(
      'error: the export was interrupted\r\nThe output is incomplete; run the command again.',
    );
  });

  test('an export follows a link to its file and writes into a pipe', async () => {
    const file = write('log.ndjson', 'from before\n');
    const linked = join(cli.home, 'linked.ndjson');
    symlinkSync(file, linked);
    expect(
      await cli.run(['audit', 'export', '--dir', gateway.dataDir, '--org', 'acme', '--file', linked, '--force']),
    ).toEqual({ status: 0, stdout: '', stderr: '' });
    expect(lstatSync(linked).isSymbolicLink()).toBe(true);
    expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(3);
    const pipe = join(cli.home, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const [text, { status }] = await Promise.all([
      readFile(pipe, 'utf8'),
      cli.run(['audit', 'export', '--dir', gateway.dataDir, '--org', 'acme', '--file', pipe, '--force']),
    ]);
    expect({ status, lines: text.trim().split('\n').length }).toEqual({ status: 0, lines: 3 });
    expect(lstatSync(pipe).isFIFO()).toBe(true);
  });

  test('a missing key or export file is reported in words', async () => {
    const absent = join(cli.home, 'absent', 'file');
    expect(await cli.run(['audit', 'verify', gateway.dataDir, '--key', absent])).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: cannot read ${absent}: no such file or folder\nGive the key file with --key.\n`,
    });
    expect(await cli.run(['audit', 'export', '--dir', gateway.dataDir, '--file', absent])).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: cannot write ${absent}: no such file or folder\n`,
    });
  });

  test("exports from a folder with the gateway's filters; unknown events are refused", async () => {
    const idsOf = (text: string) =>
      text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).lineage.agent_id);
    const { stdout } = await cli.run([
      'audit',
      'export',
      '--dir',
      gateway.dataDir,
      '--event',
      'AgentRegistered',
      '--agent',
      'a2',
    ]);
    expect(idsOf(stdout)).toEqual(['a2']);
    expect(await cli.run(['audit', 'export', '--dir', gateway.dataDir, '--event', 'Nothing'])).toEqual({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(
        /^error: unknown event type\nValid types are ActionAllowed, ActionDenied, .*PolicyReloaded.*\.\n$/,
      ),
    });
  });

  test('without a folder reads the log of the gateway that would start here', async () => {
    const other = { env: { SVC_DATA_DIR: gateway.dataDir }, cwd: cli.home };
    expect(await cli.run(['audit', 'verify'], other)).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^ok /),
    });
    expect(await cli.run(['audit', 'verify'], { cwd: cli.home })).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^error: no audit log in data\n/),
    });
    cpSync(join(gateway.dataDir, 'audit'), join(cli.home, 'data', 'audit'), { recursive: true });
    for (const env of [{}, { SVC_DATA_DIR: '' }])
      expect(await cli.run(['audit', 'verify'], { env, cwd: cli.home })).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(/^ok /),
      });
  });

  test('a file without a key is no key for checkpoints', async () => {
    const key = write('key.pem', '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n');
    expect(await cli.run(['audit', 'verify', gateway.dataDir, '--key', key])).toEqual({
      status: 1,
      stdout: '',
      stderr: `error: ${key} is not a key for checkpoints\nIt must be an Ed25519 key in PEM format, public or private.\n`,
    });
  });
});

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type CliHome, type CliOptions, createCliHome } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { answerJson, startFakeServer } from '../support/fake-server.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { liveViews } from './live-views.ts';

let gateway: GatewayHere;
let cli: CliHome;

describe('operator', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
    cli = createCliHome();
    await cli.run(['context', 'add', 'local', gateway.url]);
    expect((await cli.run(['login'], { env: { SVC_CLI_API_KEY: ADMIN_KEY } })).status).toBe(0);
  });
  afterAll(async () => {
    await gateway.stop();
    cli.remove();
  });

  const svc = (command: string, options?: CliOptions) => cli.run(command.split(' '), options);
  const json = async (command: string, options?: CliOptions) =>
    JSON.parse((await svc(`${command} -o json`, options)).stdout);

  test('an agent is registered with a token shown once, listed and removed', async () => {
    const registered = await svc('agents register acme/search/lifecycle');
    expect(registered).toMatchObject({ status: 0, stderr: '' });
    expect(registered.stdout).toMatch(
      /^Registered acme\/search\/lifecycle\.\nIts token, shown only once:\n {2}svcagent_\S+\n$/,
    );
    expect(
      (
        await svc('agents register acme/search/lifecycle', {
          env: { SVC_CLI_AGENT_TOKEN: 'own-token-0123456789-0123456789-0123' },
        })
      ).stdout,
    ).toBe('Rotated the token of acme/search/lifecycle.\n');
    await svc('agents register acme/search/part --parent acme/search/lifecycle');
    await svc('agents register /solo/lifecycle');
    const { stdout } = await svc('agents ls');
    expect(stdout).toMatch(/^AGENT +PARENT +OPS +SEEN +AGE\n/);
    expect(stdout).toMatch(/^\/solo\/lifecycle +- +0 +- +/m);
    expect(stdout).toMatch(/^acme\/search\/part +acme\/search\/lifecycle +0 +- +\d+s$/m);
    const found = async (command: string) =>
      (await json(command)).agents.map(
        ({ org_id: org, agent_id: agent }: { org_id: string; agent_id: string }) => `${org}/${agent}`,
      );
    expect(await found('agents ls --agent lifecycle')).toEqual(['acme/lifecycle', '/lifecycle']);
    expect(await found('agents ls --agent acme/search/lifecycle')).toEqual(['acme/lifecycle']);
    expect(await svc('agents ls --agent nobody')).toEqual({ status: 0, stdout: '', stderr: 'No agents match.\n' });
    expect(await svc('agents rm /solo/lifecycle')).toEqual({
      status: 0,
      stdout: 'Removed /solo/lifecycle; its token is no longer valid.\n',
      stderr: '',
    });
    expect(await svc('agents rm /solo/lifecycle')).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/^error: .+[^.]\nCheck the name; the `ls` commands list what exists\.\n$/),
    });
  });

  test('check exits with 0 for allow and 3 for deny, and prints why', async () => {
    await svc('agents register acme/search/asks');
    const inProcess = (command: string) => cli.start(command.split(' '));
    const allowed = await inProcess('check --agent acme/search/asks --action tool.call --resource web_search');
    expect(allowed).toMatchObject({ status: 0, stderr: '' });
    expect(allowed.stdout).toMatch(
      /^allow {2}allowed by rule harmless-tools of policy starter {2}\([0-9a-f]{32}:[0-9a-f]{16}\)\n$/,
    );
    const denied = await inProcess('check --agent acme/search/asks --action tool.call --resource rm --op asks:1');
    expect(denied).toEqual({
      status: 3,
      stdout: 'deny  no policy allows tool.call on rm for acme/search/asks  (asks:1)\n',
      stderr: '',
    });
    expect(await json('check --agent acme/search/asks --action llm.call --resource m --cost 0.5 --op asks:2')).toEqual({
      decision: 'allow',
      reason: 'model calls up to one dollar (rule models of policy starter)',
      policy: 'starter',
      rule_id: 'models',
      cause: null,
      resets_at: null,
      op_id: 'asks:2',
      op_state: 'running',
      audit_id: expect.any(Number),
      approval_id: null,
      remedy: null,
      obligations: [],
    });
    const explained = await svc(
      'check --explain --agent acme/search/asks --action llm.call --resource m --cost 50 --op asks:3',
    );
    expect(explained.status).toBe(3);
    expect(explained.stdout).toMatch(/^policy +none decided$/m);
    expect(explained.stdout).toMatch(
      /^starter {2}\(global, starter\.yaml\)\n {2}harmless-tools +allow +action does not match\n {2}models +allow +condition is false$/m,
    );
    expect((await svc('ops show asks:3')).status).toBe(1);
    const operationOf = async (words: string): Promise<string | undefined> =>
      /^operation +(.*)$/m.exec(
        (await svc(`check --explain --agent acme/search/asks --action tool.call ${words}`.trim())).stdout,
      )?.[1];
    expect(await operationOf('')).toMatch(/^[0-9a-f]{32}:[0-9a-f]{16}, not registered$/);
    expect(await operationOf('--op asks:2')).toBe('asks:2, running');
    // It runs, and an agent that is refused is not told so.
    await svc('agents register acme/search/other');
    const refused = await svc('check --explain --agent acme/search/other --action tool.call --op asks:2');
    expect(refused.stdout).toMatch(/^operation +asks:2, state unknown$/m);
  });

  test('a halt that matches nobody says so, with the nearest name', async () => {
    await svc('agents register acme/search/mistyped');
    const missed = await svc('halt agent:acme/search/mistypd --reason drill');
    expect(missed.status).toBe(0);
    const { halts } = await json('halts ls');
    expect(missed.stderr).toBe(
      'No known agent is in agent:acme/search/mistypd. Did you mean agent:acme/search/mistyped? ' +
        'The halt applies to future ones; if that is a mistake: ' +
        `svc halts release ${halts[0].id} --reason mistyped\n`,
    );
    expect((await svc('halts ls')).stdout).toMatch(/ BY .*\n.* key:\w+ /);
    await svc(`halts release ${halts[0].id} --reason mistyped`);
    const met = await svc('halt agent:acme/search/mistyped --reason drill');
    expect(met.stderr).toBe('');
    await svc(`halts release ${/halt (\S+),/.exec(met.stdout)?.[1]} --reason over`);
    expect(await svc('halt org:* --reason drill')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('is a name, not a pattern'),
    });
  });

  test('a halt of all asks on a terminal, and takes --yes elsewhere', async () => {
    await svc('agents register shown/search/busy');
    await svc('check --agent shown/search/busy --action tool.call --resource web_search --op busy:1');
    const env = { NO_COLOR: '1', SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY };
    const alone = await svc('halt global --reason drill');
    expect(alone.status).toBe(2);
    expect(alone.stderr).toMatch(/^error: this would halt every agent, and terminate \d+ operations?\n.*--yes/);
    const terminal = cli.inTerminal(['halt', 'global', '--reason', 'drill'], { env });
    await terminal.until('[y/N] ');
    expect(terminal.shown()).toMatch(/^ +1 {2}shown\r$/m);
    terminal.type('n\r');
    expect(await terminal.ended).toBe(1);
    expect((await json('halts ls')).halts.filter(({ scope }: { scope: string }) => scope === 'global')).toEqual([]);
    const made = await json('halt global --reason drill --yes --action never.done');
    expect(made.agents_matched).toBeGreaterThan(0);
    await svc(`halts release ${made.halt.id} --reason over`);
  });

  test('check says when people, or a halt, decide in place of the policies', async () => {
    await svc('agents register acme/search/halted');
    const asked = await svc('check --agent acme/search/halted --action tool.call --resource publish_release');
    expect(asked).toMatchObject({
      status: 3,
      stdout: expect.stringMatching(
        /^pending {2}a person decides what goes live .*\nApproval [0-9a-f-]{36} waits for people/,
      ),
    });
    const made = await json('halt agent:acme/search/halted --reason drill');
    const explained = await svc('check --explain --agent acme/search/halted --action tool.call --resource clock');
    expect(explained.stdout).toMatch(/^deny {2}halt .* of agent:acme\/search\/halted is in force: drill\n/);
    expect(explained.stdout).toMatch(/^policy +none decided, but a halt$/m);
    expect(explained.stdout).toMatch(/^ {2}harmless-tools .* matched: allow {2}<- overruled by a halt$/m);
    expect(explained.stdout).not.toContain('<- decided');
    const { body } = await gateway.call('POST', '/api/v1/policies/explain', {
      agent: { org_id: 'acme', team_id: 'search', agent_id: 'halted' },
      action: 'tool.call',
      resource: 'clock',
    });
    expect(body).toMatchObject({
      decision: { decision: 'allow', rule_id: 'harmless-tools' },
      overruled_by: { cause: 'halt', reason: expect.stringContaining('drill') },
    });
    expect((await svc('policy rules')).stderr).toBe('1 halt in force, which no rule overrides: svc halts ls\n');
    const [heading, listed] = await linesOn(72, 'halts ls');
    expect(heading).toMatch(/^ID +SCOPE +ACTIONS +MODE +AGE +REASON$/);
    const short = made.halt.id.slice(0, 8);
    expect(listed).toMatch(new RegExp(`^${short} {2}agent:acme/search/halted {2}\\* +terminate {2}\\d+s +drill$`));
    expect((await svc(`halts release ${short} --reason over`)).stdout).toMatch(
      /^Released halt .* of agent:acme\/search\/halted\. Operations it has terminated stay terminated\.\n/,
    );
    const brief = await svc('halt org:brief --pause --expires 2h --reason drill');
    expect(brief.stdout).toMatch(
      /^Halted org:brief: halt (\S+), 0 operations paused\.\nIt stays in force until \d{4}\S+Z, or: svc halts release \1 /,
    );
    const [, id] = brief.stdout.split(/halt |,/);
    expect((await svc(`halts release ${id} --reason over`)).stdout).toMatch(/\. Operations it had paused run again/);
    expect((await svc('halts release 00000000 --reason over')).stderr).toMatch(/^error: halt 00000000 not found\n/);
    const rules = await json('policy rules starter');
    expect(rules.rules.find(({ id }: { id: string }) => id === 'releases')).toMatchObject({
      effect: 'require_approval',
      approval: { min: 1, expires_secs: 1800, valid_secs: null, approvers: [] },
    });
  });

  test('an agent checks with its own token from the environment; a wrong one is denied', async () => {
    const token = 'its-own-token-0123456789-0123456789-0123';
    await svc('agents register acme/search/owner', { env: { SVC_CLI_AGENT_TOKEN: token } });
    const command = 'check --agent acme/search/owner --action tool.call --resource web_search';
    expect((await svc(command, { env: { SVC_CLI_AGENT_TOKEN: token } })).status).toBe(0);
    expect((await svc(command, { env: { SVC_CLI_AGENT_TOKEN: 'x'.repeat(40) } })).status).toBe(3);
  });

  test('an operation is listed, shown, paused, resumed, completed and terminated', async () => {
    await svc('agents register acme/ops/a1');
    for (const op of ['o:1', 'o:2'])
      await svc(`check --agent acme/ops/a1 --action tool.call --resource web_search --op ${op}`);
    expect((await json('ops ls --team ops --state running')).ops.map(({ op_id: id }: { op_id: string }) => id)).toEqual(
      ['o:1', 'o:2'],
    );
    expect(await svc('ops pause o:1 o:2')).toEqual({
      status: 0,
      stdout: 'o:1 is paused.\no:2 is paused.\n',
      stderr: '',
    });
    expect(await svc('ops pause o:1')).toMatchObject({
      status: 1,
      stderr: 'error: cannot pause operation o:1: it is paused\nSee its state with `svc ops show`.\n',
    });
    expect((await svc('ops resume o:1')).stdout).toBe('o:1 is running.\n');
    expect((await svc('ops complete o:1')).stdout).toBe('o:1 is completed.\n');
    expect(await json('ops terminate o:2')).toMatchObject({
      op_id: 'o:2',
      state: 'terminated',
      agent: { org_id: 'acme', team_id: 'ops', agent_id: 'a1' },
    });
    expect((await svc('ops show o:2')).stdout).toMatch(/^operation +o:2\nstate +terminated\nagent +acme\/ops\/a1\n/);
    expect(await svc('ops show nowhere:0')).toMatchObject({ status: 1, stdout: '' });
  });

  test('each of several operations is tried, and each failure is named by id', async () => {
    for (const op of ['several:1', 'several:2'])
      await svc(`check --agent acme/ops/a1 --action tool.call --resource web_search --op ${op}`);
    expect(await svc('ops pause several:1 nowhere:0 several:2 nowhere:1')).toEqual({
      status: 1,
      stdout: 'several:1 is paused.\nseveral:2 is paused.\n',
      stderr:
        'error: operation nowhere:0 not found\nerror: operation nowhere:1 not found\nCheck the name; the `ls` commands list what exists.\n',
    });
    const { status, stdout } = await svc('ops resume nowhere:0 several:1 several:2 -o json');
    expect({ status, ops: JSON.parse(stdout) }).toEqual({
      status: 1,
      ops: [
        expect.objectContaining({ op_id: 'several:1', state: 'running' }),
        expect.objectContaining({ op_id: 'several:2', state: 'running' }),
      ],
    });
    expect(await svc('ops terminate nowhere:0 nowhere:1 -o json')).toMatchObject({ status: 1, stdout: '[]\n' });
    const away = await svc('ops terminate several:1 several:2', {
      env: { SVC_CLI_API_URL: `http://127.0.0.1:${await freePort()}`, SVC_CLI_API_KEY: ADMIN_KEY },
    });
    expect(away).toMatchObject({
      status: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^error: several:1: cannot reach the gateway at .+\nerror: several:2: cannot reach the gateway at .+\nStart it with [^\n]+\n$/,
      ),
    });
  });

  test('a limit is kept, and standard error says that there is more', async () => {
    for (const name of ['l1', 'l2', 'l3']) await svc(`agents register acme/limit/${name}`);
    const { stdout, stderr } = await svc('agents ls --team limit --limit 2');
    expect(stdout.trim().split('\n')).toHaveLength(3);
    expect(stderr).toBe('There are more than these 2; raise --limit to see them.\n');
  });

  test('an API key is shown once, works, and is dead once revoked', async () => {
    const { id, key } = await json('keys create for-test --scope read --scope write');
    expect((await svc('ops ls', { env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: key } })).status).toBe(0);
    expect((await svc('keys ls')).stdout).toMatch(new RegExp(`^${id} +for-test +read,write +- +active`, 'm'));
    expect((await svc(`keys revoke ${id}`)).stdout).toBe(`Revoked API key ${id} and every session created with it.\n`);
    expect((await svc('ops ls', { env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: key } })).stderr).toContain(
      'the gateway rejected the API key',
    );
    expect((await svc('keys ls')).stdout).toMatch(new RegExp(`^${id} +for-test +read,write +- +revoked`, 'm'));
    const leaked = await json('keys create leaked --scope admin');
    const child = await json('keys create child --scope read', {
      env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: leaked.key },
    });
    expect(await svc(`keys revoke ${leaked.id}`)).toMatchObject({
      stdout: `Revoked API key ${leaked.id} and every session created with it. 1 API key that it made ended with it.\n`,
      stderr: `1 API key that it made will end with it:\n  ${child.id}  child  read\n`,
    });
    expect(await svc('ops ls', { env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: child.key } })).toMatchObject({
      status: 1,
    });
    expect(await svc('keys create none')).toMatchObject({ status: 2 });
    const created = (await svc('keys create told --scope read --scope write')).stdout;
    expect(created).toMatch(/^Created API key \S+ with read, write\. It is shown only once:\n {2}svc_\S+\n$/);
    const brief = await json('keys create brief --scope read --expires 2d');
    expect(Math.round((Date.parse(brief.expires_at) - Date.now()) / 3_600_000)).toBe(2 * 24);
    const { expires_at: endedAt } = await json('keys create over --scope read --expires 1s');
    await eventually(() => expect(Date.now()).toBeGreaterThan(Date.parse(endedAt)));
    expect((await svc('keys ls')).stdout).toMatch(/ over +read +- +expired .*\n.* brief +read +- +active /);
    expect(await json('keys create dated --scope read --expires 2100-01-31')).toMatchObject({
      expires_at: expect.stringMatching(/^2100-01-31T00:00:00/),
    });
    expect(await svc('keys create never --scope read --expires tomorrow')).toMatchObject({
      status: 2,
      stdout: '',
      stderr: expect.stringMatching(/^error: --expires must be a time such as /),
    });
    expect((await svc('keys rotate-signing')).stdout).toMatch(/^Tokens are now signed with key \S+; /);
    expect((await svc('ops ls')).status).toBe(0);
  });

  test('a time without a zone is UTC, wherever the operator is', async () => {
    const written = [
      ['2100-01-31', '2100-01-31T00:00:00.000Z'],
      ['2100-01-31T08:30', '2100-01-31T08:30:00.000Z'],
      ['2100-01-31T08:30:01.5+09:00', '2100-01-30T23:30:01.500Z'],
      ['2100-01-31t08:30z', '2100-01-31T08:30:00.000Z'],
    ] as const;
    for (const [text, time] of written) {
      expect(
        await json(`keys create zoned --scope read --expires ${text}`, { env: { TZ: 'America/New_York' } }),
      ).toMatchObject({ expires_at: time });
    }
  });

  test('a log range that ends before it begins is refused', async () => {
    for (const command of [
      'logs --since 1h --until 2h',
      'logs --since 2026-02-01 --until 2026-02-01',
      'audit export --since 1m --until 1h',
    ]) {
      expect(await svc(command)).toMatchObject({
        status: 2,
        stdout: '',
        stderr: expect.stringMatching(/^error: --until must be later than --since\nThey are \S+Z and \S+Z\.\n$/),
      });
    }
  });

  test('the topology is shown as an overview, a tree, a lineage and in numbers', async () => {
    for (const [name, parent] of [
      ['root', undefined],
      ['leaf', 'root'],
    ] as const)
      await svc(`agents register topo/forest/${name}${parent === undefined ? '' : ` --parent topo/forest/${parent}`}`);
    await svc('agents register topo/desert/lone');
    await svc('check --agent topo/forest/leaf --action tool.call --resource web_search');
    const overview = (await svc('topology --org topo')).stdout;
    expect(overview).toMatch(/^1 org, 2 teams, 3 agents\n\nORG +TEAM +AGENTS /);
    expect(overview).toMatch(/^topo +forest +2 +0 +0 +1 +0$/m);
    expect((await svc('topology tree --org topo')).stdout).toBe(
      'topo\n  forest\n    root\n      leaf  1 operation\n  desert\n    lone\n',
    );
    expect((await svc('topology --lineage leaf --org topo')).stdout).toBe('topo/forest/root\n  topo/forest/leaf\n');
    await svc('agents register topo/forest/bud --parent topo/forest/leaf');
    expect((await svc('topology --lineage root --org topo')).stdout).toBe(
      'topo/forest/root\n  topo/forest/leaf\n    topo/forest/bud\n',
    );
    await svc('agents rm topo/forest/bud');
    expect((await svc('topology --team forest --org topo')).stdout).toMatch(
      /^topo\/forest\/leaf +topo\/forest\/root +1 /m,
    );
    expect((await svc('topology stats --org topo')).stdout).toMatch(
      /^1 org, 2 teams, 3 agents\n\nORG +TEAM +AGENTS .*\n(?:topo +(?:forest|desert) .*\n){2}$/,
    );
    const everywhere = (await svc('topology stats')).stdout;
    expect(everywhere).toMatch(/^ORG +AGENTS +SEEN +PENDING +RUNNING +PAUSED$/m);
    expect(everywhere).toMatch(/^topo +3 +0 +0 +1 +0$/m);
    expect((await svc('topology --team forest --org topo')).stdout).toMatch(/^ORG /);
    expect(await svc('topology tree --org nobody')).toEqual({
      status: 0,
      stdout: '',
      stderr: 'No agents are registered.\n',
    });
    for (const wrong of [
      'topology map',
      'topology constructor',
      'topology tree --team forest',
      'topology --team forest --lineage leaf',
      'check --agent a/b/c --action x --op one',
      'check --agent a/b/c --action x --op a:b:c',
    ])
      expect(await svc(wrong)).toMatchObject({ status: 2, stdout: '' });
  });

  test('budgets, policies and a reload are shown', async () => {
    await gateway.call('POST', '/api/v1/usage', {
      agent: { org_id: 'acme', team_id: 'money', agent_id: 'm1' },
      cost_usd: 1.25,
    });
    expect((await svc('budgets --org acme')).stdout).toMatch(/^team +acme\/money +\$1\.25 +\$1\.25 +\$0\.00 /m);
    await gateway.call('POST', '/api/v1/usage', {
      agent: { org_id: 'acme', team_id: 'cents', agent_id: 'm1' },
      cost_usd: 0.002,
    });
    expect((await svc('budgets --org acme')).stdout).toMatch(/^team +acme\/cents +\$0\.002000 +\$0\.002000 +\$0\.00 /m);
    expect((await svc('policy ls')).stdout).toMatch(/^starter +global +\d+ +starter\.yaml$/m);
    expect((await svc('policy rules starter')).stdout).toMatch(
      /^POLICY +RULE +EFFECT +ACTIONS +RESOURCES +WHEN +APPROVAL +OBLIGES TO\nstarter +\S+ +(allow|require_approval|deny) /,
    );
    expect(await svc('policy rules nothing')).toMatchObject({ status: 0, stdout: '', stderr: 'No rules match.\n' });
    expect((await svc('policy reload')).stdout).toMatch(
      /^The policies were reloaded; version [0-9a-f]{16} is in force\.\n$/,
    );
  });

  test('large sums are written in groups of three digits', async () => {
    await gateway.call('POST', '/api/v1/usage', {
      agent: { org_id: 'rich', team_id: 't', agent_id: 'a' },
      cost_usd: 12345.5,
    });
    expect((await svc('budgets --org rich')).stdout).toMatch(/^team +rich\/t +\$12,345\.50 +\$12,345\.50 +\$0\.00 /m);
  });

  test('without an account store, account commands are refused with what to do', async () => {
    expect(await svc('accounts ls')).toMatchObject({
      status: 1,
      stdout: '',
      stderr:
        'error: this gateway has no account store; set SVC_DATABASE_URL to enable sign-in with e-mail and password\n',
    });
  });

  test('the audit log is read with filters, the newest entry last', async () => {
    await svc('agents register acme/logs/a1');
    await svc('check --agent acme/logs/a1 --action tool.call --resource rm --op logs:1');
    await svc('check --agent acme/logs/a1 --action tool.call --resource web_search --op logs:2');
    const { stdout } = await svc('logs --team logs --since 5m --no-headers');
    expect(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/ {2,}/).slice(2, 5).join(' ')),
    ).toEqual([
      'AgentRegistered acme/logs/a1 -',
      'ActionDenied acme/logs/a1 logs:1',
      'ActionAllowed acme/logs/a1 logs:2',
    ]);
    expect((await json('logs --op logs:1')).entries.map(({ decision }: { decision: string }) => decision)).toEqual([
      'deny',
    ]);
    expect(await svc('logs --team nobody')).toEqual({ status: 0, stdout: '', stderr: 'No entries match.\n' });
    expect((await svc('logs --team logs --since 2026-01-01 --until 2100-01-01T00:00 --no-headers')).stdout).toBe(
      stdout,
    );
    for (const time of ['yesterday', '5', '2026-02-30']) {
      expect(await svc(`logs --since ${time}`)).toMatchObject({
        status: 2,
        stdout: '',
        stderr: expect.stringMatching(/^error: --since must be a time such as /),
      });
    }
  });

  test('a log with more entries than shown says so, unless a number was requested', async () => {
    await Promise.all(
      Array.from({ length: 101 }, (_, index) =>
        gateway.call('POST', '/api/v1/agents', { agent: { org_id: 'acme', team_id: 'many', agent_id: `m${index}` } }),
      ),
    );
    const { stdout, stderr } = await svc('logs --team many --no-headers');
    expect(stdout.trim().split('\n')).toHaveLength(100);
    expect(stderr).toBe('There are more than these 100; raise --limit to see them.\n');
    expect((await svc('logs --team many --limit 3')).stderr).toBe('');
    expect((await svc('logs --team many --limit 101')).stderr).toBe('');
  });

  /** Prints a command on a terminal of so many columns. */
  async function linesOn(columns: number, command: string): Promise<readonly string[]> {
    const terminal = cli.inTerminal(command.split(' '), { columns, env: { NO_COLOR: '1' } });
    await terminal.ended;
    return terminal
      .shown()
      .replaceAll(/\u001b\[[0-9;?]*[A-Za-z]/g, '')
      .trim()
      .split(/\r*\n/);
  }

  test('budgets fit a narrow terminal: amounts stay whole, minor columns go', async () => {
    await gateway.call('POST', '/api/v1/usage', {
      agent: { org_id: 'a-narrow-org', team_id: 'a-team-of-it', agent_id: 'an-agent-of-that' },
      cost_usd: 1.25,
    });
    const list = 'budgets ls --org a-narrow-org';
    const [narrow, wide] = [await linesOn(60, list), await linesOn(120, list)];
    for (const line of narrow) expect(line.length).toBeLessThanOrEqual(60);
    expect(narrow[0]).toMatch(/^TIER +OF +TODAY +THIS MONTH/);
    expect(narrow.at(-1)).toMatch(/^agent +a-nar.*… +\$1\.25.* +\$1\.25/);
    expect(wide[0]).toMatch(/^TIER +OF +TODAY +THIS MONTH +RESERVED +DAY LEFT$/);
  });

  test('operations fit a narrow terminal: what they are is shown whole, below if need be', async () => {
    const opId = `${'ab'.repeat(16)}:${'cd'.repeat(8)}`;
    await svc(`agents register narrow/a-team-of-it/an-agent-of-that`);
    await svc(
      `check --agent narrow/a-team-of-it/an-agent-of-that --action tool.call --resource web_search --op ${opId}`,
    );
    await svc(`ops terminate ${opId}`);
    const list = 'ops ls --org narrow';
    const [narrow, usual, wide] = [await linesOn(60, list), await linesOn(80, list), await linesOn(120, list)];
    expect(narrow.slice(1)).toEqual([
      'ababab:cdcdcd  terminated  narrow/a-t  tool.call  web_search',
      '                           eam-of-it/',
      '                           an-agent-o',
      '                           f-that',
    ]);
    expect(usual[0]).toMatch(/^OPERATION +STATE +AGENT +ACTION +RESOURCE$/);
    expect(usual.slice(1)).toEqual([
      'ababab:cdcdcd  terminated  narrow/a-team-of-it/an-agent-o  tool.call  web_search',
      '                           f-that',
    ]);
    expect(wide[1]).toMatch(
      /^ababab:cdcdcd {2}terminated {2}narrow\/a-team-of-it\/an-agent-of-that {2}tool\.call {2}web_search {2}\d+s$/,
    );
    await svc('agents register acme/search/crawler');
    await svc(`check --agent acme/search/crawler --action tool.call --resource web_search --op ${opId}9`);
    const crawler = cli.inTerminal(['ops', 'ls', '--agent', 'acme/search/crawler'], { columns: 80 });
    await crawler.ended;
    expect(crawler.shown()).toMatch(/running {2}acme\/search\/crawler {2}tool\.call {2}web_search {2}\d+s/);
    expect((await svc('ops show ababab:cdcdcd --org narrow')).stdout).toContain(`operation     ${opId}\n`);
    expect((await svc('logs --op ababab:cdcdcd --org narrow')).stdout).toContain(`  ${opId}  tool.call web_search  `);
    expect((await svc('audit export --op ababab:cdcdcd --org narrow')).stdout).toContain(`"op_id":"${opId}"`);
  });

  test('agents fit a narrow terminal: names stay whole, minor columns go', async () => {
    await svc('agents register narrow/a-team-of-it/an-agent-of-that');
    for (const [command, heading] of [
      ['agents ls --org narrow --limit 1', /^AGENT +PARENT +OPS$/m],
      ['topology --org narrow --limit 1', /^AGENT +PARENT +OPS$/m],
    ] as const) {
      const shown = (await linesOn(46, command)).join('\n');
      expect(shown).toMatch(heading);
      expect(shown).toMatch(/^narrow\/a-team-of-it\/an-agent-of-that {2}- +\d/m);
    }
  });

  test('rules fit a narrow terminal: columns that are empty go first', async () => {
    const [heading, ...rules] = await linesOn(80, 'policy rules starter');
    expect(heading).toMatch(/^POLICY +RULE +EFFECT +ACTIO… +RESOU… +WHEN +APPROV…$/);
    expect(rules.find((line) => line.includes('releases'))).toContain(' require_approval ');
  });

  test('a gateway alone says that it has no cluster', async () => {
    expect(await svc('cluster ls')).toEqual({
      status: 1,
      stdout: '',
      stderr:
        'error: this gateway is not part of a cluster\nGateways with SVC_CLUSTER=on and the same SVC_DATABASE_URL act as one.\n',
    });
  });

  test('a view that cannot show more agents says how to see the others', async () => {
    const server = await startFakeServer((_request, response) =>
      answerJson(response, 200, {
        org_count: 1,
        team_count: 1,
        agent_count: 2000,
        teams: [],
        agents: [],
        next_cursor: 'x',
      }),
    );
    onTestFinished(() => server.stop());
    const env = { SVC_CLI_API_URL: server.url };
    expect((await svc('topology --limit 999', { env })).stderr).toBe(
      'There are more than these 999; raise --limit to see them.\n',
    );
    expect((await svc('topology --limit 1000', { env })).stderr).toBe(
      'There are more than these 1000; narrow it down with --org or --team, or list them with `svc agents ls`.\n',
    );
    expect((await svc('topology --limit 1001', { env })).stderr).toBe(
      'error: --limit must be at most 1000 here\nNarrow it down with --org or --team, or list agents with `svc agents ls`.\n',
    );
  });

  test('NO_COLOR is respected on a terminal', async () => {
    await svc('agents register acme/plain/a1');
    const shownWith = async (env: Readonly<Record<string, string>>): Promise<string> => {
      const terminal = cli.inTerminal(['agents', 'ls', '--team', 'plain'], { env });
      await terminal.ended;
      return terminal.shown();
    };
    const [plain, coloured] = [await shownWith({ NO_COLOR: '1' }), await shownWith({})];
    expect(plain).toContain('acme/plain/a1');
    expect(plain).not.toContain('\u001b[');
    expect(coloured).toContain('\u001b[1mAGENT');
  });

  liveViews({ gateway: () => gateway, cli: () => cli, svc, json });
});

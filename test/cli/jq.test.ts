import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliHome, createCliHome } from '../support/cli.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

let gateway: GatewayHere;
let cli: CliHome;

describe('--jq', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
    cli = createCliHome();
    await svc('agents', 'register', 'acme/search/a1');
    await svc('agents', 'register', 'acme/search/a2', '--parent', 'acme/search/a1');
  });
  afterAll(async () => {
    await gateway.stop();
    cli.remove();
  });

  const env = () => ({ SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY });
  const svc = (...args: readonly string[]) => cli.run(args, { env: env() });
  const AGENTS = ['agents', 'ls', '--org', 'acme', '--jq'];

  test('prints what the filter makes of the JSON, texts without quotes', async () => {
    const filter = '.agents | sort_by(.agent_id)[] | .agent_id, {org: .org_id}, (.agent_id == "a1")';
    expect(await svc(...AGENTS, filter)).toEqual({
      status: 0,
      stdout: 'a1\n{"org":"acme"}\ntrue\na2\n{"org":"acme"}\nfalse\n',
      stderr: '',
    });
  });

  test.each<readonly [string, string]>([
    ['.agents | map([.org_id, .team_id]) | unique[] | @tsv', 'acme\tsearch\n'],
    ['[.agents[] | try error("x") catch .] | unique[]', 'x\n'],
    ['.agents[] | select(.agent_id == "nobody")', ''],
    ['-(.agents | length)', '-2\n'],
    ['"\\u001b[2J"', '\\u001b[2J\n'],
  ])('%s prints %j', async (filter, stdout) => {
    expect(await svc(...AGENTS, filter)).toEqual({ status: 0, stdout, stderr: '' });
  });

  test('filters what a command does, and each entry of a log', async () => {
    const check = ['check', '--agent', 'acme/search/a1', '--action', 'tool.call', '--resource', 'web_search'];
    expect((await svc(...check, '--op', 'jq:1', '--jq', '.decision')).stdout).toBe('allow\n');
    expect((await svc('logs', '--op', 'jq:1', '--jq', '.entries[].event_type')).stdout).toBe('ActionAllowed\n');
    const terminal = cli.inTerminal(['logs', '--follow', '--op', 'jq:1', '--jq', '.event_type + "!"'], { env: env() });
    await terminal.until('ActionAllowed!');
    terminal.type('\u0003');
    await terminal.ended;
  });

  test('a filter that jq cannot read is refused before anything is done', async () => {
    expect(await svc('agents', 'register', 'acme/search/never', '--jq', '.token[')).toEqual({
      status: 2,
      stdout: '',
      stderr:
        'error: --jq: syntax error, unexpected end of file at <top-level>, line 1, column 7:\nFilters are those of jq, such as .ops[].op_id\n',
    });
    expect((await svc(...AGENTS, '[.agents[].agent_id] | contains(["never"])')).stdout).toBe('false\n');
  });

  test('a filter that fails on the answer says that the command was carried out', async () => {
    expect(await svc(...AGENTS, '.agents.name')).toEqual({
      status: 1,
      stdout: '',
      stderr:
        'error: --jq: Cannot index array with string ("name")\nWhat the command does has been done, but not its whole answer was printed. See its JSON with -o json.\n',
    });
  });

  test.each<readonly [readonly string[], string]>([
    [['ops', 'ls', '-o', 'yaml'], '--jq filters JSON; leave out --output yaml'],
    [['ops', 'ls', '-o', 'csv'], '--jq filters JSON; leave out --output csv'],
    [['ops', 'ls', '--no-headers'], '--jq filters JSON; leave out --no-headers'],
    [['completion', 'bash'], '--jq filters JSON, and this command prints none'],
  ])('is refused with %j', async (args, message) => {
    const { status, stderr } = await svc(...args, '--jq', '.');
    expect({ status, message: stderr.split('\n')[0] }).toEqual({ status: 2, message: `error: ${message}` });
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  nothingWatched,
  type Pressed,
  pictureOf,
  press,
  type Watched,
  type WatchedOp,
} from '../../src/cli/commands/live-ops.ts';
import { keysIn } from '../../src/cli/terminal/keys.ts';
import { type CliHome, createCliHome } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

const op = (name: string, state = 'running'): WatchedOp => ({
  key: `acme/${name}:1`,
  opId: `${name}:1`,
  state,
  action: 'tool.call',
  resource: 'web_search',
  updatedAt: '2026-01-31T12:34:56.000Z',
  agent: `acme/t/${name}`,
  orgId: 'acme',
  home: undefined,
  seenMs: 0,
});
const three: Watched = { ...nothingWatched, ops: [op('one'), op('two'), op('three')] };

describe('keys of the live table', () => {
  /** The keys one after the other, and what the last one does. */
  const pressedBy = (keys: string, from: Watched = three): Pressed => {
    let pressed: Pressed = { state: from };
    for (const key of keysIn(keys)) pressed = press(pressed.state, key);
    return pressed;
  };
  const picture = (state: Watched, rows = 10) =>
    pictureOf(state, { label: 'local', lost: undefined, hasLetGo: false, hasKeys: true }, { rows, columns: 80 });

  test.each([
    ['j', 'acme/one:1'],
    ['jj', 'acme/two:1'],
    ['\u001b[B\u001b[B\u001b[B\u001b[B', 'acme/three:1'],
    ['jjjk', 'acme/two:1'],
    ['jjj\u001b[A\u001b[A\u001b[A', 'acme/one:1'],
    ['jj\u001b', undefined],
  ])('%j selects %s', (keys, selected) => {
    expect(pressedBy(keys).state.selected).toBe(selected);
  });

  test('p and r order at once, and t after a question that takes y alone', () => {
    expect(pressedBy('jjp').orders).toEqual({ verb: 'pause', op: op('two') });
    expect(pressedBy('jr').orders).toEqual({ verb: 'resume', op: op('one') });
    const asked = pressedBy('jt');
    expect(asked.orders).toBeUndefined();
    expect(picture(asked.state).at(-1)).toBe(
      'Terminate one:1 of acme/t/one? Press y; any other key leaves it running.',
    );
    expect(pressedBy('jty').orders).toEqual({ verb: 'terminate', op: op('one') });
    expect(pressedBy('jtn')).toMatchObject({ state: { message: 'Left running.' } });
    expect(pressedBy('jtn').orders).toBeUndefined();
  });

  test('orders nothing while no operation is selected', () => {
    for (const key of ['p', 'r', 't']) {
      const { orders, state } = pressedBy(key);
      expect(orders).toBeUndefined();
      expect(state.message).toBe('Choose an operation first, with the arrow keys.');
    }
  });

  test('/ takes a text, which Enter keeps and Esc gives up', () => {
    expect(pressedBy('/two\r').state).toMatchObject({ filter: 'two', step: { kind: 'watching' } });
    expect(pressedBy('/two\u001b').state.filter).toBe('');
    expect(pressedBy('/twx\u007fo\r').state.filter).toBe('two');
    expect(pressedBy('/q').leaves).toBeUndefined();
    expect(pressedBy('/two\r\u001b').state.filter).toBe('');
  });

  test('? shows the keys until the next one; q and Ctrl-C leave', () => {
    expect(picture(pressedBy('?').state).join('\n')).toContain('t                terminate it, after a question');
    expect(pressedBy('?x').state.step.kind).toBe('watching');
    expect(pressedBy('q').leaves).toBe(true);
    expect(pressedBy('/\u0003').leaves).toBe(true);
  });

  test('a screen with too few rows shows the selected operation', () => {
    expect(picture(pressedBy('jjj').state, 5).join('\n')).toMatch(/two:1[^]*> +three:1/);
    expect(picture(pressedBy('jjj').state, 5)).toHaveLength(5);
  });
});

describe('the live table at a gateway', () => {
  let gateway: GatewayHere;
  let cli: CliHome;
  beforeAll(async () => {
    gateway = await startGatewayHere();
    cli = createCliHome();
  });
  afterAll(async () => {
    await gateway.stop();
    cli.remove();
  });
  const env = () => ({ SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY });
  const svc = (command: string) => cli.run(command.split(' '), { env: env() });
  const begun = async (agent: string, op: string) => {
    await svc(`agents register ${agent}`);
    await svc(`check --agent ${agent} --action tool.call --resource web_search --op ${op}`);
  };
  const stateOf = async (op: string) => (await svc(`ops show ${op} --jq .state`)).stdout.trim();

  test('pauses, resumes and terminates the selected operation', async () => {
    await begun('acme/keys/a1', 'keys:1');
    const terminal = cli.inTerminal(['ops', 'watch', '--team', 'keys'], { columns: 100, env: env() });
    await terminal.until(/keys:1 +running[^]*Press \? for the keys, q to quit\./);
    terminal.type('j');
    await terminal.until(/> +keys:1/);
    terminal.type('p');
    await terminal.until('keys:1 is paused.');
    expect(await stateOf('keys:1')).toBe('paused');
    terminal.type('r');
    await terminal.until('keys:1 is running.');
    terminal.type('t');
    await terminal.until('Terminate keys:1 of acme/keys/a1? Press y;');
    terminal.type('y');
    await terminal.until('keys:1 is terminated.');
    await eventually(async () => expect(await stateOf('keys:1')).toBe('terminated'));
    terminal.type('q');
    expect(await terminal.ended).toBe(0);
  });

  test('--state shows operations in one state alone, in a list and live', async () => {
    await begun('acme/states/a1', 'goes:1');
    await begun('acme/states/a1', 'done:1');
    await begun('acme/states/a1', 'held:1');
    await svc('ops complete done:1');
    await svc('ops pause held:1');
    const listed = async (state: string) =>
      (await svc(`ops ls --team states --no-headers --columns operation --state ${state}`)).stdout;
    expect(await listed('completed')).toBe('done:1\n');
    expect(await listed('running')).toBe('goes:1\n');
    expect(await listed('failed')).toBe('');
    const terminal = cli.inTerminal(['ops', 'watch', '--team', 'states', '--state', 'paused'], { env: env() });
    await terminal.until(/: 1 paused[^]*held:1[^]*q to quit/);
    expect(terminal.shown()).not.toMatch(/goes:1|done:1/);
    terminal.type('q');
    expect(await terminal.ended).toBe(0);
  });
});

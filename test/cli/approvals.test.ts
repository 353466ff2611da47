/** `svc approvals`: what agents ask people for, decided from a terminal. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { back, emptyInbox, type InboxState, pictureOf, press, withApprovals } from '../../src/cli/commands/inbox.ts';
import { keysIn } from '../../src/cli/terminal/keys.ts';
import { type CliHome, createCliHome } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { LOAD_AGENT, LOAD_TOKEN, registerLoadAgent } from '../support/load.ts';
import { policyFile } from '../support/policies.ts';

const POLICY = `
name: p
scope: global
rules:
  - { id: ask, actions: [pay], effect: require_approval, reason: money leaves }
  - { id: hidden, actions: [look], effect: allow, obligations: [{ id: hide, type: redact, paths: [result.iban] }] }
  - { id: two, actions: [wire], effect: require_approval, approval: { min: 2 } }
`;

describe('keys', () => {
  test('are read one by one; what is pasted presses none', () => {
    expect(keysIn('a\u001b[A\u001bOB\r\u007f').map((key) => ('text' in key ? key.text : key.name))).toEqual([
      'a',
      'up',
      'down',
      'enter',
      'backspace',
    ]);
    expect(keysIn('\u001b').map(({ name }) => name)).toEqual(['escape']);
    const pasted = keysIn('\u001b[200~ok\ra\u0003\u001b[201~');
    expect(pasted.map((key) => ('text' in key ? key.text : key.name)).join('')).toBe('ok a ');
  });
});

describe('the inbox', () => {
  const approval = (id: string, fields: object = {}) => ({
    id: `${id}0000000-0000`,
    state: 'pending',
    agent: { org_id: 'acme', team_id: 'pay', agent_id: id },
    action: 'pay',
    resource: 'invoice',
    attributes: {},
    expires_at: `2026-01-01T00:0${id === 'a' ? 1 : 2}:00Z`,
    frozen_at: null,
    decisions: [],
    ...fields,
  });
  const typed = (state: InboxState, ...chunks: string[]) => {
    let pressed: ReturnType<typeof press> = { state };
    for (const key of chunks.flatMap(keysIn)) pressed = press(pressed.state, key);
    return pressed;
  };
  const two = withApprovals(emptyInbox, [approval('b'), approval('a')]);
  const shownIn = (state: InboxState, size = { rows: 40, columns: 80 }) => pictureOf('local', state, size).join('\n');

  test('decides after a reason, the end of its line and one key', () => {
    expect(typed(two, '\rseen\ra').decides).toEqual({ id: approval('a').id, verb: 'approve', reason: 'seen' });
    expect(typed(two, 'j\rseen\u007fm\rd').decides).toEqual({ id: approval('b').id, verb: 'deny', reason: 'seem' });
  });

  test.each([
    ['a key before the reason', 'a'],
    ['no reason', '\r\ra'],
    ['a blank reason', '\r  \ra'],
    ['another key', '\rseen\rx'],
    ['escape in the reason', '\rseen\u001ba'],
    ['escape at the end', '\rseen\r\u001ba'],
    ['a paste with line breaks', '\r\u001b[200~seen\ra\u001b[201~'],
    ['the key of the next decision, while one is sent', '\rseen\raa'],
  ])('decides nothing by %s', (_, keys) => {
    expect(typed(two, keys).decides).toBeUndefined();
  });

  test('decides what is on the screen, whatever comes and goes meanwhile', () => {
    const deciding = typed(two, '\rseen\r').state;
    const changed = withApprovals(deciding, [approval('b'), approval('c')]);
    expect(shownIn(changed)).toContain(approval('a').id);
    expect(typed(changed, 'a').decides?.id).toBe(approval('a').id);
    const before = typed(two, 'j').state;
    expect(withApprovals(before, [approval('a'), approval('b'), approval('c')]).selected).toBe(approval('b').id);
    expect(withApprovals(before, [approval('a')]).selected).toBe(approval('a').id);
    expect(shownIn(withApprovals(back(before, ''), []))).toContain('nothing waits');
  });

  test('shows whole arguments or says that there is more, and drives no terminal', () => {
    const evil = withApprovals(emptyInbox, [
      approval('a', { resource: '\u001b[2Jgone\u202e', attributes: { '\u001b]0;x\u0007': 'y'.repeat(200) } }),
    ]);
    const text = shownIn(evil);
    expect(text).not.toMatch(/\u001b\[2J|\u001b\]|\u0007|\u202e/);
    expect(text.replaceAll(/[^y]/g, '').length).toBeGreaterThanOrEqual(200);
    const small = pictureOf('local', evil, { rows: 16, columns: 40 });
    expect(small.length).toBe(16);
    expect(small.join('\n')).toContain('There is more: see svc approvals show');
  });
});

describe('svc approvals', () => {
  let gateway: GatewayHere;
  let cli: CliHome;
  let asked = 0;

  beforeAll(async () => {
    gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: policyFile(POLICY, afterAll).path } });
    await registerLoadAgent(gateway);
    cli = createCliHome();
  });
  afterAll(async () => {
    await gateway?.stop();
    cli?.remove();
  });

  const env = () => ({ SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY });
  const svc = (...args: string[]) => cli.run(['approvals', ...args], { env: env() });
  async function ask(action = 'pay', attributes: object = {}): Promise<string> {
    asked += 1;
    const { body } = await gateway.call(
      'POST',
      '/svc.governance.v1.PolicyService/CheckAction',
      {
        agent: LOAD_AGENT,
        credentialToken: LOAD_TOKEN,
        traceId: 'cli',
        spanId: `${asked}`,
        action,
        resource: `invoice-${asked}`,
        attributes,
      },
      null,
    );
    return body.approvalId;
  }
  const stateOf = async (id: string) => (await gateway.call('GET', `/api/v1/approvals/${id}`)).body.approval;

  test('lists, shows and decides by short ids', async () => {
    expect(await svc('ls')).toEqual({ status: 0, stdout: '', stderr: 'Nothing waits for an approval.\n' });
    const [yes, no] = [await ask('pay', { to: 'bob', api_key: 'sk-1' }), await ask()];
    const { stdout } = await svc('ls');
    expect(stdout).toMatch(/^ID +STATE +AGENT +ACTION +RESOURCE +EXPIRES\n/);
    expect(stdout).toContain(`\n${yes.slice(0, 8)}  pending  ${LOAD_AGENT.orgId}/`);
    const narrow = cli.inTerminal(['approvals', 'ls'], { columns: 60, env: { ...env(), NO_COLOR: '1' } });
    await narrow.ended;
    expect(narrow.shown()).toMatch(/ID +AGENT +ACTION +RESOURCE +EXPIRES/);
    expect(narrow.shown()).toContain(`${yes.slice(0, 8)}  acme/search/crawler  pay     invoice-1  `);
    const shown = await svc('show', yes.slice(0, 8));
    expect(shown.stdout).toContain(`approval   ${yes} (pending)\n`);
    expect(shown.stdout).toContain((await stateOf(yes)).digest);
    expect(shown.stdout).toContain('reason     money leaves (rule ask of policy p)\n');
    expect(shown.stdout).toContain('arguments\n  {\n    "to": "bob",\n    "api_key": "[redacted]"\n  }\n');
    expect(await svc('approve', yes.slice(0, 8), '--reason', 'agreed')).toEqual({
      status: 0,
      stdout: `Approval ${yes} is approved.\n`,
      stderr: '',
    });
    const denied = await svc('deny', no, '--reason', 'too late', '-o', 'json');
    expect(JSON.parse(denied.stdout).approval).toMatchObject({ state: 'denied', decisions: [{ reason: 'too late' }] });
    expect((await svc('ls', '--state', 'denied')).stdout).toContain(no.slice(0, 8));
    expect(JSON.parse((await svc('ls', '--all', '-o', 'json')).stdout).approvals).toHaveLength(2);
    expect((await svc('show', no, '-o', 'yaml')).stdout).toMatch(/^approval:\n {2}id: /);
  });

  test('svc check says pending with the approval, and what an allow obliges to', async () => {
    const agent = `${LOAD_AGENT.orgId}/${LOAD_AGENT.teamId}/${LOAD_AGENT.agentId}`;
    const check = (...args: string[]) =>
      cli.run(['check', '--agent', agent, ...args], { env: { ...env(), SVC_CLI_AGENT_TOKEN: LOAD_TOKEN } });
    const pending = await check('--action', 'pay', '--resource', 'from-check', '--op', 'c:1');
    expect(pending.status).toBe(3);
    expect(pending.stdout).toMatch(
      /^pending {2}money leaves \(rule ask of policy p\) {2}\(c:1\)\nApproval (\S+) waits for people: svc approvals show \S{8}\n$/,
    );
    const { approval_id: id, ...rest } = JSON.parse(
      (await check('--action', 'pay', '--resource', 'from-check', '--op', 'c:2', '-o', 'json')).stdout,
    );
    expect(rest).toMatchObject({ decision: 'pending', cause: null, op_state: 'pending' });
    await svc('deny', id, '--reason', 'over');
    expect(await check('--action', 'look')).toMatchObject({ status: 3, stdout: expect.stringMatching(/^deny .*hide/) });
    const allowed = await check('--action', 'look', '--supports', 'redact');
    expect(allowed.status).toBe(0);
    expect(allowed.stdout).toContain('\nmust redact {"paths":["result.iban"]} (obligation hide)\n');
  });

  test('says how many approvers are missing', async () => {
    const id = await ask('wire');
    expect((await svc('approve', id, '--reason', 'first')).stdout).toBe(
      `Noted: approval ${id} has 1 of 2 approvers.\n`,
    );
    await svc('deny', id, '--reason', 'over');
  });

  test('refuses with status 1, or 2 where the command line is wrong', async () => {
    const id = await ask();
    await svc('deny', id, '--reason', 'no');
    expect(await svc('approve', id, '--reason', 'yes')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('denied'),
    });
    expect((await svc('show', 'nothing-like-it')).status).toBe(1);
    expect((await svc('approve', id)).status).toBe(2);
    expect((await svc('ls', '--state', 'maybe')).status).toBe(2);
  });

  test('says what has become of one that is over, by its short id', async () => {
    const id = await ask();
    await svc('deny', id.slice(0, 8), '--reason', 'no');
    expect(await svc('approve', id.slice(0, 8), '--reason', 'yes')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(`cannot approve approval ${id}: it is denied`),
    });
    const approved = await ask();
    await svc('approve', approved.slice(0, 8), '--reason', 'yes');
    expect(await svc('deny', approved.slice(0, 8), '--reason', 'no')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining(`cannot deny approval ${approved}: it is approved`),
    });
    for (const [decided, state] of [
      [id, 'denied'],
      [approved, 'approved'],
    ] as const)
      expect(await svc('show', decided.slice(0, 8))).toMatchObject({
        status: 0,
        stdout: expect.stringContaining(`approval   ${decided} (${state})\n`),
      });
  });

  test('watch prints what is decided before it looks again, and nothing older', async () => {
    const older = await ask();
    await svc('deny', older, '--reason', 'no');
    const watching = cli.inTerminal(['approvals', 'watch', '-o', 'json'], { env: env(), columns: 2_000 });
    const waiting = await ask();
    await watching.until(waiting);
    const ids = await Promise.all(Array.from({ length: 60 }, () => ask()));
    for (const id of ids) await gateway.call('POST', `/api/v1/approvals/${id}/deny`, { reason: 'at once' });
    for (const id of ids) await watching.until(id);
    expect(watching.shown()).not.toContain(older);
    for (const id of ids) expect(watching.shown().split(`"id":"${id}"`)).toHaveLength(2);
    watching.type('\u0003');
    await watching.ended;
    await svc('deny', waiting, '--reason', 'over');
  });

  test('watch prints each request once where there is no terminal', async () => {
    const watching = cli.inTerminal(['approvals', 'watch', '-o', 'json'], { env: env(), columns: 2_000 });
    const id = await ask();
    await watching.until(id);
    const later = await ask();
    await watching.until(later);
    expect(watching.shown().split(`"id":"${id}"`)).toHaveLength(2);
    watching.type('\u0003');
    expect(await watching.ended).toBe(0);
    for (const each of [id, later]) await svc('deny', each, '--reason', 'over');
  });

  test('watch is an inbox on a terminal: arguments, a reason, and one key', async () => {
    const id = await ask('pay', { to: 'mallory' });
    const inbox = cli.inTerminal(['approvals', 'watch'], { env: env(), rows: 40 });
    await inbox.until('1 request to decide');
    await inbox.until('"to": "mallory"');
    await inbox.until((await stateOf(id)).digest);
    const next = await ask('pay', { to: 'carol' });
    await inbox.until('2 requests to decide');
    inbox.type('\r');
    await inbox.until('Reason: ');
    inbox.type('checked with bob');
    await inbox.until('Reason: checked with bob');
    inbox.type('\r');
    await inbox.until('Press a to approve, d to deny:');
    inbox.type('a');
    await inbox.until(`Approval ${id} is approved.`);
    expect(await stateOf(id)).toMatchObject({ state: 'approved', decisions: [{ reason: 'checked with bob' }] });
    // Decided elsewhere: it leaves the list by itself.
    await svc('deny', next, '--reason', 'no');
    await inbox.until('nothing waits for an approval');
    inbox.type('q');
    expect(await inbox.ended).toBe(0);
    // The screen and the keyboard are given back.
    await eventually(() => expect(inbox.shown()).toMatch(/\u001b\[\?2004l[\s\S]*\u001b\[\?1049l/));
  });
});

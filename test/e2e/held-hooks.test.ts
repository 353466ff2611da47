/** Hooks whose answer is held back, by agents that send much and leave (docs/hooks.md). */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';

const POLICY = `
name: held
scope: global
rules:
  - { id: ask, actions: ["file.*"], resources: ["/rel/*"], effect: require_approval, reason: ask first }
`;
const CONTENT = 'x'.repeat(980_000);
const tokenOf = (org: string): string => `token-of-the-agent-of-${org}-0123456789`;

let gateway: TestGateway;
let files = 0;

/** A write that people have to approve. Its content is kept, because an obligation might change it. */
function write(org: string) {
  const controller = new AbortController();
  const held = { answer: undefined as any, leave: () => controller.abort() };
  files += 1;
  const answered = fetch(`${gateway.url}/api/v1/hooks/claude-code`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${tokenOf(org)}`,
      'x-svc-hook-timeout': '86400',
    },
    body: JSON.stringify({
      session_id: 's',
      cwd: '/rel',
      hook_event_name: 'PreToolUse',
      tool_name: 'Write',
      tool_use_id: `toolu_${files}`,
      tool_input: { file_path: `/rel/${files}`, content: CONTENT },
    }),
    signal: controller.signal,
  });
  void answered.then(async (response) => (held.answer = await response.json())).catch(() => undefined);
  return held;
}
const many = (count: number, org: string) => Array.from({ length: count }, () => write(org));
const answersOf = (calls: readonly { readonly answer: any }[]) =>
  calls.flatMap(({ answer }) => answer?.hookSpecificOutput?.permissionDecision ?? []);

describe('held hooks', () => {
  beforeAll(async () => {
    const folder = mkdtempSync(join(inject('scratch'), 'held-'));
    writeFileSync(join(folder, 'held.yaml'), POLICY);
    const env = { SVC_POLICY_PATH: folder, SVC_IO_THREADS: '0', NODE_OPTIONS: '--max-old-space-size=128' };
    gateway = await startTestGateway({ env });
    for (const org_id of ['acme', 'globex']) {
      const agent = { org_id, team_id: 'dev', agent_id: 'coder' };
      await gateway.call('POST', '/api/v1/agents', { agent, credential_token: tokenOf(org_id) });
    }
  });
  afterAll(() => gateway?.stop('SIGKILL'));

  test('keep at most so many bytes of an org, and leave room for others', async () => {
    const calls = many(20, 'acme');
    await eventually(() => expect(answersOf(calls)).toEqual(Array(12).fill('deny')));
    const other = write('globex');
    await eventually(async () => {
      const { approvals } = (await gateway.call('GET', '/api/v1/approvals?org_id=globex')).body;
      expect(approvals.length).toBe(1);
    });
    expect([other.answer, answersOf(calls).length]).toEqual([undefined, 12]);
    for (const { leave } of [...calls, other]) leave();
  });

  test('end with their callers, so that memory does not grow with those who left', async () => {
    for (let round = 0; round < 12; round += 1) {
      const calls = many(25, 'acme');
      // All but those that are held have an answer.
      await eventually(() => expect(answersOf(calls).length).toBeGreaterThanOrEqual(17));
      for (const { leave } of calls) leave();
    }
    const last = await eventuallyHeld();
    expect((await gateway.call('GET', '/healthz')).status).toBe(200);
    last.leave();
  });

  /** Waits for a call that finds a place again. */
  async function eventuallyHeld() {
    let held = write('acme');
    await eventually(async () => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      if (held.answer !== undefined) held = write('acme');
      expect(held.answer).toBeUndefined();
      await new Promise((resolve) => setTimeout(resolve, 300));
      expect(held.answer).toBeUndefined();
    });
    return held;
  }
});

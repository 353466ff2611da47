/** The receivers printed in docs/webhooks.md verify the calls that the gateway makes. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WEBHOOK_EVENTS } from '../../src/core/webhooks/webhook.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { sendCall } from '../../src/webhooks/sender.ts';
import { type Received, startReceiver } from '../support/receiver.ts';

const SECRET = `whsec_${Buffer.from('a key of thirty-two bytes, or so').toString('base64')}`;
const text = readFileSync(join(PACKAGE_ROOT, 'docs', 'webhooks.md'), 'utf8');
const printed = (language: string): string =>
  new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(text)?.[1] ?? expect.fail(`there is no ${language}`);

const folder = mkdtempSync(join(tmpdir(), 'svc-verify-'));
const calls: Record<string, Received> = {};

const RUN = {
  js: {
    command: [process.execPath, 'verify.mjs'],
    file: 'verify.mjs',
    main: `import { readFileSync } from 'node:fs';
for (const { secret, headers, body } of JSON.parse(readFileSync(0, 'utf8')))
  console.log(verify(secret, headers, body) ? 'verified' : 'refused');`,
  },
  python: {
    command: ['python3', 'verify.py'],
    file: 'verify.py',
    main: `import json, sys
for call in json.load(sys.stdin):
    print("verified" if verify(call["secret"], call["headers"], call["body"]) else "refused")`,
  },
};

describe('docs/webhooks.md', () => {
  beforeAll(async () => {
    const receiver = await startReceiver();
    const options = { isPrivateAllowed: true, version: '1', resolve: async () => [] };
    for (const [name, nowMs] of [['fresh', Date.now()] as const, ['old', Date.now() - 3_600_000] as const]) {
      const call = { url: receiver.url, secret: SECRET, id: `msg_${name}`, body: '{"data":"é"}' };
      expect(await sendCall(call, { ...options, nowMs: () => nowMs })).toEqual({ isDelivered: true });
      calls[name] = receiver.received.at(-1)!;
    }
    await receiver.close();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.each(['js', 'python'] as const)('verifies a call in %s, and nothing else', (language) => {
    const { command, file, main } = RUN[language];
    writeFileSync(join(folder, file), `${printed(language)}\n${main}\n`);
    const { fresh, old } = calls as { fresh: Received; old: Received };
    const presented: readonly (readonly [Received, string?])[] = [
      [fresh],
      [{ ...fresh, signature: `v1,AAAA ${fresh.signature}` }],
      [{ ...fresh, body: '{}' }],
      [{ ...fresh, id: 'msg_other' }],
      [fresh, 'whsec_AAAA'],
      [old],
    ];
    const input = presented.map(([{ id, timestamp, signature, body }, secret = SECRET]) => ({
      secret,
      headers: { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature },
      body,
    }));
    const [program, ...args] = command as [string, ...string[]];
    const run = spawnSync(program, args, { cwd: folder, input: JSON.stringify(input), encoding: 'utf8' });
    expect(run.stderr).toBe('');
    expect(run.stdout.trim().split('\n')).toEqual(['verified', 'verified', 'refused', 'refused', 'refused', 'refused']);
  });

  test('names each event once in its table', () => {
    const named = [...text.matchAll(/^\| (`[^|]*`) \|/gm)].flatMap(([, cell]) =>
      cell!.match(/[a-z_]+\.[a-z_]+|violation/g),
    );
    expect([...named].sort()).toEqual([...WEBHOOK_EVENTS].sort());
  });
});

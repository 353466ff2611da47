import { MessageChannel } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import type { Principal } from '../../src/core/scope.ts';
import { decodeToMain, encodeToIo } from '../../src/threads/codec.ts';
import { IoLink } from '../../src/threads/io-link.ts';
import type { IoToMain } from '../../src/threads/protocol.ts';
import { eventually } from '../support/eventually.ts';
import { checkOf } from '../support/governor.ts';

/** A link with 100 places, and the main thread played by the test: it answers when it is told to. */
function open() {
  const main = new MessageChannel();
  const audit = new MessageChannel();
  const link = new IoLink(main.port1, audit.port1, { maxPending: 100, onAuditFailure: 'deny', onMessage: () => undefined });
  const received: IoToMain[] = [];
  main.port2.on('message', (bytes: Uint8Array) => received.push(...decodeToMain(bytes)));
  onTestFinished(() => { for (const port of [main.port1, audit.port1]) port.close(); });
  return {
    link,
    /** Asks and answers how many of them are refused at once. */
    refusedOf: async (count: number, ask: () => Promise<{ readonly reply: unknown }>): Promise<number> => {
      let refused = 0;
      for (let each = 0; each < count; each += 1) void ask().then(({ reply }) => { if (JSON.stringify(reply).includes('overloaded')) refused += 1; });
      await new Promise((resolve) => setImmediate(resolve));
      return refused;
    },
    answerAll: async () => {
      await eventually(() => expect(received.length).toBe(link.pending));
      const replies = received.splice(0).map((message) => ({ type: 'command-reply', id: (message as { id: number }).id, reply: { ok: true, value: undefined }, auditIndex: -1 }) as never);
      main.port2.postMessage(encodeToIo(replies));
      await eventually(() => expect(link.pending).toBe(0));
    },
  };
}

const agentOf = (orgId: string) => ({ orgId, teamId: 'search', agentId: 'crawler' });
const check = (orgId: string) => checkOf(agentOf(orgId), 't:s');
const bound: Principal = { subject: 'key:acme', scopes: ['write'], orgId: 'acme' };
const unbound: Principal = { subject: 'key:all', scopes: ['write'], orgId: null };

test('an org that asks for ever more gets half of the places, and others find theirs, until its answers have come', async () => {
  const { link, refusedOf, answerAll } = open();
  for (const round of ['first', 'second']) {
    expect([round, await refusedOf(1_000, () => link.ask<'check'>(check('acme')))]).toEqual([round, 950]);
    expect(await refusedOf(1, () => link.ask<'list-agents'>({ type: 'list-agents', principal: bound, orgId: undefined, perPage: 1, cursor: undefined }))).toBe(1);
    expect(await refusedOf(30, () => link.ask<'check'>(check('globex')))).toBe(5);
    await answerAll();
  }
});

test('a credential bound to no org takes the places that there are, and no more', async () => {
  const { link, refusedOf } = open();
  expect(await refusedOf(1_000, () => link.ask<'check'>({ ...check('acme'), principal: unbound }))).toBe(900);
});

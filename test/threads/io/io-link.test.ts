import { MessageChannel } from 'node:worker_threads';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { SecretDigest } from '../../../src/core/base/ids.ts';
import type { Principal } from '../../../src/core/identity/roles.ts';
import { COUNTERS_BYTES } from '../../../src/threads/audit/audit-counters.ts';
import { decodeToMain, encodeToIo } from '../../../src/threads/codec.ts';
import { channelOver } from '../../../src/threads/io/io-channel.ts';
import { IoLink } from '../../../src/threads/io/io-link.ts';
import type { IoToMain } from '../../../src/threads/protocol.ts';
import { eventually } from '../../support/eventually.ts';
import { checkOf, digestOf } from '../../support/governor.ts';

/** A link with 100 places, and the main thread played by the test: it answers when it is told to. */
function open() {
  const main = new MessageChannel();
  const link = new IoLink(channelOver(main.port1, new SharedArrayBuffer(COUNTERS_BYTES)), {
    maxPending: 100,
    onMessage: () => undefined,
  });
  const received: IoToMain[] = [];
  main.port2.on('message', (bytes: Uint8Array) => received.push(...decodeToMain(bytes)));
  onTestFinished(() => {
    main.port1.close();
  });
  return {
    link,
    /** Asks and answers how many of them are refused at once. */
    refusedOf: async (count: number, ask: () => Promise<{ readonly reply: unknown }>): Promise<number> => {
      let refused = 0;
      for (let each = 0; each < count; each += 1)
        void ask().then(({ reply }) => {
          if (JSON.stringify(reply).includes('overloaded')) refused += 1;
        });
      await new Promise((resolve) => setImmediate(resolve));
      return refused;
    },
    /** Checks are allowed, but to the wrong credentials among them. */
    answerAll: async () => {
      await eventually(() => expect(received.length).toBe(link.pending));
      const replies = received.splice(0).map(
        (message) =>
          ({
            type: 'command-reply',
            id: (message as { id: number }).id,
            reply: { ok: true, value: answerTo(message) },
            auditIndex: -1,
          }) as never,
      );
      main.port2.postMessage(encodeToIo(replies));
      await eventually(() => expect(link.pending).toBe(0));
    },
  };
}

function answerTo(message: IoToMain) {
  if (message.type !== 'command' || message.command.type !== 'check') return undefined;
  const isIts = message.command.credential === digestOf(message.command.agent);
  return {
    decision: isIts ? 'allow' : 'deny',
    reason: '',
    policy: undefined,
    ruleId: undefined,
    cause: undefined,
    exceeded: undefined,
    opState: isIts ? 'running' : undefined,
  };
}

const agentOf = (orgId: string) => ({ orgId, teamId: 'search', agentId: 'crawler' });
const check = (orgId: string) => checkOf(agentOf(orgId), 't:s');
const bound: Principal = { subject: 'key:acme', scopes: ['write'], orgId: 'acme' };
const unbound: Principal = { subject: 'key:all', scopes: ['write'], orgId: null };

describe('io link', () => {
  test('an org that asks for ever more gets half of the places', async () => {
    const { link, refusedOf, answerAll } = open();
    for (const orgId of ['acme', 'globex']) {
      void link.ask(check(orgId));
      await answerAll();
    }
    for (const round of ['first', 'second']) {
      expect({ round, refused: await refusedOf(1_000, () => link.ask(check('acme'))) }).toEqual({
        round,
        refused: 950,
      });
      expect(
        await refusedOf(1, () =>
          link.ask({ type: 'list-agents', principal: bound, orgId: undefined, perPage: 1, cursor: undefined }),
        ),
      ).toBe(1);
      expect(await refusedOf(30, () => link.ask(check('globex')))).toBe(5);
      await answerAll();
    }
  });

  test('a credential bound to no org may take all places and no more', async () => {
    const { link, refusedOf } = open();
    expect(await refusedOf(1_000, () => link.ask({ ...check('acme'), principal: unbound }))).toBe(900);
  });

  test('a caller claiming an org without its credential takes no place of that org', async () => {
    const { link, refusedOf, answerAll } = open();
    void link.ask(check('acme'));
    await answerAll();
    for (const credential of [undefined, 'of nobody' as SecretDigest]) {
      expect(await refusedOf(1_000, () => link.ask({ ...check('acme'), credential }))).toBe(950);
      expect(await refusedOf(25, () => link.ask(check('acme')))).toBe(0);
      await answerAll();
    }
  });

  test('unknown bearers leave places to known agents and to unknown ones', async () => {
    const { link, refusedOf, answerAll } = open();
    void link.ask(check('acme'));
    await answerAll();
    expect(
      await refusedOf(1_000, async () => ({ reply: await link.call('authenticate', { bearer: 'anything' }) })),
    ).toBe(950);
    expect(await refusedOf(1_000, () => link.ask({ ...check('globex'), credential: undefined }))).toBe(975);
    expect(await refusedOf(25, () => link.ask(check('acme')))).toBe(0);
  });

  test('an agent using its credential for another org takes separate places', async () => {
    const { link, refusedOf, answerAll } = open();
    for (const orgId of ['acme', 'globex']) {
      void link.ask(check(orgId));
      await answerAll();
    }
    expect(await refusedOf(1_000, () => link.ask({ ...check('acme'), credential: digestOf(agentOf('globex')) }))).toBe(
      950,
    );
    expect(await refusedOf(1, () => link.ask(check('globex')))).toBe(1);
    expect(await refusedOf(25, () => link.ask(check('acme')))).toBe(0);
  });

  test("a credential refused while places are scarce counts as a stranger's", async () => {
    const { link, refusedOf, answerAll } = open();
    const credential = digestOf(agentOf('acme'));
    void link.ask(check('acme'));
    await answerAll();
    // Refused, as if the agent had been removed, at a time when places are scarce.
    expect(await refusedOf(30, () => link.ask({ ...check('globex'), credential }))).toBe(0);
    await answerAll();
    expect(await refusedOf(1_000, () => link.ask(check('acme')))).toBe(950);
    expect(
      await refusedOf(1, () =>
        link.ask({ type: 'list-agents', principal: bound, orgId: undefined, perPage: 1, cursor: undefined }),
      ),
    ).toBe(0);
  });

  test('when the queue is refused at the end, so is the rest of a started batch', async () => {
    const { link } = open();
    const refused = { reply: { ok: false, fault: { kind: 'shutting_down', retryAfterSecs: 1 } }, auditId: undefined };
    const batch = link.ask(check('acme')).then(async (first) => [first, await link.ask(check('acme'))]);
    link.refuseAll({ kind: 'shutting_down', retryAfterSecs: 1 });
    expect(await batch).toEqual([refused, refused]);
    expect(link.pending).toBe(0);
  });
});

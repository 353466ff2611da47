import { describe, expect, test } from 'vitest';
import { fail, ok } from '../../src/core/base/result.ts';
import type { Authenticator } from '../../src/credentials/authenticate.ts';
import { WsTickets } from '../../src/credentials/ws-tickets.ts';

const USED = {
  ok: false,
  fault: { kind: 'unauthenticated', detail: 'the ticket is invalid, expired or already used; request a new one' },
};

/** By the first letter of the bearer; others are bound to no org. */
const ORG_OF: Readonly<Record<string, string>> = { k: 'acme', g: 'globex' };

function scene() {
  let nowMs = 1_000;
  let revoke: (subject: string) => void = () => undefined;
  let beforeAnswer: (() => void) | undefined;
  const dead = new Set<string>();
  const authenticator: Authenticator = {
    authenticate: async (bearer) => {
      const isDead = dead.has(bearer);
      beforeAnswer?.();
      if (isDead) return fail({ kind: 'unauthenticated', detail: 'revoked' });
      return ok({
        principal: {
          subject: `key:${bearer}`,
          scopes: bearer === 'mute' ? [] : ['read'],
          orgId: ORG_OF[bearer[0]!] ?? null,
        },
        expiresAtMs: bearer === 'short' ? 6_000 : Infinity,
      });
    },
    onRevoked: (listener) => {
      revoke = listener;
    },
  };
  const tickets = new WsTickets({ authenticator, clock: { nowMs: () => nowMs } });
  return {
    tickets,
    advance: (ms: number) => {
      nowMs += ms;
    },
    revoke: (bearer: string) => {
      dead.add(bearer);
      revoke(`key:${bearer}`);
    },
    whileAsking: (step: () => void) => {
      beforeAnswer = () => {
        beforeAnswer = undefined;
        step();
      };
    },
    issue: async (bearer = 'k1') => {
      const issued = await tickets.issue(bearer);
      if (!issued.ok) throw new Error(issued.fault.kind);
      return issued.value.ticket;
    },
  };
}

describe('ws tickets', () => {
  test('a ticket opens one stream as its owner, for thirty seconds', async () => {
    const { tickets, advance, issue } = scene();
    const issued = await tickets.issue('k1');
    expect(issued).toEqual(ok({ ticket: expect.stringMatching(/^[\w-]{43}$/), expiresInSecs: 30 }));
    const second = await issue();
    expect(issued.ok && tickets.redeem(issued.value.ticket)).toMatchObject({
      ok: true,
      value: { principal: { subject: 'key:k1', scopes: ['read'], orgId: 'acme' } },
    });
    expect(issued.ok && tickets.redeem(issued.value.ticket)).toEqual(USED);
    advance(29_999);
    expect(tickets.redeem(second).ok).toBe(true);
    const third = await issue();
    advance(30_000);
    expect(tickets.redeem(third)).toEqual(USED);
    expect(tickets.size).toBe(0);
  });

  test('a ticket ends with its credential', async () => {
    const { tickets, advance, revoke, issue } = scene();
    const [revoked, kept, short] = [await issue('k1'), await issue('k2'), await issue('short')];
    revoke('k1');
    expect(tickets.redeem(revoked)).toEqual(USED);
    expect(tickets.redeem(kept).ok).toBe(true);
    advance(5_000);
    expect(tickets.redeem(short)).toEqual(USED);
  });

  test("a revocation ends a credential's remaining tickets, also after one was used", async () => {
    const { tickets, revoke, issue } = scene();
    const [used, left] = [await issue('k1'), await issue('k1')];
    expect(tickets.redeem(used).ok).toBe(true);
    revoke('k1');
    expect(tickets.redeem(left)).toEqual(USED);
  });

  test('used tickets take no room of unused ones', async () => {
    const { tickets, issue } = scene();
    const first = await issue('k1');
    for (let more = 0; more < 150; more += 1) expect(tickets.redeem(await issue('k1')).ok).toBe(true);
    expect(tickets.redeem(first).ok).toBe(true);
  });

  test('no ticket for a credential revoked while it is verified', async () => {
    const { tickets, revoke, whileAsking } = scene();
    whileAsking(() => revoke('k1'));
    expect(await tickets.issue('k1')).toEqual(fail({ kind: 'unauthenticated', detail: 'revoked' }));
  });

  test('a credential without read scope gets no ticket', async () => {
    const { tickets } = scene();
    expect(await tickets.issue('mute')).toEqual(fail({ kind: 'insufficient_scope', needed: 'read', held: [] }));
  });

  test("a credential's oldest tickets give way, and nobody uses up the room of all", async () => {
    const { tickets, advance, issue } = scene();
    const first = await issue('k1');
    for (let more = 0; more < 100; more += 1) await issue('k1');
    expect(tickets.size).toBe(100);
    expect(tickets.redeem(first)).toEqual(USED);
    for (let subject = 0; subject < 9_900; subject += 1) await issue(`s${subject}`);
    expect(await tickets.issue('late')).toEqual(
      fail({ kind: 'overloaded', retryAfterSecs: 5, what: 'the number of unused tickets' }),
    );
    advance(30_000); // none of them was used, and none can be any more
    await issue('late');
    expect(tickets.size).toBe(1);
  });

  test('an org holds at most half of the tickets with any number of keys', async () => {
    const { tickets, issue } = scene();
    const first = await issue('k');
    for (let key = 1; key < 5_000; key += 1) await issue(`k${key}`);
    expect(await tickets.issue('k-late')).toEqual(
      fail({ kind: 'overloaded', retryAfterSecs: 5, what: 'the number of unused tickets' }),
    );
    await issue('g1');
    expect(tickets.redeem(first).ok).toBe(true);
    await issue('k-late');
    expect((await tickets.issue('k-later')).ok).toBe(false); // one was used, one was given
  });

  test('an unknown ticket is refused', () => {
    const { tickets } = scene();
    for (const word of ['', 'x', 'x'.repeat(43), 'x'.repeat(100_000)]) expect(tickets.redeem(word)).toEqual(USED);
  });
});

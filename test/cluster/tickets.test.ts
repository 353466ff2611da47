/** Tickets of one gateway at another, whatever becomes of the messages. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { ClusterPeers } from '../../src/cluster/questions.ts';
import { SharedTickets } from '../../src/cluster/tickets.ts';
import type { SecretDigest } from '../../src/core/base/ids.ts';
import { fail, ok } from '../../src/core/base/result.ts';
import { FakeCluster, type FakeMember } from '../support/fake-cluster.ts';

const PRINCIPAL = { subject: 'key:k', scopes: ['read'], orgId: null } as const;
const NO_TICKET = { ok: false, fault: { kind: 'unauthenticated' } };

describe('a ticket of another gateway', () => {
  let cluster: FakeCluster;
  let members: FakeMember[];
  let issuer: SharedTickets;
  let other: SharedTickets;
  let revokeAtOther: (subject: string) => void;
  let steadyMs: number;

  function ticketsAt(member: FakeMember, onRevoked: (listener: (subject: string) => void) => void): SharedTickets {
    const { bus, membership, clock } = member;
    const good = new Set<string>();
    return new SharedTickets({
      own: {
        issue: async () => {
          const ticket = `secret${good.size}`;
          good.add(ticket);
          return ok({ ticket, expiresInSecs: 30 });
        },
        take: (digest) =>
          digest !== undefined && good.delete(digest)
            ? ok({ authenticated: { principal: PRINCIPAL, expiresAtMs: Infinity }, ageMs: 100 })
            : fail({ kind: 'unauthenticated', detail: 'used' }),
      },
      membership,
      peers: new ClusterPeers({
        bus,
        membership,
        clock,
        onError: (error) => {
          throw error;
        },
      }),
      digestOf: (secret) => (secret.startsWith('secret') ? (secret as SecretDigest) : undefined),
      onRevoked,
      steadyMs: () => steadyMs,
    });
  }
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] });
    cluster = new FakeCluster();
    members = ['one', 'two'].map((name) => cluster.join(name));
    steadyMs = 1_000_000;
    issuer = ticketsAt(members[0]!, () => undefined);
    other = ticketsAt(members[1]!, (listener) => {
      revokeAtOther = listener;
    });
  });
  afterEach(() => void vi.useRealTimers());

  const issue = async (): Promise<string> => {
    const issued = await issuer.issue('bearer');
    if (!issued.ok) throw new Error(issued.fault.kind);
    return issued.value.ticket;
  };
  const redeem = async (ticket: string) => {
    const redeemed = other.redeem(ticket);
    await cluster.settle();
    return redeemed;
  };

  test('is good once, at whichever of them', async () => {
    const [first, second] = [await issue(), await issue()];
    const good = ok({ principal: PRINCIPAL, expiresAtMs: Infinity });
    expect(await redeem(first)).toEqual(good);
    expect(await redeem(first)).toMatchObject(NO_TICKET);
    expect(await issuer.redeem(first)).toMatchObject(NO_TICKET);
    expect(await issuer.redeem(second)).toEqual(good);
    expect(await redeem(second)).toMatchObject(NO_TICKET);
  });

  test('admits one of several simultaneous uses', async () => {
    const ticket = await issue();
    const both = [other.redeem(ticket), other.redeem(ticket)];
    for (const sent of cluster.take()) {
      cluster.deliver(sent);
      cluster.deliver(sent); // twice
    }
    await cluster.settle();
    expect((await Promise.all(both)).map((each) => each.ok)).toEqual([true, false]);
  });

  test('is used up if the answer is lost, and the caller asks for a new one', async () => {
    const ticket = await issue();
    const redeemed = other.redeem(ticket);
    for (const sent of cluster.take()) cluster.deliver(sent);
    await vi.advanceTimersByTimeAsync(0);
    cluster.take();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await redeemed).toMatchObject({ fault: { kind: 'unreachable_gateway', gateway: 'one' } });
    expect(await redeem(ticket)).toMatchObject(NO_TICKET);
  });

  test('ends with its gateway, and with the lease of that', async () => {
    const ticket = await issue();
    members[0]!.membership.isLeased = false;
    expect(await redeem(ticket)).toMatchObject(NO_TICKET);
    members[0]!.membership.isLeased = true;
    cluster.retire('one');
    expect(await redeem(ticket)).toMatchObject(NO_TICKET);
  });

  test('fails after its owner was revoked here, before the other gateway knew', async () => {
    const early = await issue();
    revokeAtOther('key:k');
    expect(await redeem(early)).toMatchObject(NO_TICKET);
    steadyMs += 4_000;
    expect(await redeem(await issue())).toMatchObject(NO_TICKET);
    steadyMs += 2_000; // signed in again since
    expect((await redeem(await issue())).ok).toBe(true);
  });

  test('costs no message, or one of a few, if it was made up', async () => {
    const ticket = await issue();
    const home = ticket.slice(0, ticket.indexOf('.') + 1);
    for (const word of ['', '.', 'secret0', 'nobody.secret0', `${home}x`]) {
      expect(await other.redeem(word)).toMatchObject(NO_TICKET);
      expect(cluster.take()).toEqual([]);
    }
    const many = Array.from({ length: 201 }, (_, nth) => other.redeem(`${home}secret-${nth}`));
    expect(await many[200]).toMatchObject({ fault: { kind: 'overloaded' } });
    expect(cluster.waiting.length).toBe(200);
    await cluster.settle();
    for (const made of many.slice(0, 200)) expect(await made).toMatchObject(NO_TICKET);
  });
});

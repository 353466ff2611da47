/** Questions of a cluster's gateways about one another's audit logs. */
import { describe, expect, test } from 'vitest';
import { ClusterPeers } from '../../src/cluster/questions.ts';
import { shareLogs } from '../../src/cluster/shared-logs.ts';
import { ok } from '../../src/core/base/result.ts';
import type { LogRequest } from '../../src/use-cases/logs.ts';
import { FakeCluster } from '../support/fake-cluster.ts';

const ENTRIES = 300;
const PAGE: LogRequest = { filter: { actor: 'key:k' }, format: 'page', perPage: 1_000, cursor: undefined };

describe('the logs that gateways share', () => {
  /** Each has 300 entries of this many bytes. */
  function scene(bytes: number) {
    const cluster = new FakeCluster();
    const asked: [name: string, request: LogRequest, orgId: string | null][] = [];
    const shared = ['one', 'two'].map((name) => {
      const { bus, membership, clock } = cluster.join(name);
      const onError = (error: unknown): void => {
        throw error;
      };
      const peers = new ClusterPeers({ bus, membership, clock, onError });
      const read = async (request: LogRequest, orgId: string | null) => {
        asked.push([name, request, orgId]);
        const [, before] = /^before:(\d+)$/.exec(Buffer.from(request.cursor ?? '', 'base64url').toString()) ?? [];
        const first = before === undefined ? ENTRIES : Number(before) - 1;
        const count = Math.min(request.perPage, first);
        const lines = Array.from({ length: count }, (_, at) =>
          JSON.stringify({
            id: first - at,
            timestamp: String(first - at).padStart(3, '0'),
            name,
            fill: 'x'.repeat(bytes),
          }),
        );
        const next = count < first ? Buffer.from(`before:${first - count + 1}`).toString('base64url') : undefined;
        return ok({ text: Buffer.from(lines.join('\n')), next });
      };
      return shareLogs({ read }, membership, peers);
    });
    return { asked, cluster, one: shared[0]! };
  }

  test('are asked for with the filter of the caller, for the org of the caller', async () => {
    const { asked, cluster, one } = scene(1);
    const reading = one.read(PAGE, 'acme');
    await cluster.settle();
    const read = await reading;
    if (!read.ok) throw new Error(read.fault.kind);
    const { entries, incomplete } = JSON.parse(Buffer.from(read.value.text).toString());
    expect(entries.slice(0, 4).map(({ id, name }: { id: number; name: string }) => `${name} ${id}`)).toEqual([
      ...['one 300', 'two 300', 'one 299', 'two 299'],
    ]);
    expect(incomplete).toEqual([]);
    expect(asked.map(([name, { filter, perPage }, orgId]) => [name, filter, perPage, orgId])).toEqual([
      ['one', { actor: 'key:k' }, 1_000, 'acme'],
      ['two', { actor: 'key:k' }, 250, 'acme'],
    ]);
  });

  test('come in fewer entries at once where these are long, and all of them', async () => {
    const { asked, cluster, one } = scene(10_000);
    let cursor: string | undefined;
    const seen: string[] = [];
    do {
      const reading = one.read({ ...PAGE, cursor }, null);
      await cluster.settle();
      const read = await reading;
      if (!read.ok) throw new Error(read.fault.kind);
      for (const { name, id } of JSON.parse(Buffer.from(read.value.text).toString()).entries)
        seen.push(`${name} ${id}`);
      cursor = read.value.next;
    } while (cursor !== undefined);
    expect(asked.filter(([name]) => name === 'two').map(([, { perPage }]) => perPage)).toContain(32);
    expect([seen.length, new Set(seen).size]).toEqual([2 * ENTRIES, 2 * ENTRIES]);
  });
});

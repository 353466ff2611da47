import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { ADMIN_KEY, type TestGateway } from '../../support/gateway.ts';
import { openStream } from '../../support/stream.ts';

/** Views of all gateways of a cluster, at any of them: the audit logs and the live stream. */
export function describeShownTogether(gateways: () => readonly [TestGateway, TestGateway, TestGateway]): void {
  describe('show together', () => {
    const register = async (gateway: TestGateway, org_id: string, agent_id: string) => {
      const agent = { org_id, team_id: 'search', agent_id };
      expect((await gateway.call('POST', '/api/v1/agents', { agent })).status).toBe(201);
    };

    test('all records, merged by time, with a cursor that each of them takes', async () => {
      const all = gateways();
      for (let nth = 0; nth < 6; nth += 1) await register(all[nth % 3]!, 'logged', `a${nth}`);
      const seen: string[] = [];
      for (let cursor = '', at = 0; at < 10; at += 1) {
        const page = (await all[at % 3]!.call('GET', `/api/v1/logs?org_id=logged&per_page=2${cursor}`)).body;
        expect(page.incomplete).toEqual([]);
        for (const { gateway, lineage } of page.entries) seen.push(`${gateway} ${lineage.agent_id}`);
        if (page.next_cursor === null) break;
        cursor = `&cursor=${page.next_cursor}`;
      }
      expect(seen).toEqual(['three a5', 'two a4', 'one a3', 'three a2', 'two a1', 'one a0']);
      const refused = await all[0].call('GET', '/api/v1/logs?cursor=x');
      expect([refused.status, refused.body.code]).toEqual([400, 'invalid_argument']);
    });

    test('metrics for an operator, with labels that do not grow', async () => {
      const { body } = await gateways()[0].call('GET', '/metrics');
      const measured = (body as string).split('\n').filter((line) => /^svc_cluster_(?!exchange)/.test(line));
      expect(measured.map((line) => line.replace(/ \S+$/, '')).sort()).toEqual([
        'svc_cluster_barriers_unconfirmed_total',
        'svc_cluster_bus_connected',
        'svc_cluster_checks_parked',
        'svc_cluster_commands_passed_on_total',
        'svc_cluster_members{state="live"}',
        'svc_cluster_members{state="suspect"}',
        'svc_cluster_orders_waiting',
        'svc_cluster_stranded_usd',
      ]);
      expect(measured).toEqual(expect.arrayContaining(['svc_cluster_bus_connected 1']));
      expect(Number(/^svc_cluster_exchange_duration_seconds_count (\d+)$/m.exec(body)?.[1])).toBeGreaterThan(0);
      expect(Number(/^svc_cluster_commands_passed_on_total (\d+)$/m.exec(body)?.[1])).toBeGreaterThan(0);
    });

    test('an export of one log after the other', async () => {
      const exported = await fetch(`${gateways()[1].url}/api/v1/logs/export?org_id=logged`, {
        headers: { authorization: `Bearer ${ADMIN_KEY}` },
      });
      expect(exported.headers.get('svc-incomplete')).toBeNull();
      const entries = (await exported.text())
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { gateway: string; lineage: { agent_id: string } });
      expect(entries.map(({ gateway, lineage }) => `${gateway} ${lineage.agent_id}`)).toEqual([
        ...['two a4', 'two a1'],
        ...['one a3', 'one a0', 'three a5', 'three a2'],
      ]);
      const { body } = await gateways()[1].call('GET', '/api/v1/logs/export?format=csv&org_id=logged');
      const csv: string = body;
      const [head, ...rows] = csv.trimEnd().split('\r\n');
      expect(head).toMatch(/,prev_hash,hash,gateway$/);
      expect(rows.map((row) => /,[0-9a-f]{64},(\w+)$/.exec(row)?.[1])).toEqual([
        'two',
        'two',
        'one',
        'one',
        'three',
        'three',
      ]);
    });

    test('the events of all, in a stream that a ticket of another gateway opens once', async () => {
      const [one, two, three] = gateways();
      const { ticket } = (await one.call('POST', '/api/v1/auth/ws-ticket')).body;
      const query = `?org_id=seen&ticket=${ticket}`;
      const stream = await openStream(three, query, { bearer: null });
      onTestFinished(() => stream.close());
      for (const at of [one, two, three]) await expect(openStream(at, query, { bearer: null })).rejects.toThrow('401');
      let made = 0;
      const begin = async (at: TestGateway): Promise<{ op_id: string; op_home: string }> =>
        (
          await at.call('POST', '/api/v1/ops', {
            op_id: `seen:${(made += 1)}`,
            agent: { org_id: 'seen', team_id: 'search', agent_id: 'crawler' },
          })
        ).body;
      const shown = async (at: TestGateway): Promise<void> => {
        const { op_id, op_home } = await begin(at);
        const frame = await stream.next(({ payload }) => payload.op_id === op_id);
        expect([frame.event_type, frame.org_id, frame.payload.op_home]).toEqual(['ops_change', 'seen', op_home]);
      };
      // Until all of them know that somebody watches.
      for (const at of [one, two])
        await eventually(async () => {
          const { op_id } = await begin(at);
          await eventually(() => expect(stream.frames.map(({ payload }) => payload.op_id)).toContain(op_id), 2_000);
        });
      for (const at of [one, two, three]) await shown(at);
      await register(two, 'seen', 'newcomer');
      await register(one, 'unseen', 'newcomer');
      const halt = await two.call('POST', '/api/v1/halts', { scope: 'org:seen', reason: 'a test', mode: 'pause' });
      expect(halt.status).toBe(201);
      await stream.next(({ event_type }) => event_type === 'halt');
      await one.call('POST', `/api/v1/halts/${halt.body.halt.id}/release`, { reason: 'over' });
      await eventually(() => {
        const changes = stream.frames.filter(({ event_type }) => event_type === 'halt' || event_type === 'agent');
        expect(changes.map(({ event_type, payload }) => `${event_type} ${payload.change}`)).toEqual([
          'agent registered',
          'halt created',
          'halt released',
        ]);
      });
      for (const at of [one, two, three]) await shown(at); // whatever else comes would have come by now
      const kinds = stream.frames.map(({ event_type }) => event_type).filter((kind) => kind !== 'ops_change');
      expect(kinds).toEqual(['agent', 'halt', 'halt']);
      const ids = stream.frames.map(({ id }) => id);
      expect(new Set(ids).size).toBe(ids.length);
    });
  });
}

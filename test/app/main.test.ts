import { getActiveResourcesInfo } from 'node:process';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { startGatewayHere } from '../support/gateway-here.ts';

/** Resources that keep the process alive, without the connections of clients, and who listens to the process. */
const inUse = (): Readonly<Record<string, number>> => {
  const used: Record<string, number> = {};
  for (const kind of getActiveResourcesInfo())
    if (!/^TCP(SocketWrap|WRAP)$/.test(kind)) used[kind] = (used[kind] ?? 0) + 1;
  for (const event of process.eventNames()) used[`on ${String(event)}`] = process.listenerCount(event);
  return used;
};

describe('gateways of one process', () => {
  test('are apart, and leave nothing in it when they have stopped', async () => {
    const before = inUse();
    const [one, other] = await Promise.all([startGatewayHere(), startGatewayHere()]);
    const agent = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
    expect(await one.call('POST', '/api/v1/agents', { agent })).toMatchObject({ status: 201 });
    const agentsAt = async ({ call }: typeof one) => (await call('GET', '/api/v1/agents')).body.agents;
    expect([await agentsAt(one), await agentsAt(other)]).toEqual([[expect.objectContaining(agent)], []]);
    await one.stop();
    expect(await agentsAt(other)).toEqual([]);
    const again = await startGatewayHere({
      env: { SVC_HTTP_ADDR: new URL(one.url).host, SVC_GRPC_ADDR: one.grpc },
    });
    expect(await agentsAt(again)).toEqual([]);
    await Promise.all([other.stop(), again.stop()]);
    await eventually(() =>
      expect(Object.entries(inUse()).filter(([name, count]) => count > (before[name] ?? 0))).toEqual([]),
    );
  });
});

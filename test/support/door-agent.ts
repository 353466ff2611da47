/** A registered agent at a real gateway, for the doors that take its token as a bearer. */
import type { ServingGateway } from './gateway.ts';

export type DoorAgent = { readonly name: string; readonly token: string };

export async function registerAgent(gateway: ServingGateway, name: string): Promise<DoorAgent> {
  const [org_id, team_id, agent_id] = name.split('/');
  const { status, body } = await gateway.call('POST', '/api/v1/agents', { agent: { org_id, team_id, agent_id } });
  if (status !== 201 && status !== 200) throw new Error(`registering ${name}: ${status}`);
  return { name, token: body.credential_token };
}

/** The newest entries of the log, newest first. */
export async function newestEntries(gateway: ServingGateway, count: number): Promise<any[]> {
  return (await gateway.call('GET', `/api/v1/logs?per_page=${count}`)).body.entries;
}

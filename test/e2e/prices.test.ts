import { mkdtempSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { auditEntries } from '../support/audit-log.ts';
import type { GatewayOptions } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { ALLOW_ALL, policyFile } from '../support/policies.ts';

const agent = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
const own = (usd: number) => `models: { "our-*": { input_mtok: ${usd}, output_mtok: 0 } }\n`;

async function start(env: GatewayOptions['env']): Promise<GatewayHere> {
  const { path } = policyFile(ALLOW_ALL);
  const gateway = await startGatewayHere({ env: { SVC_POLICY_PATH: path, ...env } });
  onTestFinished(async () => {
    await gateway.stop();
  });
  return gateway;
}

const use = (gateway: GatewayHere, more: object) =>
  gateway.call('POST', '/api/v1/usage', { agent, input_tokens: 1_000_000, output_tokens: 0, ...more });

describe('prices', () => {
  test('tokens are priced by the table, then by the file, which may change', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'svc-prices-')), 'prices.yaml');
    writeFileSync(path, own(2));
    const gateway = await start({ SVC_PRICES_PATH: path });
    expect((await use(gateway, { model: 'gpt-4o' })).body).toEqual({ status: 'ok', cost_usd: 2.5 });
    expect((await use(gateway, { model: 'our-model' })).body).toEqual({ status: 'ok', cost_usd: 2 });
    expect((await use(gateway, { model: 'theirs' })).body).toMatchObject({
      status: 400,
      code: 'unknown_model',
      field: 'model',
      detail: 'the price of model theirs is unknown; report cost_usd, or have it added to SVC_PRICES_PATH',
    });
    expect((await use(gateway, { model: 'gpt-4o', cost_usd: 1 })).status).toBe(400);
    writeFileSync(`${path}.new`, own(7));
    renameSync(`${path}.new`, path);
    await expect
      .poll(async () => (await gateway.call('GET', '/api/v1/prices?model=our-model')).body.input_mtok, {
        timeout: 20_000,
      })
      .toBe(7);
    writeFileSync(path, 'models: { m: 1 }\n');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect((await gateway.call('GET', '/api/v1/prices?model=our-model')).body).toEqual({
      model: 'our-model',
      provider: null,
      input_mtok: 7,
      output_mtok: 0,
      cache_read_mtok: null,
      cache_write_mtok: null,
      source: 'file',
    });
    const { body } = await gateway.call('GET', '/api/v1/budgets');
    expect(body.budgets[0].daily.spent_usd).toBe(4.5);
  });

  test('a completion with an unknown model leaves the operation running', async () => {
    const gateway = await start({});
    const check = { agent, traceId: 't', spanId: 's', action: 'llm.call', resource: 'x' };
    await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', check);
    const complete = (model: string) =>
      gateway.call('POST', '/api/v1/ops/t:s/complete', { model, input_tokens: 1_000_000, output_tokens: 0 });
    expect((await complete('theirs')).status).toBe(400);
    expect((await gateway.call('GET', '/api/v1/ops/t:s')).body.state).toBe('running');
    expect((await complete('gpt-4o')).body).toMatchObject({ state: 'completing', cost_usd: 2.5, spent_usd: 2.5 });
    const [entry] = auditEntries(gateway.dataDir).filter(({ event_type: type }) => type === 'OpCompleted');
    expect(entry?.payload).toMatchObject({ model: 'gpt-4o', input_tokens: 1_000_000, cost_usd: 2.5 });
  });

  test('an unknown model may cost what the dearest does', async () => {
    const gateway = await start({ SVC_UNKNOWN_MODEL: 'highest' });
    const { body } = await use(gateway, { model: 'theirs' });
    expect(body.status).toBe('ok');
    expect(body.cost_usd).toBeGreaterThanOrEqual(150);
  });

  test('a file with a mistake keeps the gateway from starting, and names its place', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'svc-prices-')), 'prices.yaml');
    writeFileSync(path, 'models:\n  m: { input_mtok: -1, output_mtok: 0 }\n');
    await expect(start({ SVC_PRICES_PATH: path })).rejects.toThrow(/prices\.yaml:2:20/);
  });
});

/** Approvals by people who sign in, and by the keys that they make (docs/spec.md, Approvals). */
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { startGatewayHere } from '../support/gateway-here.ts';
import { LOAD_AGENT, LOAD_TOKEN, registerLoadAgent } from '../support/load.ts';
import { policyFile } from '../support/policies.ts';
import { withPostgres } from '../support/postgres.ts';

const POLICY = `
name: p
scope: global
rules:
  - { id: two, actions: [two], effect: require_approval, approval: { min: 2 } }
  - { id: own, actions: [own], effect: require_approval }
  - { id: named, actions: [named], effect: require_approval, approval: { approvers: ["role:admin", "key:night-shift"] } }
`;
const newDatabase = withPostgres();
const PASSWORD = 'a horse that nobody corrects';

describe('approvers', () => {
  test('an account and the keys that it made are one approver', async () => {
    const gateway = await startGatewayHere({
      dataDir: mkdtempSync(join(inject('scratch'), 'approvers-')),
      env: {
        SVC_DATABASE_URL: await newDatabase(),
        SVC_ARGON2_MEMORY_KIB: '1024',
        SVC_POLICY_PATH: policyFile(POLICY).path,
      },
    });
    onTestFinished(async () => void (await gateway.stop()));
    await registerLoadAgent(gateway);
    const owner = { email: 'owner@example.com', password: PASSWORD };
    await gateway.call('POST', '/api/v1/auth/register', owner, null);
    const session = (await gateway.call('POST', '/api/v1/auth/login', owner, null)).body.access_token as string;
    const made = async (name: string, scopes: readonly string[], maker?: string) =>
      (await gateway.call('POST', '/api/v1/iam/api-keys', { name, scopes }, maker)).body.key as string;
    const hers = await made('hers', ['admin'], session);
    const other = await made('other', ['admin']);
    const ask = async (action: string, bearer: string | null) => {
      const asked = { agent: LOAD_AGENT, traceId: action, spanId: 's', action, resource: 'r' };
      const body = bearer === null ? { ...asked, credentialToken: LOAD_TOKEN } : asked;
      return (await gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', body, bearer)).body.approvalId;
    };
    const approve = async (id: string, bearer: string) => {
      const { body } = await gateway.call('POST', `/api/v1/approvals/${id}/approve`, { reason: 'ok' }, bearer);
      return body.approval?.state ?? body.code;
    };

    const two = await ask('two', null);
    expect([await approve(two, session), await approve(two, hers), await approve(two, other)]).toEqual([
      'pending',
      'pending',
      'approved',
    ]);
    const own = await ask('own', hers);
    expect([await approve(own, session), await approve(own, hers), await approve(own, other)]).toEqual([
      'own_request',
      'own_request',
      'approved',
    ]);
    const named = await ask('named', null);
    const forged = await made('other-shift', ['read'], other);
    expect([await approve(named, forged), await approve(named, hers)]).toEqual(['not_approver', 'not_approver']);
    expect(await approve(named, await made('night-shift', ['read'], session))).toBe('approved');
  });
});

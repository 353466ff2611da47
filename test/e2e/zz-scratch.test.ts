// @ts-nocheck
import { expect, test } from 'vitest';
import { startTestGateway } from '../support/gateway.ts';
import { openDashboard } from '../support/stream.ts';
import { connectAgent } from '../support/agent.ts';
import { eventually } from '../support/eventually.ts';
const PW = 'a horse that nobody corrects';
const log = (...a: unknown[]) => console.log(...a.map((x) => typeof x === 'string' ? x : JSON.stringify(x)));
test('scratch', async () => {
  const g = await startTestGateway({ env: { SVC_DATABASE_URL: 'embedded', SVC_ARGON2_MEMORY_KIB: '64', SVC_AUTH_OPEN_REGISTRATION: 'false' } });
  try {
    const key = async (more: object, as?: string) => (await g.call('POST', '/api/v1/iam/api-keys', { name: 't', scopes: ['admin'], ...more }, as as never)).body;
    const acme = await key({ org_id: 'acme' }); const globex = await key({ org_id: 'globex' });
    await g.call('POST', '/api/v1/auth/register', { email: 'owner@example.com', password: PW });
    const login = async (email: string) => { const r = await g.call('POST', '/api/v1/auth/login', { email, password: PW }, null); return { ...r.body, cookie: (r.headers.get('set-cookie') ?? '').split(';')[0], status: r.status }; };
    const invite = async (email: string, role: string, org_id: string | undefined, as: string) => { const r = await g.call('POST', '/api/v1/auth/invite', { email, role, ...(org_id === undefined ? {} : { org_id }) }, as); if (r.status !== 201) return r; return g.call('POST', '/api/v1/auth/invite/accept', { invite_token: r.body.invite_token, password: PW }, null); };
    const owner = await login('owner@example.com');
    for (const org of ['acme', 'globex']) for (const role of ['admin', 'developer', 'viewer']) { const r = await invite(`${role}@${org}.example`, role, org, owner.access_token); if (r.status !== 201) log('invite', org, role, r.status, r.body); }
    const aAdmin = await login('admin@acme.example');
    // weird ids
    for (const id of ['%00', 'x', '..', '%2e%2e', 'a%2Fb', '%ff', '-', '__proto__', '00000000-0000-0000-0000-000000000000', '%EF%BB%BF'])
      for (const p of [`/api/v1/accounts/${id}`, `/api/v1/ops/${id}`, `/api/v1/topology/team/${id}`, `/api/v1/topology/lineage/${id}`])
        { const r = await g.call('GET', p, undefined, aAdmin.access_token); if (![404, 400].includes(r.status) && !(r.status===200 && p.includes('topology'))) log('GET', p, r.status, r.body); }
    for (const id of ['%00', 'a%00b', '__proto__']) log('POST revoke', id, (await g.call('POST', `/api/v1/iam/api-keys/${id}/revoke`, undefined, acme.key)).status, (await g.call('POST', `/api/v1/accounts/${id}/role`, {role:'viewer'}, acme.key)).status);
    // org_id look-alikes with a bound key
    for (const o of ['', '-', 'ACME', 'acme ', 'acme.', 'acme%00', 'acme%2Fglobex', '%61cme', 'аcme', 'globex', 'acme&org_id=globex', '__proto__', 'constructor', 'null'])
      for (const p of ['ops', 'agents', 'logs', 'logs/export', 'budgets', 'topology/overview', 'topology/tree', 'topology/stats', 'iam/api-keys', 'accounts']) {
        const r = await g.call('GET', `/api/v1/${p}?org_id=${o.includes('%')||o.includes('&') ? o : encodeURIComponent(o)}`, undefined, acme.key);
        if (r.status !== 403) log(p, JSON.stringify(o), r.status, JSON.stringify(r.body).slice(0, 160));
      }
    // proto orgs
    for (const org of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      const k = await key({ org_id: org });
      const r = await g.call('POST', '/api/v1/agents', { agent: { org_id: org, team_id: '__proto__', agent_id: 'constructor' } }, k.key);
      const u = await g.call('POST', '/api/v1/usage', { agent: { org_id: org, team_id: '__proto__', agent_id: 'constructor' }, cost_usd: 1 }, k.key);
      const c = await g.call('POST', '/svc.governance.v1.PolicyService/CheckAction', { agent: { orgId: org, teamId: '__proto__', agentId: 'constructor' }, credentialToken: r.body.credential_token, traceId: '__proto__', spanId: org, action: 'tool.call', resource: 'web_search', attributes: JSON.parse('{"__proto__":{"x":1},"constructor":1}') }, null);
      const s = await g.call('GET', '/api/v1/topology/overview', undefined, k.key);
      const b = await g.call('GET', '/api/v1/budgets', undefined, k.key);
      log(org, r.status, u.status, c.status, c.body.decision, s.status, s.body.agent_count, JSON.stringify(b.body).slice(0, 300));
      for (const p of ['logs', 'ops', 'agents', 'topology/tree', 'topology/stats', 'policies', 'iam/api-keys', 'accounts', 'logs/export?format=csv']) { const r2 = await g.call('GET', `/api/v1/${p}`, undefined, k.key); if (r2.status !== 200) log(p, r2.status, r2.body); if (JSON.stringify(r2.body).includes('acme') || JSON.stringify(r2.body).includes('globex')) log('LEAK', p, r2.body); }
    }
    // org admin: accounts listing, manage other
    const list = (await g.call('GET', '/api/v1/accounts?per_page=1', undefined, aAdmin.access_token)).body; log('accounts page', list);
    const all = (await g.call('GET', '/api/v1/accounts', undefined, owner.access_token)).body.accounts; 
    const idOf = (e: string) => all.find((a: any) => a.email === e).id;
    log('by org admin on globex:', await Promise.all(['role', 'disable', 'enable', 'sessions/revoke'].map(async (w) => (await g.call('POST', `/api/v1/accounts/${idOf('viewer@globex.example')}/${w}`, w === 'role' ? { role: 'admin' } : undefined, aAdmin.access_token)).status)));
    log('by org admin on owner:', await Promise.all(['role', 'disable', 'enable', 'sessions/revoke'].map(async (w) => (await g.call('POST', `/api/v1/accounts/${idOf('owner@example.com')}/${w}`, w === 'role' ? { role: 'viewer' } : undefined, aAdmin.access_token)).status)));
    log('owner invite by org admin', (await g.call('POST', '/api/v1/auth/invite', { email: 'x@x.example', role: 'owner' }, aAdmin.access_token)).body, (await g.call('POST', '/api/v1/auth/invite', { email: 'x2@x.example', role: 'admin', org_id: null }, aAdmin.access_token)).body.org_id);
    log('make owner', (await g.call('POST', `/api/v1/accounts/${idOf('admin@acme.example')}/role`, { role: 'owner' }, owner.access_token)).body);
    log('key by developer', (await g.call('POST', '/api/v1/iam/api-keys', { name: 'n', scopes: ['read'] }, (await login('developer@acme.example')).access_token)).status);
    log('key org null by bound', (await g.call('POST', '/api/v1/iam/api-keys', { name: 'n', scopes: ['admin'], org_id: null }, aAdmin.access_token)).body.org_id);
    // role lowered while open
    await g.call('POST', '/api/v1/agents', { agent: { org_id: 'acme', team_id: 't', agent_id: 'a' } });
    const dev = await login('developer@acme.example');
    const ws = await openDashboard(g, '', { bearer: dev.access_token });
    const ctl = connectAgent(g.grpc, { orgId: 'acme', teamId: 't', agentId: 'a' }, '', dev.access_token);
    const feed = await ctl.control();
    const wsAdmin = await openDashboard(g, '?types=account', { bearer: aAdmin.access_token });
    const ticket = (await g.call('POST', '/api/v1/auth/ws-ticket', undefined, dev.access_token)).body.ticket;
    log('lower', (await g.call('POST', `/api/v1/accounts/${idOf('developer@acme.example')}/role`, { role: 'viewer' }, owner.access_token)).body.role);
    log('ws', await Promise.race([ws.closed, new Promise((r) => setTimeout(r, 3000, 'STILL OPEN'))]));
    log('control', await Promise.race([feed.ended, new Promise((r) => setTimeout(r, 3000, 'STILL OPEN'))]));
    log('ticket', await openDashboard(g, `?ticket=${ticket}`, { bearer: null }).then(() => 'LET IN', String));
    log('old token', (await g.call('POST', '/api/v1/ops', { op_id: 'a:b', agent: { org_id: 'acme', team_id: 't', agent_id: 'a' } }, dev.access_token)).status);
    const refreshed = await fetch(`${g.url}/api/v1/auth/refresh`, { method: 'POST', headers: { cookie: dev.cookie } }); const rb: any = await refreshed.json(); log('refresh', refreshed.status, rb.scopes);
    ctl.close();
    log('disable', (await g.call('POST', `/api/v1/accounts/${idOf('admin@acme.example')}/disable`, undefined, owner.access_token)).status);
    log('wsAdmin', await Promise.race([wsAdmin.closed, new Promise((r) => setTimeout(r, 3000, 'STILL OPEN'))]));
    log((await fetch(`${g.url}/api/v1/auth/refresh`, { method: 'POST', headers: { cookie: aAdmin.cookie } })).status, 'refresh after disable');
    log('wsAdmin frames', wsAdmin.frames.map((f) => [f.org_id, f.payload]));
    const m = await (await fetch(`${g.url}/metrics`)).text(); log('metrics org?', m.includes('acme'));
    // email taken leak
    log('taken', (await g.call('POST', '/api/v1/auth/invite', { email: 'viewer@globex.example', role: 'viewer' }, acme.key)).status, (await g.call('POST', '/api/v1/auth/invite', { email: 'nobody@globex.example', role: 'viewer' }, acme.key)).status);
    const text = (await g.call('GET', '/api/v1/logs/export', undefined, acme.key)).body as string;
    log('LEAK in log?', text.includes('globex'), text.split('\n').filter((l) => l.includes('globex')).slice(0,3));
    const orgs = new Set(text.trim().split('\n').map((l) => JSON.parse(l).lineage.org_id)); log([...orgs]);
    expect(1).toBe(1);
  } finally { await g.stop(); }
}, 120_000);

/** Rate limits over the real doors (docs/spec.md, Rate limits): one caller's limit is never felt by another. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

let gateway: GatewayHere;
describe('rate limit', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere({ env: { SVC_RATE_LIMIT_API: '6', SVC_RATE_LIMIT_AUTH: '3' } });
  });
  afterAll(() => gateway?.stop());

  const ask = (method: string, path: string, bearer?: string): Promise<Response> =>
    fetch(`${gateway.url}${path}`, {
      method,
      headers: bearer === undefined ? {} : { authorization: `Bearer ${bearer}` },
    });

  test('an invalid credential is refused, then slowed down, without blocking sign-ins', async () => {
    const statuses: number[] = [];
    for (let count = 0; count < 7; count += 1) statuses.push((await ask('GET', '/api/v1/ops', 'ended')).status);
    expect(statuses).toEqual([401, 401, 401, 401, 401, 401, 429]);
    expect((await ask('GET', '/api/v1/auth/methods')).status).toBe(200);
    expect((await gateway.call('GET', '/api/v1/ops')).status).toBe(200);
  });

  test('the public auth routes count by address, and say when to retry', async () => {
    let last = await ask('POST', '/api/v1/auth/token', 'no-key');
    for (let count = 0; count < 3; count += 1) last = await ask('POST', '/api/v1/auth/token', 'no-key');
    expect({
      status: last.status,
      contentType: last.headers.get('content-type'),
      ratelimitPolicy: last.headers.get('ratelimit-policy'),
    }).toEqual({ status: 429, contentType: 'application/problem+json', ratelimitPolicy: '"default";q=3;w=60' });
    expect(Number(last.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(((await last.json()) as { code: string }).code).toBe('rate_limited');
    // A key that holds has a limit of its own, which is that of the API.
    expect((await gateway.call('POST', '/api/v1/auth/token')).status).toBe(200);
    expect((await ask('POST', '/api/v1/auth/token', 'no-key')).status).toBe(429);
    expect((await gateway.call('GET', '/api/v1/ops')).status).toBe(200);
  });

  test('a flood of checks with made-up tokens leaves sixty entries a minute in the log', async () => {
    const batch = (nth: number) =>
      fetch(`${gateway.url}/svc.governance.v1.PolicyService/BatchCheckActions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          requests: Array.from({ length: 400 }, (_, at) => ({
            agent: { org_id: 'victim', team_id: 'core', agent_id: 'crawler' },
            credential_token: `made-up-${nth}-${at}-${'x'.repeat(32)}`,
            trace_id: `flood-${nth}`,
            span_id: `s${at}`,
            action: 'tool.call',
            resource: 'x'.repeat(2_000),
          })),
        }),
      });
    for (let nth = 0; nth < 3; nth += 1) {
      const { responses } = (await (await batch(nth)).json()) as { responses: { decision: string }[] };
      expect(responses.filter(({ decision }) => decision === 'DECISION_DENY')).toHaveLength(400);
    }
    const { body } = await gateway.call('GET', '/api/v1/logs?event_type=ActionDenied&per_page=1000');
    const recorded = (body as { entries: { payload: { network: string; resource: string } }[] }).entries;
    // Refusals are recorded about once a second.
    expect(recorded.length).toBeGreaterThanOrEqual(60);
    expect(recorded.length).toBeLessThan(90);
    expect(recorded[0]!.payload).toMatchObject({ network: '127.0.0.1', resource: 'x'.repeat(128) });
  });

  test('behind a trusted proxy each client has its own limit, and not otherwise', async () => {
    const behind = await startGatewayHere({
      env: { SVC_RATE_LIMIT_API: '6', SVC_RATE_LIMIT_AUTH: '3', SVC_TRUSTED_PROXIES: '127.0.0.0/8, ::1' },
    });
    try {
      const methods = async (url: string, from: string) =>
        (await fetch(`${url}/api/v1/auth/methods`, { headers: { 'x-forwarded-for': from } })).status;
      const four = (url: string, from: (count: number) => string) =>
        Promise.all([1, 2, 3, 4].map((count) => methods(url, from(count))));
      expect((await four(behind.url, (count) => `9.9.9.${count}, 203.0.113.1`)).sort()).toEqual([200, 200, 200, 429]);
      expect(await methods(behind.url, '203.0.113.2')).toBe(200);
      // All addresses of one customer's IPv6 network are one client, and one of IPv4 is the same in either notation.
      expect((await four(behind.url, (count) => `2001:db8:7:1::${count}`)).sort()).toEqual([200, 200, 200, 429]);
      expect(await methods(behind.url, '2001:db8:7:2::1')).toBe(200);
      expect(await methods(behind.url, '::ffff:203.0.113.1')).toBe(429);
      const strangers = await Promise.all(
        Array.from({ length: 7 }, (_, count) =>
          fetch(`${behind.url}/api/v1/ops`, {
            headers: { authorization: 'Bearer ended', 'x-forwarded-for': `2001:db8:7:1:${count}::1` },
          }),
        ),
      );
      expect(strangers.map(({ status }) => status).sort()).toEqual([401, 401, 401, 401, 401, 401, 429]);
      await four(gateway.url, (count) => `203.0.113.${count}`);
      expect(await methods(gateway.url, '203.0.113.9')).toBe(429);
    } finally {
      await behind.stop();
    }
  });
});

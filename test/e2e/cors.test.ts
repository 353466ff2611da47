/** Pages of other origins, in browsers (docs/spec.md, HTTP). */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

const BOARD = 'https://board.example.com';
const CHECK = '/svc.governance.v1.PolicyService/CheckAction';

let gateway: GatewayHere;
describe('cors', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere({ env: { SVC_CORS_ORIGINS: BOARD } });
  });
  afterAll(() => gateway.stop());

  const ask = async (method: string, path: string, headers: Readonly<Record<string, string>>, body?: string) => {
    const response = await fetch(gateway.url + path, { method, headers, ...(body === undefined ? {} : { body }) });
    const cors = Object.fromEntries(
      [...response.headers].filter(([name]) => name.startsWith('access-control-') || name === 'vary'),
    );
    return { status: response.status, cors };
  };
  const READABLE = {
    'access-control-allow-origin': BOARD,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': 'Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate, svc-code',
    vary: 'Origin',
  };
  const bearer = { authorization: `Bearer ${ADMIN_KEY}` };
  const check = JSON.stringify({
    agent: { orgId: 'acme', teamId: 'search', agentId: 'a' },
    traceId: 't',
    spanId: 's',
    action: 'tool.call',
    resource: 'web_search',
  });
  const json = { 'content-type': 'application/json' };

  test('a page of an allowed origin may read answers and refusals of HTTP and Connect', async () => {
    expect(await ask('GET', '/api/v1/ops', { ...bearer, origin: BOARD })).toEqual({ status: 200, cors: READABLE });
    expect(await ask('GET', '/api/v1/ops', { origin: BOARD })).toEqual({ status: 401, cors: READABLE });
    expect(await ask('POST', CHECK, { ...bearer, ...json, origin: BOARD }, check)).toEqual({
      status: 200,
      cors: READABLE,
    });
    expect(await ask('POST', CHECK, { ...bearer, ...json, origin: BOARD }, '{')).toEqual({
      status: 400,
      cors: READABLE,
    });
  });

  test('a preflight says what the page may send, and by which methods', async () => {
    const preflight = (path: string, origin: string) =>
      ask('OPTIONS', path, {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization',
      });
    const permitted = {
      ...READABLE,
      'access-control-allow-headers': 'Authorization, Content-Type, Connect-Protocol-Version, Connect-Timeout-Ms',
      'access-control-max-age': '600',
    };
    expect((await preflight('/api/v1/ops', BOARD)).cors).toEqual({
      ...permitted,
      'access-control-allow-methods': 'POST, GET, HEAD',
    });
    expect((await preflight(CHECK, BOARD)).cors).toEqual({ ...permitted, 'access-control-allow-methods': 'POST' });
    expect((await preflight('/api/v1/ops', 'https://evil.example.com')).cors).not.toHaveProperty(
      'access-control-allow-origin',
    );
  });

  test('a page of any other origin may read nothing, however similar its name', async () => {
    for (const origin of [
      'https://evil.example.com',
      `${BOARD}.evil.com`,
      'http://board.example.com',
      `${BOARD}:8443`,
      'null',
    ]) {
      expect(await ask('GET', '/api/v1/ops', { ...bearer, origin })).toEqual({ status: 200, cors: {} });
      expect(await ask('POST', CHECK, { ...bearer, ...json, origin }, check)).toEqual({ status: 403, cors: {} });
    }
  });
});

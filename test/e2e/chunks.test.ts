/** Bodies in chunks that a proxy before the gateway may read otherwise than the gateway does. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';
import { sendRaw } from '../support/raw-http.ts';

let gateway: GatewayHere;
beforeAll(async () => {
  gateway = await startGatewayHere();
});
afterAll(() => gateway?.stop());

const CHECK = '/svc.governance.v1.PolicyService/CheckAction';
const head = (path: string, version = 'HTTP/1.1') =>
  `POST ${path} ${version}\r\nHost: localhost\r\nAuthorization: Bearer ${ADMIN_KEY}\r\n` +
  'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
const SMUGGLED = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';

describe('a body in chunks', () => {
  test.each([
    ['of a blank and a size', ' 30\r\n\r\n', '/api/v1/ops'],
    ['of a tab and a size', '\t30\r\n\r\n', '/api/v1/ops'],
    ['of no size', '\r\n\r\n', CHECK],
    ['of a blank and a size', ' 30\r\n\r\n', CHECK],
    ['of a blank and a size, for no method', ' 30\r\n\r\n', '/nowhere'],
    ['after one that is too large', `${(2 << 20).toString(16)}\r\n${' '.repeat(2 << 20)}\r\n 30\r\n\r\n`, CHECK],
    [
      'after one that is too large',
      `${(2 << 20).toString(16)}\r\n${' '.repeat(2 << 20)}\r\n 30\r\n\r\n`,
      '/api/v1/ops',
    ],
  ])('hides no request if a chunk %s', async (_name, chunk, path) => {
    const sent = [head(path) + chunk, { waitMs: 400 }, SMUGGLED, { waitMs: 200 }];
    const { statuses, isClosed } = await sendRaw(gateway, sent, { answers: 2, timeoutMs: 5_000 });
    expect({ isClosed, statuses: statuses.filter((status) => status < 400) }).toEqual({ isClosed: true, statuses: [] });
  });

  test('is answered if it is sound', async () => {
    const { statuses } = await sendRaw(gateway, [`${head('/api/v1/ops')}2\r\n{}\r\n0\r\n\r\n`]);
    expect(statuses).toEqual([400]);
  });
});

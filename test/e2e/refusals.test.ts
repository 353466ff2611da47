import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

let gateway: GatewayHere;
let reader: string;
describe('refusals', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
    reader = (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'reader', scopes: ['read'] })).body.key;
  });
  afterAll(async () => {
    await gateway.stop();
  });

  const BAD_BODIES: readonly (readonly [what: string, type: string, body: string, status: number])[] = [
    ['no JSON', 'application/json', '{"op_id":', 400],
    ['another media type', 'application/x-www-form-urlencoded', 'op_id=1', 415],
    ['too much', 'application/json', `"${'x'.repeat(1024 * 1024)}"`, 413],
  ];

  test.each(BAD_BODIES)(
    'a caller without the right is refused before the body is read: %s',
    async (_what, type, body, status) => {
      const statusFor = async (path: string, bearer?: string): Promise<number> =>
        (
          await fetch(gateway.url + path, {
            method: 'POST',
            headers: { 'content-type': type, ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }) },
            body,
          })
        ).status;
      expect(await statusFor('/api/v1/ops')).toBe(401);
      expect(await statusFor('/api/v1/ops', 'svc_not_a_key')).toBe(401);
      expect(await statusFor('/api/v1/ops', reader)).toBe(403);
      expect(await statusFor('/api/v1/ops', ADMIN_KEY)).toBe(status);
      // Without an account store it does not matter what is sent.
      expect(await statusFor('/api/v1/auth/login')).toBe(503);
    },
  );

  test.each([
    [{}, 'agent', 'agent: is required'],
    [[], 'body', 'body: must be a JSON object'],
    [{ op_id: 7, agent: { team_id: 't', agent_id: 'a' } }, 'op_id', 'op_id: must be a string'],
    [{ op_id: 't:s', agent: { team_id: 't' } }, 'agent.agent_id', 'agent.agent_id: is required'],
    [
      { op_id: 't:s', agent: { org_id: 7, team_id: 't', agent_id: 'a' } },
      'agent.org_id',
      'agent.org_id: must be a string',
    ],
    [
      { op_id: 't:s', agent: { org_id: '-', team_id: 't', agent_id: 'a' } },
      'agent.org_id',
      'agent.org_id: must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".." or "-"',
    ],
    [
      { op_id: 't:s', agent: { team_id: '..', agent_id: 'a' } },
      'agent.team_id',
      'agent.team_id: must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".."',
    ],
    [
      { op_id: 't:s', agent: { team_id: 't', agent_id: '.' } },
      'agent.agent_id',
      'agent.agent_id: must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".."',
    ],
    [{ op_id: 't:s', agent: 'acme/t/a' }, 'agent', 'agent: must be a JSON object'],
    [{ op_id: 't:s', agent: { team_id: 't', agent_id: 'a' }, sate: 'running' }, 'sate', 'sate: unknown field'],
  ])('a body that does not fit is refused in a sentence that names the field: %j', async (body, field, detail) => {
    const { status, body: problem } = await gateway.call('POST', '/api/v1/ops', body);
    expect({ status, code: problem.code, field: problem.field, detail: problem.detail }).toEqual({
      status: 400,
      code: 'invalid_argument',
      field,
      detail,
    });
  });

  test('an agent without an org is removed by a path without one, or with -', async () => {
    const agent = { org_id: '', team_id: 'search', agent_id: 'crawler' };
    for (const path of ['/api/v1/agents/-/search/crawler', '/api/v1/agents//search/crawler']) {
      expect((await gateway.call('POST', '/api/v1/agents', { agent })).status).toBe(201);
      expect((await gateway.call('DELETE', path)).status).toBe(204);
      expect((await gateway.call('DELETE', path)).status).toBe(404);
    }
  });
});

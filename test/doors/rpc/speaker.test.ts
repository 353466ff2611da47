import { describe, expect, test } from 'vitest';
import { AGENT_HEADER, speakerOf } from '../../../src/doors/rpc/speaker.ts';
import { AGENT, fakeGateway, READ_KEY, TOKEN, WRITE_KEY } from '../../support/fake-ports.ts';

const speak = (authorization: string | undefined, claimed?: string) =>
  speakerOf(fakeGateway(), { authorization, claimed });

const OWN = `${AGENT.orgId}/${AGENT.teamId}/${AGENT.agentId}`;
const SIBLING = { orgId: 'acme', teamId: 'search', agentId: 'sibling' };

describe('the speaker of a request', () => {
  test('is the agent whose token it is, named by the header or not', async () => {
    const own = { ok: true, value: { agent: AGENT, credentialToken: TOKEN, authorization: undefined } };
    expect(await speak(`Bearer ${TOKEN}`)).toEqual(own);
    expect(await speak(`bearer  ${TOKEN}`, '')).toEqual(own);
    expect(await speak(`Bearer ${TOKEN}`, OWN)).toEqual(own);
  });

  test("with a token and another agent's name is left for the check to deny", async () => {
    expect(await speak(`Bearer ${TOKEN}`, 'acme/search/sibling')).toEqual({
      ok: true,
      value: { agent: SIBLING, credentialToken: TOKEN, authorization: undefined },
    });
  });

  test('with a key is the agent that it names', async () => {
    expect(await speak(`Bearer ${WRITE_KEY}`, 'acme/search/sibling')).toEqual({
      ok: true,
      value: { agent: SIBLING, credentialToken: '', authorization: `Bearer ${WRITE_KEY}` },
    });
  });

  test('cannot be a key that names no agent', async () => {
    for (const claimed of [undefined, ''])
      expect(await speak(`Bearer ${WRITE_KEY}`, claimed)).toMatchObject({
        ok: false,
        fault: { kind: 'invalid_argument', field: AGENT_HEADER },
      });
  });

  test('cannot be a malformed name, with a token or with a key', async () => {
    for (const bearer of [TOKEN, WRITE_KEY])
      for (const claimed of ['crawler', 'acme/search', 'acme/search/crawler/x', 'acme//crawler', '-/search/crawler'])
        expect(await speak(`Bearer ${bearer}`, claimed), claimed).toMatchObject({
          ok: false,
          fault: { kind: 'invalid_argument', field: AGENT_HEADER },
        });
  });

  test('is nobody without a bearer that is known, whatever the name', async () => {
    for (const authorization of [undefined, '', 'Bearer ', TOKEN, `Basic ${TOKEN}`, 'Bearer of-nobody-0123456789'])
      for (const claimed of [undefined, OWN, 'malformed'])
        expect(await speak(authorization, claimed), authorization).toMatchObject({
          ok: false,
          fault: { kind: 'unauthenticated' },
        });
  });

  test('cannot be a key without write scope', async () => {
    expect(await speak(`Bearer ${READ_KEY}`, OWN)).toMatchObject({
      ok: false,
      fault: { kind: 'insufficient_scope', needed: 'write' },
    });
  });
});

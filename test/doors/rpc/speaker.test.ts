import { describe, expect, test } from 'vitest';
import { fail } from '../../../src/core/base/result.ts';
import { digestOfPresented } from '../../../src/doors/rpc/credential-digests.ts';
import { AGENT_HEADER, knownBearer, speakerFor, vouchedAgain } from '../../../src/doors/rpc/speaker.ts';
import { AGENT, fakeGateway, READ_KEY, TOKEN, WRITE_KEY } from '../../support/fake-ports.ts';

async function speak(authorization: string | undefined, claimed?: string) {
  const bearer = await knownBearer(fakeGateway(), authorization);
  return bearer.ok ? speakerFor(bearer.value, claimed) : bearer;
}

const OWN = `${AGENT.orgId}/${AGENT.teamId}/${AGENT.agentId}`;
const REVOKED = fail({ kind: 'unauthenticated', detail: 'the key was revoked' } as const);
const SIBLING = { orgId: 'acme', teamId: 'search', agentId: 'sibling' };

describe('the speaker of a request', () => {
  test('is the agent whose token it is, named by the header or not', async () => {
    const own = { ok: true, value: { agent: AGENT, credential: digestOfPresented(TOKEN), principal: undefined } };
    expect(await speak(`Bearer ${TOKEN}`)).toEqual(own);
    expect(await speak(`bearer  ${TOKEN}`, '')).toEqual(own);
    expect(await speak(`Bearer ${TOKEN}`, OWN)).toEqual(own);
  });

  test("is left for the check to deny with a token and another agent's name", async () => {
    expect(await speak(`Bearer ${TOKEN}`, 'acme/search/sibling')).toEqual({
      ok: true,
      value: { agent: SIBLING, credential: digestOfPresented(TOKEN), principal: undefined },
    });
  });

  test('is the agent that a key names', async () => {
    expect(await speak(`Bearer ${WRITE_KEY}`, 'acme/search/sibling')).toMatchObject({
      ok: true,
      value: { agent: SIBLING, credential: undefined, principal: { subject: 'key:w' } },
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

  test('is nobody without a known bearer, whatever the name', async () => {
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

  test('is verified again by its token, or by a key as long as that is valid', async () => {
    const gateway = fakeGateway();
    const again = async (token: string) => {
      const bearer = await knownBearer(gateway, `Bearer ${token}`);
      const speaker = bearer.ok ? speakerFor(bearer.value, OWN) : bearer;
      if (!bearer.ok || !speaker.ok) throw new Error('the bearer is known');
      return vouchedAgain({ ...gateway, authenticate: async () => REVOKED }, bearer.value, speaker.value);
    };
    expect(await again(TOKEN)).toMatchObject({ ok: true, value: { agent: AGENT } });
    expect(await again(WRITE_KEY)).toEqual(REVOKED);
  });
});

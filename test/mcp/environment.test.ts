/** The variables that name the gateway and the agent, and the aliases that docs/configuration.md promises. */
import { describe, expect, test } from 'vitest';
import { credentialIn, gatewayIn } from '../../src/client/environment.ts';

const AGENT = { SVC_AGENT: 'acme/search/bot' };
const URL_OF_SHELL = { SVC_CLI_API_URL: 'http://shell:1' };
const TOKEN_OF_SHELL = { SVC_CLI_AGENT_TOKEN: 'of-shell' };

describe('the environment of an agent', () => {
  test.each([
    ['its own variable, over the alias', { SVC_GATEWAY_URL: 'http://own:1', ...URL_OF_SHELL }, 'http://own:1'],
    ['the alias where its own is unset', URL_OF_SHELL, 'http://shell:1'],
    ['the alias where its own is empty', { SVC_GATEWAY_URL: '', ...URL_OF_SHELL }, 'http://shell:1'],
    ['neither', {}, 'http://127.0.0.1:8080'],
  ])('names the gateway by %s', (_, env, url) => {
    expect(gatewayIn(env).apiUrl).toBe(url);
  });

  test.each([
    ['its own variable, over the alias', { SVC_AGENT_TOKEN: 'own', ...TOKEN_OF_SHELL }, 'own'],
    ['the alias where its own is unset', TOKEN_OF_SHELL, 'of-shell'],
    ['the alias where its own is empty', { SVC_AGENT_TOKEN: '', ...TOKEN_OF_SHELL }, 'of-shell'],
  ])('has a token by %s', (_, env, secret) => {
    expect(credentialIn({ ...AGENT, ...env }, undefined)).toEqual({
      agent: { orgId: 'acme', teamId: 'search', agentId: 'bot' },
      secret,
      kind: 'token',
    });
  });

  test('without a token says which variable to set', () => {
    expect(() => credentialIn(AGENT, undefined)).toThrow('no agent token is set');
  });
});

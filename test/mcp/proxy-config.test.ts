import { describe, expect, test } from 'vitest';
import { proxyConfigIn } from '../../src/mcp/proxy-config.ts';

const read = (text: string, env = {}) => proxyConfigIn(text, 'mcp.yaml', env);
const ONE = 'upstreams: [{ name: a, url: "http://127.0.0.1:1/mcp" }]';

describe('the file of svc mcp proxy', () => {
  test('has defaults for everything but its servers', () => {
    expect(read(ONE)).toEqual({
      host: '127.0.0.1',
      port: 8090,
      publicUrl: undefined,
      origins: [],
      audience: 'svc-gateway',
      authorizationServers: [],
      limits: {},
      upstreams: [{ name: 'a', url: new URL('http://127.0.0.1:1/mcp'), headers: {} }],
    });
  });

  test('takes secrets from the environment, and commands as lists or lines', () => {
    const { upstreams, host, port } = read(
      `listen: "[::1]:0"
upstreams:
  - { name: a, url: "https://a.example/mcp", headers: { Authorization: "Bearer \${KEY}" } }
  - { name: b, command: node server.js, env: { PORT: 1 } }
  - { name: c, command: [node, "a b.js"] }`,
      { KEY: 's3cret' },
    );
    expect({ host, port }).toEqual({ host: '::1', port: 0 });
    expect(upstreams).toEqual([
      { name: 'a', url: new URL('https://a.example/mcp'), headers: { Authorization: 'Bearer s3cret' } },
      { name: 'b', command: ['node', 'server.js'], env: { PORT: '1' } },
      { name: 'c', command: ['node', 'a b.js'], env: {} },
    ]);
  });

  test('bounds the servers that are started', () => {
    expect(read(`max_processes: 40\nmax_processes_per_credential: 8\n${ONE}`).limits).toEqual({
      processes: 40,
      processesOfCredential: 8,
    });
    expect(() => read(`max_processes: 0\n${ONE}`)).toThrow('max_processes must be a whole number from 1 on');
  });

  test.each([
    ['[]', 'it must be a mapping'],
    ['listen: x', 'listen must be host:port'],
    ['upstreams: []', 'upstreams must be a list of servers'],
    [`${ONE}\nupstream: 1`, 'unknown setting upstream'],
    ['upstreams: [{ name: a__b, url: "http://x" }]', 'upstreams[0].name'],
    ['upstreams: [{ name: a }]', 'must have a url or a command'],
    ['upstreams: [{ name: a, url: "file:///etc" }]', 'must be an http or https address'],
    ['upstreams: [{ name: a, url: "http://x", env: {} }]', 'unknown setting env'],
    ['upstreams: [{ name: a, command: [] }]', 'must be a list of words'],
    ['upstreams: [{ name: a, url: "http://x" }, { name: a, url: "http://y" }]', 'two upstreams are named a'],
    ['upstreams: [{ name: a, url: "http://x", headers: { k: "${NONE}" } }]', 'names NONE, which is not set'],
    ['a: [', 'Flow sequence'],
  ])('names the mistake in %s', (text, problem) => {
    expect(() => read(text)).toThrow(problem);
  });
});

import { describe, expect, test } from 'vitest';
import { Router } from '../../../src/doors/api/router.ts';

const router = new Router([
  { method: 'get', path: '/ops' },
  { method: 'post', path: '/ops' },
  { method: 'get', path: '/ops/:id' },
  { method: 'post', path: '/ops/:id/pause' },
  { method: 'get', path: '/ops/summary' },
  { method: 'delete', path: '/agents/:org/:team/:agent' },
  { method: 'get', path: '/' },
]);
const found = (method: 'get' | 'post' | 'delete', path: string): unknown => {
  const match = router.match(method, path);
  return match.kind === 'route'
    ? [match.route.path, match.params]
    : match.kind === 'no-method'
      ? match.allowed
      : match.kind;
};

describe('router', () => {
  test.each([
    ['get', '/ops', ['/ops', {}]],
    ['get', '/', ['/', {}]],
    ['get', '/ops/t:s', ['/ops/:id', { id: 't:s' }]],
    ['get', '/ops/t%3As', ['/ops/:id', { id: 't:s' }]],
    ['get', '/ops/a%2Fb:c', ['/ops/:id', { id: 'a/b:c' }]],
    ['get', '/ops/%C3%A4:s', ['/ops/:id', { id: 'ä:s' }]],
    ['get', '/ops/__proto__', ['/ops/:id', { id: '__proto__' }]],
    ['post', '/ops/t:s/pause', ['/ops/:id/pause', { id: 't:s' }]],
    ['delete', '/agents//search/crawler', ['/agents/:org/:team/:agent', { org: '', team: 'search', agent: 'crawler' }]],
  ] as const)('%s %s', (method, path, expected) => expect(found(method, path)).toEqual(expected));

  test('a literal path wins over a name, in any order of the rows', () =>
    expect(found('get', '/ops/summary')).toEqual(['/ops/summary', {}]));

  test.each([
    ['delete', '/ops', ['get', 'head', 'post']],
    ['get', '/ops/t:s/pause', ['post']],
    ['post', '/ops/t:s', ['get', 'head']],
  ] as const)('%s %s exists with other methods', (method, path, allowed) =>
    expect(found(method, path)).toEqual(allowed),
  );

  test.each([
    '/nope',
    '/ops/a/b',
    '/ops//pause/x',
    '/OPS',
    '//ops',
    '/ops/%',
    '/ops/%zz',
    '/ops/%C3%28',
    '',
    '/%6Fps/a/b',
    '*',
    'http://host/ops',
  ])('%j is not a path', (path) => expect(found('get', path)).toBe('no-path'));

  test.each([
    ['get', '/ops/'],
    ['post', '/ops/'],
    ['get', '/ops/t:s/'],
    ['post', '/ops/t:s/pause/'],
    ['delete', '/agents/acme/search/'],
    ['get', '/ops/summary/'],
  ] as const)('%s %s is no path: the trailing slash is named as the mistake', (method, path) =>
    expect(found(method, path)).toBe('no-path'),
  );

  test('two rows for one method and path are a defect, found at load', () => {
    expect(
      () =>
        new Router([
          { method: 'get', path: '/a' },
          { method: 'get', path: '/a' },
        ]),
    ).toThrow('two routes for get /a');
  });
});

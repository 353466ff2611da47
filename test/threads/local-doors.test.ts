import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { isOfDoors } from '../../src/threads/local-doors.ts';

const ROOT_URL = new URL('../../src/', import.meta.url).href;
const ROOT = fileURLToPath(ROOT_URL);

const withStack = (...frames: string[]): Error => {
  const error = new Error('a defect');
  error.stack = ['Error: a defect', ...frames.map((frame) => `    at ${frame}`)].join('\n');
  return error;
};

describe('an exception that nobody caught', () => {
  test.each([
    ['a door', [`writeHead (${ROOT}doors/engine/exchange.js:10:3)`, 'node:internal/timers:581:17']],
    ["the doors' end of the channel", [`#settle (${ROOT_URL}threads/io/io-link.js:1:1)`]],
    ['a library below a door', ['emit (node:events:524:28)', `serve (${ROOT}doors/grpc/server.ts:80:5)`]],
    ['a library alone', ['onData (/usr/src/app/node_modules/some/src/core/index.js:1:1)']],
    ['Node.js alone', ['TLSSocket.onerror (node:internal/streams/destroy:106:3)']],
  ])('belongs to the doors if thrown by %s', (_from, frames) => {
    expect(isOfDoors(withStack(...frames))).toBe(true);
  });

  test.each([
    ['the core', [`check (${ROOT}core/check.js:3:1)`, `receive (${ROOT}doors/rpc/x.js:1:1)`]],
    ['the audit log', [`#writeGroup (${ROOT_URL}threads/audit/audit-thread.js:1:1)`]],
    ['a timer of the main thread', [`sweep (${ROOT}app/timers.js:118:3)`, 'node:internal/timers:581:17']],
  ])('does not belong to the doors if thrown by %s', (_from, frames) => {
    expect(isOfDoors(withStack(...frames))).toBe(false);
  });

  describe('in the bundles that a gateway runs', async () => {
    const built = new URL('../../dist/src/', import.meta.url);
    const { isOfDoors: isOfBuiltDoors } = (await import(new URL('threads/local-doors.js', built).href)) as {
      isOfDoors(error: unknown): boolean;
    };
    const chunks = readdirSync(new URL('chunks/', built))
      .filter((name) => name.endsWith('.js'))
      .map((name) => new URL(`chunks/${name}`, built));
    const frameOf = (code: string): string => {
      for (const { href, pathname } of chunks) {
        const lines = readFileSync(pathname, 'utf8').split('\n');
        const at = lines.findIndex((line) => line.includes(code));
        if (at >= 0) return `work (${href}:${at + 1}:${lines[at]!.indexOf(code) + 1})`;
      }
      throw new Error(`no bundle has ${code}`);
    };

    test.each([
      ['a door', 'Exchange = class', true],
      ["the doors' end of the channel", 'IoLink = class', true],
      ['a library alone, bundled with the doors', '$ZodError = ', true],
      ['the core', 'Governor = class', false],
      ['the main thread', 'Switchboard = class', false],
    ])('%s', (_from, code, expected) => {
      expect(isOfBuiltDoors(withStack(frameOf(code)))).toBe(expected);
    });
  });

  test('a thrown value that is no error belongs to the doors: nothing here throws such', () => {
    expect(isOfDoors('text')).toBe(true);
  });
});

/** Which native build is taken, and what is said where there is none. */
import { describe, expect, test } from 'vitest';
import { chooseEngine } from '../../../src/doors/engine/choose.ts';
import { findNativeBuild, type Machine, whyNone } from '../../../src/doors/engine/native-builds.ts';

const LIBRARY = { App: () => undefined, SSLApp: () => undefined };
const OLD = 'uwebsockets.js-for-old-glibc';
const OLD_FILE = `${OLD}/binaries/uws_linux_x64_115.node`;
const NODE_20: Machine = { platform: 'linux', arch: 'x64', node: '20.20.2', modules: '115' };
const NODE_24: Machine = { platform: 'linux', arch: 'x64', node: '24.21.0', modules: '137' };
const NODE_26: Machine = { platform: 'linux', arch: 'x64', node: '26.10.0', modules: '147' };

const notFound = (file: string): Error =>
  new Error(`Cannot find module '${file}'\nRequire stack:\n- /app/native-builds.js`);
/** The error of the library's own entry; `cause` is the error of the loader. */
const refused = (cause: string): Error =>
  new Error(`This version of uWS.js (v20.57.0) supports only Node.js versions 20, 22, 24 and 25.\n\n${cause}`);
const OLD_GLIBC = refused(
  "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by /app/uws_linux_x64_115.node)",
);

/** A loader that knows these files; an error is thrown. */
const loaderOf =
  (files: Readonly<Record<string, unknown>>) =>
  (file: string): unknown => {
    const known = file in files ? files[file] : notFound(file);
    if (known instanceof Error) throw known;
    return known;
  };

describe('native builds', () => {
  test('the first build that loads is taken, and later ones are not tried', () => {
    const asked: string[] = [];
    const found = findNativeBuild((file) => {
      asked.push(file);
      return LIBRARY;
    }, NODE_20);
    expect(found).toEqual({ kind: 'found', library: LIBRARY, label: 'uWebSockets.js' });
    expect(asked).toEqual(['uWebSockets.js']);
  });

  test('use the older build if the C library is too old for the newer one', () => {
    const load = loaderOf({ 'uWebSockets.js': OLD_GLIBC, [OLD_FILE]: LIBRARY });
    expect(findNativeBuild(load, NODE_20)).toEqual({ kind: 'found', library: LIBRARY, label: 'uWebSockets.js 20.30' });
  });

  test.each<[string, Machine, Readonly<Record<string, unknown>>, string]>([
    [
      'an old C library and a new Node.js',
      NODE_24,
      { 'uWebSockets.js': OLD_GLIBC, [`${OLD}/package.json`]: {} },
      'uWebSockets.js needs glibc 2.38, uWebSockets.js 20.30 has no build for Node.js 24 on linux x64; use a system with a newer glibc, such as Debian 13 or Ubuntu 24.04, or Node.js 20',
    ],
    [
      'a Node.js that is newer than all builds',
      NODE_26,
      {
        'uWebSockets.js': refused("Cannot find module './uws_linux_x64_147.node'\nRequire stack:\n- /app/uws.js"),
        [`${OLD}/package.json`]: {},
      },
      'uWebSockets.js has no build for Node.js 26 on linux x64, uWebSockets.js 20.30 has no build for Node.js 26 on linux x64; use Node.js 24, or npm install uWebSockets.js@uNetworking/uWebSockets.js#v20.69.0 (needs glibc 2.38)',
    ],
    [
      'another processor',
      { ...NODE_24, arch: 'riscv64' },
      {
        'uWebSockets.js': refused("Cannot find module './uws_linux_riscv64_137.node'"),
        [`${OLD}/package.json`]: {},
      },
      'uWebSockets.js has no build for Node.js 24 on linux riscv64, uWebSockets.js 20.30 has no build for Node.js 24 on linux riscv64; use Node.js 24 on Linux with glibc, macOS or Windows',
    ],
    [
      'an installation without optional packages',
      NODE_24,
      {},
      'uWebSockets.js is not installed, uWebSockets.js 20.30 is not installed; run npm install --include=optional',
    ],
    [
      'a C library that is not glibc',
      NODE_24,
      { 'uWebSockets.js': refused('Error loading shared library ld-linux-x86-64.so.2: No such file or directory') },
      'uWebSockets.js does not load (Error loading shared library ld-linux-x86-64.so.2: No such file or directory), uWebSockets.js 20.30 is not installed; use Node.js 24 on Linux with glibc, macOS or Windows',
    ],
  ])('name the reasons and the remedy with %s', (_what, machine, files, expected) => {
    const found = findNativeBuild(loaderOf(files), machine);
    expect(found.kind === 'none' && whyNone(found.missing, machine)).toBe(expected);
  });

  test('a stand-in in JavaScript, or another package of that name, is not taken', () => {
    const found = findNativeBuild(loaderOf({ 'uWebSockets.js': { App: () => undefined } }), NODE_24);
    expect(found.kind === 'none' && found.missing[0]).toEqual({
      label: 'uWebSockets.js',
      reason: 'is another package',
    });
  });

  test.runIf(process.platform === 'linux' && process.arch === 'x64' && process.versions.modules === '115')(
    'on this machine, Node.js 20 on Linux, one of the installed builds loads',
    () => {
      expect(findNativeBuild()).toMatchObject({ kind: 'found' });
    },
  );
});

describe('choice of the engine', () => {
  const none = () => ({ kind: 'none', missing: [{ label: 'uWebSockets.js', reason: 'is not installed' }] }) as const;
  const untried = () => {
    throw new Error('it was tried');
  };
  const unexpected = (error: unknown): void => {
    throw error;
  };

  test('auto falls back to node:http and says why', () => {
    const { engine, description } = chooseEngine('auto', unexpected, none);
    engine.close();
    expect({ name: engine.name, description }).toEqual({
      name: 'node',
      description:
        'node:http, at a fraction of the native speed: uWebSockets.js is not installed; run npm install --include=optional',
    });
  });

  test('node loads no native library', () => {
    const { engine, description } = chooseEngine('node', unexpected, untried);
    engine.close();
    expect({ name: engine.name, description }).toEqual({ name: 'node', description: 'node:http, by SVC_HTTP_ENGINE' });
  });

  test('native is refused where it does not load', () => {
    expect(() => chooseEngine('native', unexpected, none)).toThrow(
      'SVC_HTTP_ENGINE is native, which does not load here: uWebSockets.js is not installed; run npm install --include=optional, or set SVC_HTTP_ENGINE to auto',
    );
  });
});

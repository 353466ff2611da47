/**
 * Finds a build of uWebSockets.js that runs on this machine. Each is compiled for some releases of Node.js and needs a
 * C library; none is for all.
 */
import { createRequire } from 'node:module';
import { messageOf } from '../../core/base/text.ts';

export type Uws = typeof import('uWebSockets.js');

/** The Node.js that looks for a build. */
export type Machine = {
  readonly platform: string;
  readonly arch: string;
  /** The version of Node.js, such as `24.21.0`. */
  readonly node: string;
  /** The version of its interface for native modules, which names the files of builds. */
  readonly modules: string;
};

const THIS_MACHINE: Machine = {
  platform: process.platform,
  arch: process.arch,
  node: process.versions.node,
  modules: process.versions.modules,
};

type Build = {
  /** As package.json names it. */
  readonly name: string;
  readonly label: string;
  readonly fileFor: (machine: Machine) => string;
};

/**
 * In the order in which they are tried. The first is whatever is installed under the library's own name: the build of
 * package.json, or the official one in its place. The second one's binary is loaded directly, since its package loads a
 * stand-in, with a long warning, where that fails.
 */
const BUILDS: readonly Build[] = [
  { name: 'uWebSockets.js', label: 'uWebSockets.js', fileFor: () => 'uWebSockets.js' },
  {
    name: 'uwebsockets.js-for-old-glibc',
    label: 'uWebSockets.js 20.30',
    fileFor: ({ platform, arch, modules }) =>
      `uwebsockets.js-for-old-glibc/binaries/uws_${platform}_${arch}_${modules}.node`,
  },
];

export type Missing = { readonly label: string; readonly reason: string };
export type Found =
  | { readonly kind: 'found'; readonly library: Uws; readonly label: string }
  | { readonly kind: 'none'; readonly missing: readonly Missing[] };

type Load = (file: string) => unknown;
const require = createRequire(import.meta.url);

/** Tries one build after the other. Never throws: what does not load is named in `missing`. */
export function findNativeBuild(load: Load = require, machine = THIS_MACHINE): Found {
  const missing: Missing[] = [];
  for (const { name, label, fileFor } of BUILDS) {
    try {
      const library = load(fileFor(machine));
      if (isUws(library)) return { kind: 'found', library, label };
      missing.push({ label, reason: 'is another package' });
    } catch (error) {
      missing.push({ label, reason: reasonOf(error, name, load, machine) });
    }
  }
  return { kind: 'none', missing };
}

const isUws = (library: unknown): library is Uws =>
  typeof library === 'object' && library !== null && 'App' in library && 'SSLApp' in library;

/** Shortens the loader's message, which may be pages long. */
function reasonOf(error: unknown, name: string, load: Load, { platform, arch, node }: Machine): string {
  const text = messageOf(error);
  const needed = [...text.matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor));
  if (needed.length > 0) return `needs glibc 2.${Math.max(...needed)}`;
  const file = /Cannot find module '([^']*)'/.exec(text)?.[1];
  // The library's own entry says what it supports, and after an empty line what happened.
  if (file === undefined) return `does not load (${text.split('\n\n').at(-1)?.split('\n', 1)[0]})`;
  const isInstalled = file.endsWith('.node') && (file.startsWith('./') || isThere(`${name}/package.json`, load));
  return isInstalled ? `has no build for Node.js ${majorOf(node)} on ${platform} ${arch}` : 'is not installed';
}

function isThere(file: string, load: Load): boolean {
  try {
    load(file);
    return true;
  } catch {
    return false;
  }
}

const majorOf = (node: string): number => Number.parseInt(node, 10);

const OFFICIAL = 'npm install uWebSockets.js@uNetworking/uWebSockets.js#v20.69.0';

/** Tells the operator how to fix it. */
function remedyFor(missing: readonly Missing[], { platform, node }: Machine): string {
  if (missing.every(({ reason }) => reason === 'is not installed')) return 'run npm install --include=optional';
  if (missing.some(({ reason }) => reason.startsWith('needs glibc')))
    return 'use a system with a newer glibc, such as Debian 13 or Ubuntu 24.04, or Node.js 20';
  return platform === 'linux' && majorOf(node) > 25
    ? `use Node.js 24, or ${OFFICIAL} (needs glibc 2.38)`
    : 'use Node.js 24 on Linux with glibc, macOS or Windows';
}

/** Why there is no build, and what to do, in one sentence. */
export const whyNone = (missing: readonly Missing[], machine = THIS_MACHINE): string =>
  `${missing.map(({ label, reason }) => `${label} ${reason}`).join(', ')}; ${remedyFor(missing, machine)}`;

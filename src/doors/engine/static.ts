/**
 * The dashboard's files: read at the start, compressed when first asked for, and served from memory (docs/spec.md,
 * HTTP).
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { ok } from '../../core/base/result.ts';
import type { Header } from '../shared/http-answer.ts';
import type { HttpReply, HttpRequest, Route } from './route.ts';

type Encoding = 'br' | 'gzip' | 'identity';
type StaticFile = {
  readonly type: string;
  readonly hash: string;
  readonly caching: Header;
  readonly content: (encoding: Encoding) => Uint8Array;
};

/** The highest quality takes thirty times as long, and saves a tenth: 4 KB of the whole dashboard. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } };

/** The paths of its pages, each of which opens the dashboard, whose script shows the page. */
const PAGES = [
  '/',
  '/operations',
  '/operations/:id',
  '/approvals',
  '/approvals/:id',
  '/alerts',
  '/agents',
  '/agents/:org/:team/:agent',
  '/policies',
  '/audit',
  '/budgets',
  '/keys',
  '/people',
  '/webhooks',
  '/cluster',
  '/changes',
] as const;

/** Built under names that change with what is in them, so that a browser never asks for them again. */
const HASHED = 'assets/';

/** Files of other types, such as notes and settings, are not published. */
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * No script, style or picture but the gateway's own, no other place to send anything to, and no page around this one.
 */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');

const SHARED_HEADERS: readonly Header[] = [
  ['Content-Security-Policy', CONTENT_SECURITY_POLICY],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
  ['Referrer-Policy', 'no-referrer'],
  ['Vary', 'Accept-Encoding'],
];

/**
 * Returns a route for each file of the folder, and for its index.html a route for each page. Throws if the folder is
 * missing.
 */
export function staticRoutes(folder: string): readonly Route[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .sort()
    .flatMap((name): readonly Route[] => {
      const type = TYPES[extname(name)];
      if (type === undefined) return [];
      const plain = name.split('\\').join('/');
      const file = readFile(join(folder, name), type, plain.startsWith(HASHED));
      const paths = name === 'index.html' ? PAGES : ([`/${plain}`] as const);
      return paths.map((path) => ({
        method: 'get',
        path,
        access: 'public',
        isQueryIgnored: true,
        limit: 'none',
        summary: 'A file of the dashboard',
        answers: { 200: { mediaTypes: [type] } },
        handle: async (request) => answer(file, request),
      }));
    });
}

// Kept, but asked about every time: after an upgrade nobody runs old scripts against a new gateway.
const ASKED: Header = ['Cache-Control', 'no-cache'];
const KEPT: Header = ['Cache-Control', 'public, max-age=31536000, immutable'];

function readFile(path: string, type: string, isHashed: boolean): StaticFile {
  const identity = readFileSync(path);
  const hash = createHash('sha256').update(identity).digest('base64url').slice(0, 22);
  const made: Partial<Record<Encoding, Uint8Array>> = { identity };
  const caching = isHashed ? KEPT : ASKED;
  return { type, hash, caching, content: (encoding) => (made[encoding] ??= compressed(identity, encoding)) };
}

const compressed = (content: Uint8Array, encoding: Encoding): Uint8Array =>
  encoding === 'br' ? brotliCompressSync(content, BROTLI) : gzipSync(content, { level: 9 });

function answer({ type, hash, caching, content }: StaticFile, { headers }: HttpRequest): HttpReply {
  const encoding = encodingFor(headers.get('accept-encoding') ?? '');
  // Two forms of one file are two things to a cache, so each has a tag of its own.
  const tag = `"${hash}-${encoding}"`;
  const own: readonly Header[] = [...SHARED_HEADERS, caching, ['ETag', tag]];
  if (matches(headers.get('if-none-match'), tag)) return ok({ status: 304, headers: own });
  return ok({
    status: 200,
    text: { type, content: content(encoding) },
    headers: encoding === 'identity' ? own : [...own, ['Content-Encoding', encoding]],
  });
}

/** The best form that the client takes. A weight of 0 is a no. */
function encodingFor(accepted: string): Encoding {
  const words = accepted
    .toLowerCase()
    .split(',')
    .map((word) => word.replaceAll(' ', ''));
  const takes = (name: string): boolean =>
    words.some((word) => word === name || (word.startsWith(`${name};q=`) && Number(word.slice(name.length + 3)) > 0));
  if (takes('br')) return 'br';
  return takes('gzip') ? 'gzip' : 'identity';
}

function matches(ifNoneMatch: string | undefined, tag: string): boolean {
  const candidates = ifNoneMatch?.split(',') ?? [];
  return candidates.some((candidate) => candidate.trim().replace(/^W\//, '') === tag || candidate.trim() === '*');
}

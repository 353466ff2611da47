/** The cost of a body before its sender is known: a megabyte of JSON may take the thread half a second to parse. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { fail, ok } from '../../../src/core/base/result.ts';
import { serveRoutes } from '../../../src/doors/api/server.ts';
import { DoorState } from '../../../src/doors/engine/door-state.ts';
import type { Engine } from '../../../src/doors/engine/engine.ts';
import { ENGINES } from '../../support/engines.ts';

const BODY = '{"mark":"parsed"}';
const echo = async ({ body }: { readonly body: unknown }) => ok({ status: 200, body } as const);

let http: Engine;
let url: string;
describe.each(ENGINES)('unread bodies over %s', (_name, create) => {
  beforeEach(async () => {
    http = create();
    const link = {
      ask: () => Promise.reject(new Error('not asked')),
      call: async (_name: string, { limit }: { readonly limit?: string }) =>
        limit === 'address' ? fail({ kind: 'rate_limited', limit: 1, retryAfterSecs: 1 }) : ok(undefined),
    };
    const authenticate = async (bearer: string) =>
      bearer === 'nobody'
        ? fail({ kind: 'unauthenticated', detail: 'unknown' })
        : ok({ subject: 'key:1', scopes: bearer === 'writer' ? ['write'] : ['read'], orgId: null });
    serveRoutes(http, {
      door: new DoorState(Infinity),
      ports: { link, authenticate } as never,
      routes: [
        { method: 'post', path: '/scoped', access: { scope: 'write' }, summary: 'Echoes', handle: echo },
        { method: 'post', path: '/limited', access: 'public', summary: 'Echoes', handle: echo },
        { method: 'post', path: '/public', access: 'public', limit: 'none', summary: 'Echoes', handle: echo },
        {
          method: 'post',
          path: '/ignoring',
          access: 'public',
          limit: 'none',
          isBodyIgnored: true,
          summary: 'Echoes',
          handle: async () => ok({ status: 204 } as const),
        },
      ],
      corsOrigins: [],
      own: { origins: [], hosts: undefined },
      bodyTimeoutMs: 60_000,
      onError: (error) => {
        throw error;
      },
      onCut: () => undefined,
    });
    url = `http://127.0.0.1:${await http.listen('127.0.0.1', 0, false)}`;
  });
  afterEach(() => {
    vi.restoreAllMocks();
    http.close();
  });

  /** The status of the answer, and whether the body was parsed for it. */
  async function send(path: string, bearer?: string): Promise<[status: number, isParsed: boolean]> {
    const parse = vi.spyOn(JSON, 'parse');
    const { status } = await fetch(url + path, {
      method: 'POST',
      body: BODY,
      headers: {
        'content-type': 'application/json',
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      },
    });
    return [status, parse.mock.calls.some(([text]) => text === BODY)];
  }

  test.each([
    ['without a credential', '/scoped', undefined, 401],
    ['with one of nobody', '/scoped', 'nobody', 401],
    ['with one that may only read', '/scoped', 'reader', 403],
    ['whose requests are too many', '/limited', undefined, 429],
    ['where no body is looked at', '/ignoring', undefined, 204],
  ])('no body is parsed of a request %s', async (_who, path, bearer, status) => {
    expect(await send(path, bearer)).toEqual([status, false]);
  });

  test.each([
    ['/scoped', 'writer'],
    ['/public', undefined],
  ])('a body for %s of a permitted caller is read, though its bytes are gone by then', async (path, bearer) => {
    const response = await fetch(url + path, {
      method: 'POST',
      body: BODY,
      headers: {
        'content-type': 'application/json',
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      },
    });
    expect({ status: response.status, body: await response.json() }).toEqual({ status: 200, body: { mark: 'parsed' } });
  });
});

import { afterEach, expect, test } from 'vitest';
import { ok } from '../../../src/core/result.ts';
import type { Link } from '../../../src/gateway/link.ts';
import { DoorState } from '../../../src/wire/http/door-state.ts';
import { createHttpApp, type HttpApp } from '../../../src/wire/http/http-app.ts';
import { Stream } from '../../../src/wire/ws/stream.ts';
import { openStream, Refused } from '../../support/stream.ts';

let http: HttpApp | undefined;
afterEach(() => http?.close());

test('who asks for a stream while the gateway shuts down is told just that', async () => {
  http = createHttpApp(() => undefined);
  let askForPermit = (): void => undefined;
  const asked = new Promise<void>((resolve) => { askForPermit = resolve; });
  let givePermit = (): void => undefined;
  const link = {
    call: () => {
      askForPermit();
      return new Promise((resolve) => { givePermit = () => resolve(ok(undefined)); });
    },
  } as unknown as Link;
  const reader = { principal: { subject: 'key:r', scopes: ['read'], orgId: null }, expiresAtMs: Infinity, credentialId: 'key:r' } as const;
  const stream = new Stream(http.app, {
    door: new DoorState(Infinity),
    link, tellInterest: () => undefined, authenticate: async () => ok(reader), origins: [], maxStreams: 10, name: 'test',
    onError: (error) => { throw error; },
  });
  const port = await http.listen('127.0.0.1', 0, false);

  const opening = openStream({ url: `http://127.0.0.1:${port}` }).catch((error: unknown) => error);
  await asked;
  stream.close();
  givePermit();
  const refused = await opening;
  if (!(refused instanceof Refused)) throw refused;
  expect([refused.status, refused.body.code, refused.body.detail]).toEqual([503, 'shutting_down', 'this gateway is shutting down; connect again']);
});

test('a key that is revoked while it is being verified opens no stream', async () => {
  http = createHttpApp(() => undefined);
  let verify = (): void => undefined;
  let tellOfAsking = (): void => undefined;
  const asked = new Promise<void>((resolve) => { tellOfAsking = resolve; });
  const reader = { principal: { subject: 'key:r', scopes: ['read'], orgId: null }, expiresAtMs: Infinity, credentialId: 'key:r' } as const;
  const stream = new Stream(http.app, {
    door: new DoorState(Infinity),
    link: { call: async () => ok(undefined) } as unknown as Link,
    tellInterest: () => undefined, origins: [], maxStreams: 10, name: 'test',
    authenticate: () => {
      tellOfAsking();
      return new Promise((resolve) => { verify = () => resolve(ok(reader)); });
    },
    onError: (error) => { throw error; },
  });
  const port = await http.listen('127.0.0.1', 0, false);

  const opening = openStream({ url: `http://127.0.0.1:${port}` }).catch((error: unknown) => error);
  await asked;
  stream.revokeSubject('key:r');
  verify();
  const refused = await opening;
  if (!(refused instanceof Refused)) throw refused;
  expect([refused.status, refused.body.code, refused.body.detail]).toEqual([401, 'unauthenticated', 'the credential was revoked']);
  expect(stream.size).toBe(0);
});

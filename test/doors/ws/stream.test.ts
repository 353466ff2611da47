import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { fail, ok, type Result } from '../../../src/core/base/result.ts';
import type { Fault } from '../../../src/core/fault.ts';
import { DoorState } from '../../../src/doors/engine/door-state.ts';
import type { Engine } from '../../../src/doors/engine/engine.ts';
import { Stream } from '../../../src/doors/ws/stream.ts';
import type { Link } from '../../../src/use-cases/use-cases.ts';
import { createNode, ENGINES } from '../../support/engines.ts';
import { head, openSocket } from '../../support/raw-http.ts';
import { openStream, Refused } from '../../support/stream.ts';

const HANDSHAKE = head('GET /api/v1/stream HTTP/1.1', {
  Authorization: 'Bearer key',
  Upgrade: 'websocket',
  Connection: 'Upgrade',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version': '13',
});

let http: Engine | undefined;

describe.each(ENGINES)('stream over %s', (_name, create) => {
  afterEach(() => http?.close());

  test('a stream requested during shutdown is refused with that reason', async () => {
    http = create();
    let askForPermit = (): void => undefined;
    const asked = new Promise<void>((resolve) => {
      askForPermit = resolve;
    });
    let givePermit = (): void => undefined;
    const link = {
      call: () => {
        askForPermit();
        return new Promise((resolve) => {
          givePermit = () => resolve(ok(undefined));
        });
      },
    } as unknown as Link;
    const reader = { principal: { subject: 'key:r', scopes: ['read'], orgId: null }, expiresAtMs: Infinity } as const;
    const stream = new Stream(http, {
      door: new DoorState(Infinity),
      link,
      sendInterest: () => undefined,
      authenticate: async () => ok(reader),
      own: { origins: [], hosts: undefined },
      maxStreams: 10,
      nowMs: Date.now,
      name: 'test',
      onError: (error) => {
        throw error;
      },
    });
    const port = await http.listen('127.0.0.1', 0, false);

    const opening = openStream({ url: `http://127.0.0.1:${port}` }).catch((error: unknown) => error);
    await asked;
    stream.close();
    givePermit();
    const refused = await opening;
    if (!(refused instanceof Refused)) throw refused;
    expect({ status: refused.status, code: refused.body.code, detail: refused.body.detail }).toEqual({
      status: 503,
      code: 'shutting_down',
      detail: 'the gateway is shutting down; reconnect',
    });
  });

  /** A stream whose readers wait for the permit of the main thread, and somebody who asks for it. */
  async function askForPermit() {
    http = create();
    let givePermit: ((permit: Result<undefined, Fault>) => void) | undefined;
    const stream = new Stream(http, {
      door: new DoorState(Infinity),
      link: {
        call: () =>
          new Promise((resolve) => {
            givePermit = resolve;
          }),
      } as unknown as Link,
      sendInterest: () => undefined,
      own: { origins: [], hosts: undefined },
      maxStreams: 10,
      nowMs: Date.now,
      name: 'test',
      authenticate: async () =>
        ok({ principal: { subject: 'key:r', scopes: ['read'], orgId: null }, expiresAtMs: Infinity }),
      onError: (error) => {
        throw error;
      },
    });
    const socket = openSocket({ url: `http://127.0.0.1:${await http.listen('127.0.0.1', 0, false)}` });
    socket.write(HANDSHAKE);
    let received = '';
    socket.on('data', (piece: Buffer) => {
      received += piece.toString();
    });
    await expect.poll(() => givePermit).toBeDefined();
    expect(stream.size).toBe(1);
    return { stream, socket, givePermit: givePermit!, received: () => received };
  }

  test('a key revoked while its request is counted opens no stream', async () => {
    const { stream, socket, givePermit, received } = await askForPermit();
    stream.revokeSubject('key:r');
    givePermit(ok(undefined));
    await expect.poll(received).toMatch(/^HTTP\/1\.1 401 [^]*"detail":"the credential was revoked"/);
    expect(stream.size).toBe(0);
    socket.destroy();
  });

  test('a stream refused by the rate limit takes no place', async () => {
    const { stream, socket, givePermit, received } = await askForPermit();
    givePermit(fail({ kind: 'rate_limited', retryAfterSecs: 3, limit: 20 }));
    await expect.poll(received).toMatch(/^HTTP\/1\.1 429 /);
    expect(stream.size).toBe(0);
    socket.destroy();
  });

  test('a client that goes before its stream opens frees its place', async () => {
    const { stream, socket, givePermit } = await askForPermit();
    socket.destroy();
    await new Promise((resolve) => socket.once('close', resolve));
    await sleep(50);
    givePermit(ok(undefined));
    await expect.poll(() => stream.size).toBe(0);
  });

  test('a key revoked while it is verified opens no stream', async () => {
    http = create();
    let verify = (): void => undefined;
    let onAsked = (): void => undefined;
    const asked = new Promise<void>((resolve) => {
      onAsked = resolve;
    });
    const reader = { principal: { subject: 'key:r', scopes: ['read'], orgId: null }, expiresAtMs: Infinity } as const;
    const stream = new Stream(http, {
      door: new DoorState(Infinity),
      link: { call: async () => ok(undefined) } as unknown as Link,
      sendInterest: () => undefined,
      own: { origins: [], hosts: undefined },
      maxStreams: 10,
      nowMs: Date.now,
      name: 'test',
      authenticate: () => {
        onAsked();
        return new Promise((resolve) => {
          verify = () => resolve(ok(reader));
        });
      },
      onError: (error) => {
        throw error;
      },
    });
    const port = await http.listen('127.0.0.1', 0, false);

    const opening = openStream({ url: `http://127.0.0.1:${port}` }).catch((error: unknown) => error);
    await asked;
    stream.revokeSubject('key:r');
    verify();
    const refused = await opening;
    if (!(refused instanceof Refused)) throw refused;
    expect({ status: refused.status, code: refused.body.code, detail: refused.body.detail }).toEqual({
      status: 401,
      code: 'unauthenticated',
      detail: 'the credential was revoked',
    });
    expect(stream.size).toBe(0);
  });
});

describe('stream over node:http alone', () => {
  afterEach(() => {
    http?.close();
    vi.useRealTimers();
  });

  /** A stream that anybody may open. */
  const openToAll = (engine: Engine): Stream =>
    new Stream(engine, {
      door: new DoorState(Infinity),
      link: { call: async () => ok(undefined) } as unknown as Link,
      sendInterest: () => undefined,
      own: { origins: [], hosts: undefined },
      maxStreams: 10,
      nowMs: Date.now,
      name: 'test',
      authenticate: async () =>
        ok({ principal: { subject: 'key:r', scopes: ['read'], orgId: null }, expiresAtMs: Infinity }),
      onError: (error) => {
        throw error;
      },
    });

  test('a reader without a pong for half a minute loses its place', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    http = createNode();
    const stream = openToAll(http);
    const gateway = { url: `http://127.0.0.1:${await http.listen('127.0.0.1', 0, false)}` };
    const { socket } = await openStream(gateway);
    const dead = openSocket(gateway);
    dead.write(HANDSHAKE);
    await once(dead, 'data');
    const asked = [once(socket, 'ping'), once(dead, 'data')];
    vi.advanceTimersByTime(30_000);
    await Promise.all(asked);
    const answered = once(socket, 'pong');
    socket.ping(); // behind its answer
    await answered;
    expect(stream.size).toBe(2);
    vi.advanceTimersByTime(30_000);
    await expect.poll(() => stream.size).toBe(1);
    expect(socket.readyState).toBe(socket.OPEN);
    socket.terminate();
    dead.destroy();
  });

  test('a handshake refused for its offer keeps no place', async () => {
    http = createNode();
    const stream = openToAll(http);
    const socket = openSocket({ url: `http://127.0.0.1:${await http.listen('127.0.0.1', 0, false)}` });
    socket.write(HANDSHAKE.replace('\r\n\r\n', '\r\nSec-WebSocket-Protocol: ,,\r\n\r\n'));
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1\.1 400 /);
    expect(stream.size).toBe(0);
    socket.destroy();
  });
});

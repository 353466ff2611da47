/** Input that is bad as HTTP: in framing, time, size of its pieces and number of connections. */
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { ADMIN_KEY, type TestGateway } from '../support/gateway.ts';
import { residentMib } from '../support/memory.ts';
import { head, openSocket, sendRaw } from '../support/raw-http.ts';

export const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
export const TOKEN = 'crawler-token-0123456789-0123456789-0123';
export const CHECK = '/svc.governance.v1.PolicyService/CheckAction';
export const AUTH = { authorization: `Bearer ${ADMIN_KEY}` };
export const JSON_TYPE = { 'content-type': 'application/json' };

/** Declares tests at a gateway that others use, too: afterwards it is as before, and `check` is still answered. */
export function badConnections(gateway: () => TestGateway, check: () => Promise<{ status: number }>): void {
  test('bodies in one-byte chunks take no more memory than their bytes need', async () => {
    const before = residentMib(gateway().process.pid);
    const pieces = Buffer.from('1\r\n{\r\n'.repeat(8_000));
    const sockets = await Promise.all(
      Array.from(
        { length: 20 },
        () =>
          new Promise<Socket>((resolve) => {
            const socket = openSocket(gateway());
            let sent = 0;
            const more = (error?: Error | null): void => {
              if (error) return; // cut off: the socket says so itself
              sent += 8_000;
              if (sent > 900_000) resolve(socket);
              else socket.write(pieces, more);
            };
            socket.on('error', () => undefined);
            socket.on('close', () => resolve(socket));
            socket.on('connect', () =>
              socket.write(head(`POST ${CHECK} HTTP/1.1`, { ...JSON_TYPE, 'Transfer-Encoding': 'chunked' }), more),
            );
          }),
      ),
    );
    expect(residentMib(gateway().process.pid) - before).toBeLessThan(250);
    for (const socket of sockets) socket.destroy();
    expect((await check()).status).toBe(200);
  });

  // These and those of the next suite are all waited for at once: the longest for ten seconds.
  describe.concurrent('time', () => {
    test('a half-sent body that stalls is cut off', async () => {
      const { statuses, isClosed } = await sendRaw(gateway(), [
        head('POST /api/v1/ops HTTP/1.1', { ...AUTH, ...JSON_TYPE, 'Content-Length': '100' }),
        '{"op_id"',
      ]);
      expect({ statuses, isClosed }).toEqual({ statuses: [], isClosed: true });
    });

    test('a body that never starts is cut off', async () => {
      const { isClosed } = await sendRaw(gateway(), [
        head('POST /api/v1/ops HTTP/1.1', { ...AUTH, ...JSON_TYPE, 'Content-Length': '100' }),
      ]);
      expect(isClosed).toBe(true);
    });

    test('a body that drips is cut off, however steadily', async () => {
      const drops = Array.from({ length: 1_000 }, () => [{ waitMs: 150 }, ' ']).flat();
      const { statuses, isClosed } = await sendRaw(gateway(), [
        head(`POST ${CHECK} HTTP/1.1`, { ...JSON_TYPE, 'Content-Length': '1000' }),
        ...drops,
      ]);
      expect({ statuses, isClosed }).toEqual({ statuses: [], isClosed: true });
    });

    test('a head that stalls is cut off', async () => {
      const { isClosed } = await sendRaw(gateway(), ['GET /api/v1/ops HTTP/1.1\r\nHost: localhost\r\nX-Half']);
      expect(isClosed).toBe(true);
    });

    test('a head that drips forever is cut off', async () => {
      const drops = Array.from({ length: 100 }, (_, index) => [{ waitMs: 200 }, `X-${index}: y\r\n`]).flat();
      const { statuses, isClosed } = await sendRaw(gateway(), [
        'GET /api/v1/ops HTTP/1.1\r\nHost: localhost\r\n',
        ...drops,
      ]);
      expect({ statuses: statuses.filter((status) => status !== 408), isClosed }).toEqual({
        statuses: [],
        isClosed: true,
      }); // node:http says why
    });
  });

  describe.concurrent('framing', () => {
    const smuggled = '{"op_id":"smuggled:op","agent":{"team_id":"search","agent_id":"crawler"}}';
    const inner = `${head('POST /api/v1/ops HTTP/1.1', { ...AUTH, ...JSON_TYPE, 'Content-Length': String(smuggled.length) })}${smuggled}`;

    test.each([
      ['a length and chunks', 'Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
      ['chunks and a length', 'Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n'],
      ['two lengths', 'Content-Length: 0\r\nContent-Length: 300\r\n\r\n'],
      ['an unknown coding', 'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n'],
      ['a list of codings', 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
      ['a chunk size that overflows', 'Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n'],
      ['a chunk size that is none', 'Transfer-Encoding: chunked\r\n\r\nzz\r\n'],
      ['a chunk size behind a space', 'Transfer-Encoding: chunked\r\n\r\n 2\r\n{}\r\n0\r\n\r\n'],
      ['an empty chunk size', 'Transfer-Encoding: chunked\r\n\r\n\r\n{}\r\n0\r\n\r\n'],
      ['line feeds alone around chunks', 'Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n'],
      ['other bytes at the end of a chunk', 'Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n'],
      ['other bytes at the end of the last chunk', 'Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nXX'],
      ['a negative length', 'Content-Length: -1\r\n\r\n'],
      ['a length that is none', 'Content-Length: 6x\r\n\r\n'],
      ['a length with a plus', 'Content-Length: +0\r\n\r\n'],
      ['a space before the colon', 'Content-Length : 300\r\n\r\n'],
      ['a folded header', 'X-A: b\r\n Content-Length: 300\r\n\r\n'],
      ['a line feed alone', 'X-A: b\nContent-Length: 300\r\n\r\n'],
    ])('%s smuggles in no second request', async (_what, framing) => {
      const { statuses, isClosed } = await sendRaw(
        gateway(),
        [`POST /nope HTTP/1.1\r\nHost: localhost\r\n${framing}${inner}`],
        {
          answers: 2,
          timeoutMs: 1_500,
        },
      );
      expect({
        accepted: statuses.filter((status) => status < 300),
        hasEnded: isClosed || statuses.length < 2,
      }).toEqual({ accepted: [], hasEnded: true });
      expect((await gateway().call('GET', '/api/v1/ops/smuggled:op')).status).toBe(404);
    });

    test('another transfer coding of a check smuggles in no second request', async () => {
      const { statuses, isClosed } = await sendRaw(
        gateway(),
        [`POST ${CHECK} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${inner}`],
        { answers: 2 },
      );
      expect({ statuses, isClosed }).toEqual({ statuses: [], isClosed: true });
      expect((await gateway().call('GET', '/api/v1/ops/smuggled:op')).status).toBe(404);
    });

    test('two lengths of a check smuggle in no second request', async () => {
      const { statuses, isClosed } = await sendRaw(
        gateway(),
        [
          `POST ${CHECK} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
        ],
        { answers: 2 },
      );
      expect({ statuses: statuses.filter((status) => status < 300), isClosed }).toEqual({
        statuses: [],
        isClosed: true,
      });
      expect((await gateway().call('GET', '/api/v1/ops/smuggled:op')).status).toBe(404);
    });

    test.each([
      ['empty lines', '\r\n\r\n\r\n'],
      ['half a request line', 'GET\r\n\r\n'],
      ['another version', 'GET / HTTP/9.9\r\n\r\n'],
      ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
      ['a TLS greeting', '\x16\x03\x01\x02\x00\x01\x00'],
      ['zeros', '\0\0\0\0'],
      ['a path of 100 KB', `GET ${'/a'.repeat(50_000)} HTTP/1.1\r\n\r\n`],
    ])('%s are answered with an error or a closed connection', async (_what, bytes) => {
      const { statuses, isClosed } = await sendRaw(gateway(), [bytes]);
      expect(isClosed || (statuses[0] ?? 0) >= 400).toBe(true);
    });

    test('pipelined requests are answered in order, or the connection is closed', async () => {
      const checkOf = (index: number): string => {
        const body = JSON.stringify({
          agent: AGENT,
          credentialToken: TOKEN,
          traceId: 'pipe',
          spanId: String(index),
          action: 'tool.call',
          resource: 'web_search',
          dryRun: true,
          correlationId: `c-${index}`,
        });
        return `${head(`POST ${CHECK} HTTP/1.1`, { ...JSON_TYPE, 'Content-Length': String(body.length) })}${body}`;
      };
      const { text, statuses, isClosed } = await sendRaw(
        gateway(),
        [Array.from({ length: 20 }, (_, index) => checkOf(index)).join('')],
        { answers: 20 },
      );
      const order = [...text.matchAll(/"correlationId":"c-(\d+)"/g)].map((match) => Number(match[1]));
      expect(order).toEqual(Array.from({ length: order.length }, (_, index) => index));
      expect(isClosed || statuses.length === 20).toBe(true);
    });
  });

  test('thousands of connections opened and dropped leave the gateway unchanged', async () => {
    const TOTAL = 2_000;
    const AT_ONCE = 250;
    for (let opened = 0; opened < TOTAL; opened += AT_ONCE) {
      await Promise.all(
        Array.from(
          { length: AT_ONCE },
          (_, index) =>
            new Promise<void>((resolve) => {
              const socket = openSocket(gateway());
              socket.on('error', () => resolve());
              socket.on('close', () => resolve());
              socket.on('connect', () => {
                if (index % 3 === 0) socket.write('POST /api/v1/ops HTTP/1.1\r\nContent-Le');
                if (index % 3 === 1) socket.resetAndDestroy();
                else socket.destroy();
              });
            }),
        ),
      );
    }
    expect((await check()).status).toBe(200);
  });
}

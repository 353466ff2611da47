/** Texts that would stall whoever parses them, on the ways of MCP. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, test } from 'vitest';
import { basicEnvironment, wholeEnvironment } from '../../src/mcp/child.ts';
import { boundedFetch } from '../../src/mcp/http/bounded-fetch.ts';
import { FROM_CLIENT, FROM_UPSTREAM, isWithin, JsonMeter } from '../../src/mcp/json-bounds.ts';
import { type Noise, readMessages } from '../../src/mcp/stdio.ts';
import { fastestMs } from '../support/fastest.ts';

const bytes = (text: string): Buffer => Buffer.from(text);

describe('the bounds of JSON', () => {
  test.each([
    ['brackets in brackets', '['.repeat(201), false],
    ['mappings in mappings', '{"a":'.repeat(201), false],
    ['many small mappings', `[${'{},'.repeat(12_000)}1]`, false],
    ['brackets within a text', JSON.stringify(['[{,'.repeat(50_000)]), true],
    ['a quote that is escaped', String.raw`"\",[[[\\"`, true],
    ['as deep as may be', '['.repeat(200) + ']'.repeat(200), true],
  ])('take %s as they are', (_, text, isKept) => {
    expect(isWithin(FROM_CLIENT, bytes(text))).toBe(isKept);
  });

  test('count the same when a text comes byte by byte', () => {
    const meter = new JsonMeter({ marks: 3, depth: 2 });
    const taken = [...bytes(String.raw`{"a,\"[":[1,2`)].map((byte) => meter.take(Uint8Array.of(byte)));
    expect(taken.lastIndexOf(false)).toBe(-1);
    expect(meter.take(bytes(','))).toBe(false);
  });

  test('are not evaded by a quote on another line of an event', () => {
    const meter = new JsonMeter({ marks: 3, depth: 2 });
    expect(meter.take(bytes(': "\ndata: [[['))).toBe(false);
  });
});

describe('a line of a server', () => {
  const read = async (line: string): Promise<Noise | undefined> => {
    const stream = new PassThrough();
    let noise: Noise | undefined;
    const onNoise = (found: Noise): void => {
      noise = found;
    };
    const done = readMessages(stream, { onMessage: () => {}, onNoise, bounds: FROM_UPSTREAM, ready: () => undefined });
    stream.end(`${line}\n`);
    await done;
    return noise;
  };
  const brackets = '['.repeat(2_000_000);

  test('is not parsed with millions of brackets, and its answers are answered', async () => {
    const readAfterMs = async (): Promise<number> => {
      const startMs = performance.now();
      expect(await read(`{"jsonrpc":"2.0","id":7,"result":{"a":${brackets}`)).toMatchObject({ answered: 7 });
      expect(await read(`{"result":{"a":${brackets}},"jsonrpc":"2.0","id":8}`)).toMatchObject({ answered: 8 });
      return performance.now() - startMs;
    };
    expect(await fastestMs(500, readAfterMs)).toBeLessThan(500);
  });

  test('is refused if it asks something', async () => {
    expect(await read(`{"method":"roots/list","params":{"a":${brackets}},"jsonrpc":"2.0","id":9}`)).toMatchObject({
      problem: 'a line with too many values, or nested too deep',
      request: 9,
      method: 'roots/list',
    });
  });
});

describe('an answer over HTTP', () => {
  let server: Server | undefined;
  afterEach(() => void server?.close());
  const answered = async (type: string, body: string): Promise<string> => {
    server = createServer((_, response) => response.writeHead(200, { 'content-type': type }).end(body));
    await new Promise<void>((resolve) => {
      server?.listen(0, '127.0.0.1', resolve);
    });
    const response = await boundedFetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    return response.text().then(
      () => 'read',
      () => 'refused',
    );
  };

  test('is refused with too many values, as body and as event', async () => {
    const large = `[${'{},'.repeat(130_000)}1]`;
    expect(await answered('application/json', large)).toBe('refused');
    expect(await answered('text/event-stream', `: "\ndata: ${large}\n\n`)).toBe('refused');
  });

  test('is read with many values in many events', async () => {
    const event = `data: [${'{},'.repeat(20_000)}1]\n\n`;
    expect(await answered('text/event-stream', event.repeat(20))).toBe('read');
  });
});

describe('the environment of a server', () => {
  const env = {
    PATH: '/bin',
    HOME: '/root',
    LC_ALL: 'C',
    GITHUB_TOKEN: 's3cret',
    STRIPE_KEY: 's3cret',
    SVC_TOKEN: 'x',
  };

  test('holds, under a proxy, no secret of others and all that programs need', () => {
    expect(basicEnvironment(env, 'linux')).toEqual({ PATH: '/bin', HOME: '/root', LC_ALL: 'C' });
    expect(basicEnvironment({ Path: 'C:', SystemRoot: 'C:', GITHUB_TOKEN: 'x' }, 'win32')).toEqual({
      Path: 'C:',
      SystemRoot: 'C:',
    });
  });

  test("is, under a guard, its client's without the credentials for the gateway", () => {
    expect(wholeEnvironment(env)).toEqual({
      PATH: '/bin',
      HOME: '/root',
      LC_ALL: 'C',
      GITHUB_TOKEN: 's3cret',
      STRIPE_KEY: 's3cret',
    });
  });
});

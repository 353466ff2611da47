/** Connections on which nothing moves, which node:http leaves to us. */
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Answer, Engine } from '../../../src/doors/engine/engine.ts';
import { createNode } from '../../support/engines.ts';
import { head, openSocket } from '../../support/raw-http.ts';

const LISTENER = { gone: () => undefined, left: () => undefined, writable: () => undefined };

let http: Engine;
let url: string;
let answers: Answer[];
describe('node:http engine', () => {
  beforeEach(async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    http = createNode();
    answers = [];
    http.serve('/*', (answer, { method }) => {
      answer.listener = LISTENER;
      if (method === 'post') answer.readBody(() => undefined);
      answers.push(answer);
    });
    url = `http://127.0.0.1:${await http.listen('127.0.0.1', 0, false)}`;
  });
  afterEach(() => {
    http.close();
    vi.useRealTimers();
  });

  /** A client that has sent this, and been heard. */
  async function clientThatSent(text: string) {
    const socket = openSocket({ url });
    let isClosed = false;
    socket.on('close', () => {
      isClosed = true;
    });
    socket.on('error', () => undefined);
    const before = answers.length;
    socket.write(text);
    await expect.poll(() => answers.length).toBe(before + 1);
    pass(1); // it is seen to have moved
    return { socket, isClosed: () => isClosed };
  }
  const pass = (seconds: number): void => {
    for (let at = 0; at < seconds; at += 1) vi.advanceTimersByTime(1_000);
  };

  test('a client that stalls within its body is cut off after ten seconds', async () => {
    const client = await clientThatSent(`${head('POST / HTTP/1.1', { 'Content-Length': '10' })}12345`);
    pass(9);
    client.socket.write('6');
    await new Promise((resolve) => setTimeout(resolve, 50));
    pass(9); // counted anew, as it has moved
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(client.isClosed()).toBe(false);
    pass(2);
    await expect.poll(client.isClosed).toBe(true);
  });

  test('a client that waits for its answer is not cut off, an idle one after a minute', async () => {
    const client = await clientThatSent(head('GET / HTTP/1.1'));
    pass(300);
    answers[0]!.send(200, 'text/plain', [], 'late');
    await once(client.socket, 'data');
    pass(58);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(client.isClosed()).toBe(false);
    pass(4);
    await expect.poll(client.isClosed).toBe(true);
  });

  test('a client that does not read its answer is cut off after ten seconds', async () => {
    const client = await clientThatSent(head('GET / HTTP/1.1'));
    client.socket.pause();
    answers[0]!.send(200, 'text/plain', [], 'x'.repeat(16_000_000));
    await new Promise((resolve) => setTimeout(resolve, 100));
    pass(12);
    client.socket.resume();
    await expect.poll(client.isClosed).toBe(true);
  });
});

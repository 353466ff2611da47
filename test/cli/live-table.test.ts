import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import { createCliHome, type TerminalOptions } from '../support/cli.ts';

/** Loaded into the command: for it, time passes forty times as fast. */
const FAST = `data:text/javascript,${encodeURIComponent('const { now } = Date; const startMs = now(); Date.now = () => startMs + (now() - startMs) * 40;')}`;

type Send = (socket: WebSocket) => void;

/** A live table of what the test sends on one connection after the other. */
const watching = (...connections: readonly Send[]) => watchingIn({}, ...connections);

async function watchingIn(
  { words = [], ...options }: TerminalOptions & { readonly words?: readonly string[] },
  ...connections: readonly Send[]
) {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  const cli = createCliHome();
  onTestFinished(() => {
    server.close();
    cli.remove();
  });
  await once(server, 'listening');
  const left = [...connections];
  server.on('connection', (socket) => left.shift()?.(socket));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return cli.inTerminal(['ops', 'watch', '--api-url', url, ...words], {
    columns: 120,
    ...options,
  });
}

const change = (opId: string, state: string, agentId = 'a') =>
  JSON.stringify({
    event_type: 'ops_change',
    org_id: 'acme',
    agent_id: agentId,
    payload: { op_id: opId, state, updated_at: '2026-01-31T12:34:56.000Z', team_id: 't' },
  });

describe('live table', () => {
  test('shows the operations of one agent alone', async () => {
    const terminal = await watchingIn({ words: ['--agent', 'acme/t/b'] }, (socket) => {
      socket.send(change('other:1', 'running'));
      socket.send(change('wanted:1', 'running', 'b'));
    });
    await terminal.until(/: 1 running[^]*wanted:1 +running +acme\/t\/b/);
    expect(terminal.shown()).not.toContain('other:1');
  });

  test('a finished operation stays in the live table for a while', async () => {
    const terminal = await watchingIn({ env: { NODE_OPTIONS: `--import=${FAST}` } }, (socket) => {
      for (const state of ['running', 'completing']) socket.send(change('done:1', state));
      socket.send(change('killed:1', 'terminated'));
      socket.send(change('going:1', 'running'));
    });
    await terminal.until(
      /: 1 running, 1 completed, 1 terminated[^]*going:1 +running +acme\/t\/a +- +- +12:34:56[^]*killed:1[^]*done:1/,
    );
    // a whole frame: the next one may be half drawn
    const later = /: 1 running(?!,)(?:(?!\u001b\[H)[^])*going:1(?:(?!\u001b\[H)[^])*\u001b\[J/;
    await terminal.until(later);
    const [frame] = later.exec(terminal.shown()) ?? [];
    expect(frame).not.toMatch(/done:1|killed:1/);
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(0);
  });

  test('a full live table drops its oldest operations, with a notice', async () => {
    const terminal = await watching((socket) => {
      for (let nth = 0; nth <= 50_000; nth += 1) socket.send(change(`many-${nth}:1`, nth === 0 ? 'paused' : 'running'));
    });
    await terminal.until('50000 running (older ones not counted)');
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(0);
  });

  test('a live table that missed changes starts over with the current state', async () => {
    let miss = (): void => {};
    const terminal = await watching(
      (first) => {
        first.send(change('before:1', 'running'));
        miss = () => first.send(JSON.stringify({ event_type: 'lagged', payload: { dropped: 7 } }));
      },
      (second) => second.send(change('after:1', 'running')),
    );
    await terminal.until('before:1');
    miss();
    await terminal.until('Connection lost (changes came too fast to show); retrying.');
    await terminal.until('after:1');
    expect(terminal.shown().split('\u001b[H').at(-1)).not.toContain('before:1');
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(0);
  });

  test('a live table of thousands counts them all', async () => {
    const terminal = await watching((socket) => {
      for (let nth = 0; nth < 7_000; nth += 1) socket.send(change(`many-${nth}:1`, nth < 10 ? 'paused' : 'running'));
    });
    await terminal.until('6990 running, 10 paused');
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(0);
  });

  test('Ctrl-Z restores the terminal, and fg shows the live table again', async () => {
    const terminal = await watchingIn({ script: 'set -m; "$@"; echo "the shell is back"; fg' });
    await terminal.until('q to quit.');
    terminal.type('\u001a');
    await terminal.until(
      /\u001b\[\?25h\u001b\[\?1049l[^?]*the shell is back[^]*\u001b\[\?1049h\u001b\[\?25l[^]*no operations in flight[^]*q to quit\./,
    );
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(0);
  });

  test('Ctrl-Z does not stop the live table where no shell could resume it', async () => {
    const terminal = await watching();
    await terminal.until('q to quit.');
    terminal.type('\u001a');
    await terminal.until(
      /\u001b\[\?25h\u001b\[\?1049l[^]*\u001b\[\?1049h\u001b\[\?25l[^]*no operations in flight[^]*q to quit\./,
    );
    terminal.type('\u0003');
    expect(await terminal.ended).toBe(0);
  });
});

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { BACKLOG, canSharePort, listenForGrpc } from '../../../src/doors/shared/listener.ts';
import { ifThereSync } from '../../../src/system/files.ts';
import { eventually } from '../../support/eventually.ts';

/** As the system says. */
const mayWait = Number(ifThereSync(() => readFileSync('/proc/sys/net/core/somaxconn', 'utf8')) ?? 0);

describe('listener', () => {
  test.each([
    ['20.19.0', 'linux', false],
    ['22.11.0', 'linux', false],
    ['22.12.0', 'linux', true],
    ['23.0.0', 'linux', false],
    ['23.1.0', 'linux', true],
    ['24.0.0', 'linux', true],
    ['24.0.0', 'darwin', false],
  ] as const)('Node.js %s on %s: threads can share a port: %s', (version, platform, expected) => {
    expect(canSharePort(version, platform)).toBe(expected);
  });

  const options = {
    host: '127.0.0.1',
    isShared: false,
    maxConnections: 1_000,
    onConnection: () => undefined,
    onError: () => undefined,
  };

  test('a port in use is an error with the name of the reason', async () => {
    const first = await listenForGrpc({ ...options, port: 0 });
    await expect(listenForGrpc({ ...options, port: first.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    await first.close();
  });

  test('a connection over the limit is closed, logged once, and room returns', async () => {
    const errors: string[] = [];
    const listener = await listenForGrpc({
      ...options,
      port: 0,
      maxConnections: 2,
      onError: (error) => errors.push(error.message),
    });
    const open = () =>
      new Promise<{ isKept: boolean; socket: Socket }>((resolve) => {
        const socket = connect(listener.port, '127.0.0.1');
        socket.on('error', () => undefined);
        socket.on('close', () => resolve({ isKept: false, socket }));
        setTimeout(() => resolve({ isKept: true, socket }), 200);
        socket.resume();
      });
    const first = await open();
    const second = await open();
    expect([first.isKept, second.isKept, (await open()).isKept, (await open()).isKept]).toEqual([
      true,
      true,
      false,
      false,
    ]);
    expect(errors).toEqual(['2 connections are open already, as many as SVC_MAX_GRPC_CONNECTIONS allows']);
    first.socket.destroy();
    await eventually(async () => {
      const next = await open();
      next.socket.destroy();
      expect(next.isKept).toBe(true);
    });
    second.socket.destroy();
    await listener.close();
  });

  // More than Node.js lets wait by itself.
  test.runIf(mayWait >= BACKLOG)('connections wait in thousands while the thread is busy', async () => {
    const listener = await listenForGrpc({ ...options, maxConnections: 10_000, port: 0 });
    const client = `
      let connected = 0;
      for (let nth = 0; nth < 1_000; nth += 1)
        require('net').connect(${listener.port}, '127.0.0.1', () => (connected += 1)).on('error', () => 0);
      const look = () => (connected === 1_000 || performance.now() > 20_000 ? process.exit(connected / 10) : setTimeout(look, 10));
      look();`;
    // This thread accepts nothing until the client has ended.
    const { status } = spawnSync(process.execPath, ['-e', client]);
    expect(status).toBe(100);
    listener.cut();
  });

  test.runIf(canSharePort())('two listeners on one port each get some of the connections', async () => {
    const got = [0, 0];
    const listen = (index: 0 | 1, port: number) =>
      listenForGrpc({
        ...options,
        port,
        isShared: true,
        onConnection: (socket) => {
          got[index]! += 1;
          socket.destroy();
        },
      });
    const first = await listen(0, 0);
    const second = await listen(1, first.port);
    await Promise.all(
      Array.from(
        { length: 100 },
        () =>
          new Promise<void>((resolve) => {
            const socket = connect(first.port, '127.0.0.1');
            socket.on('error', () => undefined);
            socket.on('close', () => resolve());
            socket.resume();
          }),
      ),
    );
    expect(got[0]! + got[1]!).toBe(100);
    expect(Math.min(...got)).toBeGreaterThan(0);
    await Promise.all([first.close(), second.close()]);
  });
});

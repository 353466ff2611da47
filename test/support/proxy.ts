/** A TCP proxy that can fail as networks do: cut every connection, pass nothing on, or refuse. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export type TestProxy = {
  /** `host:port`. */
  readonly address: string;
  /** Cuts every connection; new ones are served. */
  cut(): void;
  /** Keeps the connections, also new ones, but passes nothing on, until `thaw`. */
  freeze(): void;
  thaw(): void;
  /** Passes what is sent from now on only after so long. */
  delay(ms: number): void;
  /** Cuts every connection, and each new one as soon as it comes, until `serve`. */
  refuse(): void;
  /** As `refuse`, from the moment at which a client sends this text. */
  refuseFrom(text: string): void;
  readonly isRefusing: () => boolean;
  /**
   * Cuts the one connection on which a client sends this text next: before it has passed, or when the answer to it
   * comes.
   */
  cutAt(text: string, when: 'asked' | 'answered'): void;
  serve(): void;
  /** Leads new connections to another `host:port`; those that are there stay. */
  pointTo(target: string): void;
  /** Connections accepted so far. */
  readonly accepted: () => number;
  /**
   * How often a client has said something that it did not say before the last answer. With a delay: without one, an
   * answer may come between two halves of a question.
   */
  readonly roundTrips: () => number;
  close(): Promise<void>;
};

/** The same URL with a proxy in between, which ends with the test. */
export async function throughProxy(direct: string): Promise<{ readonly url: URL; readonly proxy: TestProxy }> {
  const url = new URL(direct);
  const proxy = await startProxy(url.host);
  onTestFinished(() => proxy.close());
  url.host = proxy.address;
  return { url, proxy };
}

export async function startProxy(target: string): Promise<TestProxy> {
  let [host = '', port = ''] = target.split(':');
  const sockets = new Set<Socket>();
  let isFrozen = false;
  let isRefusing = false;
  let delayMs = 0;
  let last: string | undefined;
  let cutting: { readonly text: string; readonly when: 'asked' | 'answered' } | undefined;
  let accepted = 0;
  let roundTrips = 0;
  const server = createServer((near) => {
    accepted += 1;
    if (isRefusing) return void near.destroy();
    const far = connect(Number(port), host);
    let isAnswered = true;
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => {
        if (from === near && isAnswered) roundTrips += 1;
        isAnswered = from === far;
        if (from === near && last !== undefined && bytes.includes(last)) return refuse();
        if (from === near && cutting !== undefined && bytes.includes(cutting.text)) {
          const { when } = cutting;
          cutting = undefined;
          if (when === 'asked') return void near.destroy();
          far.removeAllListeners('data').once('data', () => near.destroy());
        }
        if (delayMs === 0) to.write(bytes);
        else setTimeout(() => to.write(bytes), delayMs);
      });
      from.on('error', () => {});
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      if (isFrozen) from.pause();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const refuse = (): void => {
    isRefusing = true;
    cut();
  };
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    freeze: () => {
      isFrozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw: () => {
      isFrozen = false;
      for (const socket of sockets) socket.resume();
    },
    delay: (ms) => {
      delayMs = ms;
    },
    refuse,
    isRefusing: () => isRefusing,
    refuseFrom: (text) => {
      last = text;
    },
    cutAt: (text, when) => {
      cutting = { text, when };
    },
    serve: () => {
      isRefusing = false;
      last = undefined;
    },
    pointTo: (other) => {
      [host = '', port = ''] = other.split(':');
    },
    accepted: () => accepted,
    roundTrips: () => roundTrips,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cut();
      }),
  };
}

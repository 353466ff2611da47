/**
 * The listening socket of the gRPC door, apart from the server so that several I/O threads can have one each on the
 * same port.
 */
import { createServer, type Socket } from 'node:net';
import { assert } from '../../core/base/result.ts';
import { throttle } from '../../fairness/rate-limit.ts';

export type GrpcListener = {
  readonly port: number;
  /** Takes no new connection; settles when the last one is gone. */
  readonly close: () => Promise<void>;
  /** Closes it with all its connections, at once. */
  readonly cut: () => void;
};

export type ListenOptions = {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Whether other threads listen on the same port; only where `canSharePort`. */
  readonly isShared: boolean;
  /** Connections at once; one more is closed as it comes. */
  readonly maxConnections: number;
  /** Asked to close so many that are not in use, when nearly as many as may be are open. Default: none is closed. */
  readonly makeRoom?: (count: number) => void;
  readonly onConnection: (socket: Socket) => void;
  /**
   * A connection could not be accepted: the process is out of descriptors, or the limit is reached. The listener
   * continues.
   */
  readonly onError: (error: Error) => void;
};

/**
 * Connections that may wait to be accepted; the system may allow fewer. Beyond that it drops them, and each comes again
 * after seconds: then who opens many at once holds up everybody who opens one.
 */
export const BACKLOG = 4_096;

/** The share of connections kept free for newcomers. */
const SPARE_PART = 1 / 16;

/**
 * Whether several threads of this process can listen on one port, each with a socket of its own among which the kernel
 * shares out the connections (SO_REUSEPORT). If not, one thread serves gRPC. Handing one socket's descriptor to all
 * threads would work everywhere, but each thread closes the descriptor when it ends, and its number may be a file of
 * another thread's by then.
 */
export function canSharePort(version: string = process.versions.node, platform: string = process.platform): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const isKnownToNode = major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
  return isKnownToNode && platform === 'linux';
}

/** Rejects with the error of the system when it cannot listen on the address. */
export function listenForGrpc({
  host,
  port,
  isShared,
  maxConnections,
  makeRoom,
  onConnection,
  onError,
}: ListenOptions): Promise<GrpcListener> {
  assert(!isShared || canSharePort(), 'a port is shared only where that is possible');
  const sockets = new Set<Socket>();
  const spare = Math.ceil(maxConnections * SPARE_PART);
  let untilRoom = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    untilRoom -= 1;
    if (sockets.size >= maxConnections - spare && untilRoom <= 0) {
      makeRoom?.(spare);
      untilRoom = spare; // what is closed is not gone yet
    }
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    onConnection(socket);
  });
  server.maxConnections = maxConnections;
  // A client that opens too many connections opens very many.
  const reportDrop = throttle({ nowMs: () => performance.now() }, () =>
    onError(new Error(`${maxConnections} connections are open already, as many as SVC_MAX_GRPC_CONNECTIONS allows`)),
  );
  server.on('drop', () => reportDrop());
  const options: object = { host, port, reusePort: isShared, backlog: BACKLOG };
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, () => {
      server.off('error', reject);
      server.on('error', onError);
      const address = server.address();
      assert(address !== null && typeof address === 'object', 'a TCP server has a port');
      resolve({
        port: address.port,
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
          }),
        cut: () => {
          server.close();
          for (const socket of sockets) socket.destroy();
        },
      });
    });
  });
}

/** Whether the addresses of the doors are free. */
import { type AddressInfo, createServer, type Server } from 'node:net';
import { StartError } from './start-error.ts';

type Address = { readonly host: string; readonly port: number };

/**
 * Resolves with the port for HTTP; rejects with a `StartError` where an address is taken. The I/O threads share a port
 * among themselves, but not with another program, and HTTP does not share one with gRPC. So both addresses are bound at
 * once, which also finds clashes between host names. A port chosen by the system cannot be shared between sockets, so
 * where several threads need one for HTTP, a free one is chosen here.
 */
export async function probeAddresses({
  http,
  grpc,
  isHttpShared,
}: {
  readonly http: Address;
  readonly grpc: Address;
  readonly isHttpShared: boolean;
}): Promise<number> {
  const probes: Server[] = [];
  try {
    if (http.port !== 0 || isHttpShared) probes.push(await take('SVC_HTTP_ADDR', http));
    const chosen = probes[0]?.address() as AddressInfo | undefined;
    if (grpc.port !== 0) probes.push(await take('SVC_GRPC_ADDR', grpc));
    return chosen?.port ?? 0;
  } finally {
    await Promise.all(
      probes.map(
        (probe) =>
          new Promise((closed) => {
            probe.close(closed);
          }),
      ),
    );
  }
}

const take = (variable: string, { host, port }: Address): Promise<Server> =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        new StartError(
          `cannot listen on ${host}:${port} (${error.code ?? error.message}); stop the program that listens there, or choose another ${variable}`,
        ),
      ),
    );
    probe.listen({ host, port }, () => resolve(probe));
  });

/** A TCP balancer: each new connection goes to the next gateway that accepts it. */
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type Balancer = {
  /** `http://host:port` */
  readonly url: string;
  close(): Promise<void>;
};

/** `targets` is asked for each connection: `host:port` of every gateway that is to serve. */
export async function startBalancer(targets: () => readonly string[]): Promise<Balancer> {
  const sockets = new Set<Socket>();
  let next = 0;
  const server = createServer((near) => {
    sockets.add(near.once('close', () => sockets.delete(near)));
    near.on('error', () => near.destroy());
    const all = targets();
    forward(
      near,
      Array.from(all, () => all[next++ % all.length]!),
    );
  });
  const forward = (near: Socket, [target, ...others]: readonly string[]): void => {
    if (target === undefined) return void near.destroy();
    const [host = '', port = ''] = target.split(':');
    const far = connect(Number(port), host);
    let isOpen = false;
    far.once('connect', () => {
      isOpen = true;
      near.pipe(far).pipe(near);
    });
    far.on('error', () => {
      if (isOpen) near.destroy();
      else forward(near, others);
    });
    far.once('close', () => {
      if (isOpen) near.destroy();
    });
    near.once('close', () => far.destroy());
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

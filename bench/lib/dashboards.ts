/** Dashboards that watch everything, as bare sockets in a process of their own, and throw away what they are sent. */
import { fork } from 'node:child_process';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { endingOf } from './ending.ts';
import { ADMIN_KEY } from './subject.ts';

/** Resolves once all are open, with the way to close them. */
export async function openDashboards(url: string, count: number): Promise<() => Promise<void>> {
  const child = fork(fileURLToPath(import.meta.url), [url, String(count)]);
  const close = endingOf(child);
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve());
    child.once('exit', (code) => reject(new Error(`the process of the dashboards ended with ${code}`)));
  });
  return close;
}

function watch(url: string, count: number): void {
  const { hostname, port, host } = new URL(url);
  let open = 0;
  for (let nth = 0; nth < count; nth += 1) {
    const socket = connect(Number(port), hostname, () =>
      socket.write(
        `GET /api/v1/stream HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${ADMIN_KEY}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      ),
    );
    // The head may come in several pieces.
    let head: string | undefined = '';
    socket.on('data', (bytes) => {
      if (head === undefined) return;
      head += bytes.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      if (!head.startsWith('HTTP/1.1 101')) throw new Error(head);
      head = undefined;
      open += 1;
      if (open === count) process.send?.('open');
    });
    socket.on('error', () => undefined);
  }
}

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url))
  watch(process.argv[2] ?? '', Number(process.argv[3]));

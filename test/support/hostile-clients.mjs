/**
 * What clients do to hold a server's memory and time, in a process of its own: beside thousands of connections nobody
 * else's time could be measured. Started with the ports of HTTP and gRPC, and with how many connections shall be idle
 * and how many send a byte at a time. Each second it prints what it does, as a line of JSON.
 */
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const [httpPort, grpcPort, idleCount, slowCount, idleGrpcCount] = process.argv.slice(2).map(Number);
/**
 * Not the address of the honest ones, and many: the system takes long to find a free port where an address has used most
 * of its own.
 */
const ADDRESSES = 64;
let opened = 0;
const nextAddress = () => `127.0.1.${1 + ((opened += 1) % ADDRESSES)}`;

const REQUEST = 'POST /api/v1/ops HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n{';
/** Of an HTTP/2 connection, and its first frame: no settings. */
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0';

function dripping(socket) {
  let at = 0;
  const timer = setInterval(() => {
    if (!socket.writable || at >= REQUEST.length) return clearInterval(timer);
    socket.write(REQUEST[at]);
    at += 1;
  }, 100);
  socket.on('close', () => clearInterval(timer));
}

/** Opened again, after a pause, whenever the gateway closes one. Returns how many are open. */
function holdOpen(port, count, pauseMs, onOpen) {
  const sockets = new Set();
  const connected = new Set();
  const open = () => {
    const socket = connect({ host: '127.0.0.1', port, localAddress: nextAddress() });
    sockets.add(socket);
    socket.on('error', () => undefined); // closed by the gateway, as it should be
    socket.on('connect', () => {
      connected.add(socket);
      onOpen(socket);
    });
    socket.on('close', () => {
      sockets.delete(socket);
      connected.delete(socket);
      setTimeout(open, pauseMs);
    });
    socket.resume();
  };
  // A few at a time: more than the queue of the listener holds would only wait in the kernel.
  const more = setInterval(() => {
    for (let left = 100; left > 0 && sockets.size < count; left -= 1) open();
    if (sockets.size >= count) clearInterval(more);
  }, 20);
  return () => connected.size;
}

/** Streams that are opened and reset at once, on connections that the gateway closes for it. */
let resets = 0;
async function resetRapidly() {
  for (;;) {
    const session = connectHttp2(`http://127.0.0.1:${grpcPort}`, { localAddress: nextAddress() });
    session.on('error', () => undefined);
    while (!session.closed && !session.destroyed) {
      for (let burst = 0; burst < 50 && !session.closed && !session.destroyed; burst += 1) {
        const call = session.request({ ':method': 'POST', ':path': '/x/y', 'content-type': 'application/grpc' });
        call.on('error', () => undefined);
        call.close(8);
        resets += 1;
      }
      await sleep(20);
    }
    session.destroy();
    await sleep(50);
  }
}

const slow = holdOpen(httpPort, slowCount, 100, dripping);
const idle = holdOpen(httpPort, idleCount, 1_000, () => undefined);
const idleGrpc = holdOpen(grpcPort, idleGrpcCount, 10_000, (socket) => socket.write(PREFACE));
void resetRapidly();
setInterval(() => {
  console.log(JSON.stringify({ idle: idle(), slow: slow(), idleGrpc: idleGrpc(), resets }));
}, 1_000);

/**
 * Clients that hold a server's memory and time, in a process of its own: beside thousands of connections nobody else's
 * time could be measured. Started with the ports of HTTP and gRPC, and with how many connections shall be idle and how
 * many send a byte at a time. Each second it prints its counts, as a line of JSON.
 */
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const [httpPort, grpcPort, idleCount, slowCount, idleGrpcCount] = process.argv.slice(2).map(Number);
/**
 * Not the address of the honest ones, and many: the system takes long to find a free port where an address has used
 * most of its own.
 */
const ADDRESSES = 64;
let opened = 0;
const nextAddress = () => `127.0.1.${1 + ((opened += 1) % ADDRESSES)}`;

const REQUEST = 'POST /api/v1/ops HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000\r\n\r\n{';
/** The preface of an HTTP/2 connection, and its first frame: no settings. */
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

/**
 * Messages that are nothing but fields, or brackets: each once took seconds, or ended the gateway. By somebody who
 * shows no credential, one after the other.
 */
const MIB = 1024 * 1024;
const filled = (bytes, hex) => Buffer.alloc(bytes, Buffer.from(hex, 'hex'));
const varint = (value) => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]);
const field = (number, content) => Buffer.concat([Buffer.from([number * 8 + 2, ...varint(content.length)]), content]);
const inEnvoy = (http) => field(1, field(4, field(2, http)));
const ENVOY = '/envoy.service.auth.v3.Authorization/Check';
const EXT_MCP = '/agentgateway.dev.ext_mcp.ExtMcp/CheckRequest';
const CHECK = '/svc.governance.v1.PolicyService/CheckAction';
const FLOODS = [
  [ENVOY, inEnvoy(filled(4 * MIB - 64, '1a00'))],
  [ENVOY, inEnvoy(filled(4 * MIB - 64, '6a00'))],
  [EXT_MCP, filled(4 * MIB - 64, '2a00')],
  [EXT_MCP, field(3, filled(4 * MIB - 64, '0a00'))],
  [CHECK, filled(MIB - 64, '1a02c3a9')],
  [CHECK, filled(MIB - 64, '3a00')],
];
const BODIES = ['['.repeat(MIB), `{"attributes":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}}`];
let floods = 0;
let flooded = 0;

function flood(session, path, message) {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const call = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  return new Promise((resolve) => {
    call.on('error', () => undefined);
    call.on('close', resolve);
    call.resume().end(Buffer.concat([prefix, message]));
  });
}

async function floodOnAndOn() {
  for (;;) {
    const session = connectHttp2(`http://127.0.0.1:${grpcPort}`, { localAddress: nextAddress() });
    session.on('error', () => undefined);
    for (const [path, message] of FLOODS) {
      if (session.closed || session.destroyed) break;
      await Promise.race([flood(session, path, message), sleep(10_000)]);
      floods += 1;
    }
    session.destroy();
    const headers = { 'content-type': 'application/json' };
    const options = { method: 'POST', headers, body: BODIES[(flooded += 1) % BODIES.length] };
    await fetch(`http://127.0.0.1:${httpPort}${CHECK}`, options).then(
      (answer) => answer.arrayBuffer(),
      () => undefined,
    );
    floods += 1;
    await sleep(100);
  }
}

const slow = holdOpen(httpPort, slowCount, 100, dripping);
const idle = holdOpen(httpPort, idleCount, 1_000, () => undefined);
const idleGrpc = holdOpen(grpcPort, idleGrpcCount, 10_000, (socket) => socket.write(PREFACE));
void resetRapidly();
for (let lane = 0; lane < 4; lane += 1) void floodOnAndOn();
setInterval(() => {
  console.log(JSON.stringify({ idle: idle(), slow: slow(), idleGrpc: idleGrpc(), resets, floods }));
}, 1_000);

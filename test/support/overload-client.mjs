/**
 * A process of its own that keeps checks waiting at a gateway, as many as its parent says: each lane sends the next one
 * as soon as the last is answered, or refused. Over Connect each lane has a connection, over gRPC all share a few.
 */
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const CHECK = '/svc.governance.v1.PolicyService/CheckAction';
const GRPC_CONNECTIONS = 4;
/** Buckets of 0.1 ms each; the last one has all that took longer. */
const BUCKETS = 100_000;
const MOST_REASONS = 5;

const [protocol, host, port, encoded] = process.argv.slice(2);
const message = Buffer.from(encoded, 'base64');

const ALLOWED = { kind: 'allowed' };
const refusedWith = (error) => ({ kind: 'refused', error });
const failedFor = (reason) => ({ kind: 'failed', reason });
/** A refusal must say when to come again. */
const isTime = (text) => /^[1-9]\d*$/.test(text ?? '');

class ConnectLane {
  #socket;
  #received;
  #settle;

  ask() {
    return new Promise((resolve) => {
      this.#settle = resolve;
      this.#received = undefined;
      this.#socket ??= this.#opened();
      this.#socket.write(ConnectLane.#REQUEST);
    });
  }

  end() {
    this.#socket?.destroy();
  }

  static #REQUEST = Buffer.concat([
    Buffer.from(
      `POST ${CHECK} HTTP/1.1\r\nHost: ${host}:${port}\r\nContent-Type: application/json\r\nContent-Length: ${message.length}\r\n\r\n`,
    ),
    message,
  ]);

  #opened() {
    const socket = connect(Number(port), host);
    socket.setNoDelay(true);
    socket.on('data', (bytes) => this.#take(bytes));
    socket.on('error', (error) => this.#settle(failedFor(error.message)));
    socket.on('close', () => {
      this.#socket = undefined;
      this.#settle(failedFor('the gateway closed the connection'));
    });
    return socket;
  }

  #take(bytes) {
    this.#received = this.#received === undefined ? bytes : Buffer.concat([this.#received, bytes]);
    const text = this.#received.toString('latin1');
    const head = text.indexOf('\r\n\r\n');
    if (head === -1) return;
    const length = Number(/content-length: *(\d+)/i.exec(text)?.[1] ?? 0);
    if (text.length >= head + 4 + length) this.#settle(ConnectLane.#outcomeOf(text));
  }

  static #outcomeOf(text) {
    const status = text.slice(9, 12);
    if (status === '200' && text.includes('"DECISION_ALLOW"')) return ALLOWED;
    const isTold = isTime(/^retry-after: *(\d+)\r$/im.exec(text)?.[1]);
    return (status === '429' || status === '503') && isTold ? refusedWith(status) : failedFor(text.slice(0, 300));
  }
}

const RESOURCE_EXHAUSTED = '8';
const HEAD = {
  ':method': 'POST',
  ':path': CHECK,
  'content-type': 'application/grpc',
  te: 'trailers',
};

class GrpcLane {
  static #sessions = [];
  #place;

  constructor(nth) {
    this.#place = nth % GRPC_CONNECTIONS;
  }

  ask() {
    const sessions = GrpcLane.#sessions;
    if (sessions[this.#place]?.closed !== false) sessions[this.#place] = GrpcLane.#opened();
    return new Promise((resolve) => {
      let [status, retryAfter, isAllowed, reason] = [undefined, undefined, false, undefined];
      const stream = sessions[this.#place].request(HEAD);
      const learn = (headers) => {
        status ??= headers['grpc-status'];
        retryAfter ??= headers['retry-after'];
        reason ??= headers['grpc-message'];
      };
      stream.on('response', learn);
      stream.on('trailers', learn);
      stream.on('data', (bytes) => {
        // After the prefix of five bytes the first field, the decision: 1 is allow.
        isAllowed ||= bytes[5] === 8 && bytes[6] === 1;
      });
      stream.on('error', (error) => {
        reason ??= error.message;
      });
      stream.on('close', () => {
        if (status === '0' && isAllowed) resolve(ALLOWED);
        else if (status === RESOURCE_EXHAUSTED && isTime(retryAfter)) resolve(refusedWith('RESOURCE_EXHAUSTED'));
        else resolve(failedFor(`grpc-status ${status}: ${reason}`));
      });
      stream.end(message);
    });
  }

  /** The connections stay, for the lanes that are left. */
  end() {}

  static #opened() {
    const session = connectHttp2(`http://${host}:${port}`);
    session.on('error', () => undefined); // each of its calls fails, and says why
    return session;
  }
}

const emptyTally = () => ({
  sinceMs: performance.now(),
  allowed: 0,
  refused: {},
  failed: 0,
  reasons: [],
  waits: new Uint32Array(BUCKETS),
});
let tally = emptyTally();

function count(outcome, tookMs) {
  switch (outcome.kind) {
    case 'allowed':
      tally.allowed += 1;
      tally.waits[Math.min(BUCKETS - 1, Math.floor(tookMs * 10))] += 1;
      return;
    case 'refused':
      tally.refused[outcome.error] = (tally.refused[outcome.error] ?? 0) + 1;
      return;
    default:
      tally.failed += 1;
      if (tally.reasons.length < MOST_REASONS) tally.reasons.push(outcome.reason);
  }
}

const running = new Set();
let wanted = 0;

async function runLane(nth) {
  running.add(nth);
  const lane = protocol === 'grpc' ? new GrpcLane(nth) : new ConnectLane();
  while (nth < wanted) {
    const askedMs = performance.now();
    const outcome = await lane.ask();
    count(outcome, performance.now() - askedMs);
    if (outcome.kind === 'failed') await sleep(10);
  }
  running.delete(nth);
  lane.end();
}

process.on('message', (order) => {
  if (order === 'take') {
    const { sinceMs, waits, ...counts } = tally;
    tally = emptyTally();
    const counted = [...waits.entries()].filter(([, times]) => times > 0);
    process.send({ ...counts, ms: tally.sinceMs - sinceMs, waits: counted });
    return;
  }
  wanted = order.lanes;
  for (let nth = 0; nth < wanted; nth += 1) if (!running.has(nth)) void runLane(nth);
});
process.on('disconnect', () => process.exit());

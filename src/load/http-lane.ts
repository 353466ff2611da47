/**
 * An HTTP/1.1 connection that carries one check at a time, over Connect JSON. Written by hand: the client has to be
 * quicker than what it measures.
 */
import { connect, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { CUT, reasonOf } from '../client/faults.ts';
import { type Answer, decided, failed, type Lane } from './lane.ts';

export type HttpTarget = {
  /** With the path of the method. */
  readonly url: URL;
  readonly bodyOf: (nth: number) => string;
  /** Reads the body of an answer with status 200; by default a decision. */
  readonly read?: (body: string) => Answer;
};

const HEAD_END = Buffer.from('\r\n\r\n');

export class HttpLane implements Lane {
  readonly capacity = 1;
  readonly #target: HttpTarget;
  readonly #head: string;
  #socket: Socket | undefined;
  #received: Buffer = Buffer.alloc(0);
  #waiting: { readonly request: string; readonly settle: (answer: Answer) => void } | undefined;
  /** The connection has carried an answer: the gateway may have closed it for being idle. */
  #isUsed = false;

  constructor(target: HttpTarget) {
    this.#target = target;
    this.#head = `POST ${target.url.pathname} HTTP/1.1\r\nHost: ${target.url.host}\r\nContent-Type: application/json\r\nContent-Length: `;
  }

  send(nth: number, settle: (answer: Answer) => void): void {
    const body = this.#target.bodyOf(nth);
    const request = `${this.#head}${Buffer.byteLength(body)}\r\n\r\n${body}`;
    this.#waiting = { request, settle };
    this.#socket ??= this.#open();
    this.#socket.write(request);
  }

  close(): void {
    this.#waiting = undefined;
    this.#socket
      ?.removeAllListeners()
      .on('error', () => undefined)
      .destroy();
    this.#socket = undefined;
  }

  #open(): Socket {
    const { protocol, port, hostname } = this.#target.url;
    const host = hostname.replace(/^\[|\]$/g, '');
    this.#received = Buffer.alloc(0);
    this.#isUsed = false;
    let fault: string | undefined;
    const socket =
      protocol === 'https:'
        ? connectTls({ host, port: Number(port || 443), servername: host })
        : connect({ host, port: Number(port || 80) });
    return socket
      .setNoDelay(true)
      .on('data', (bytes: Buffer) => this.#take(bytes))
      .on('error', (error) => {
        fault = reasonOf(error);
      })
      .on('close', () => this.#closed(fault));
  }

  #closed(fault: string | undefined): void {
    const waiting = this.#waiting;
    const wasIdle = this.#isUsed && this.#received.length === 0;
    this.#socket = undefined;
    if (waiting === undefined) return;
    if (wasIdle) {
      this.#socket = this.#open();
      this.#socket.write(waiting.request);
      return;
    }
    this.#settle(failed(fault ?? CUT));
  }

  #settle(answer: Answer): void {
    const settle = this.#waiting?.settle;
    this.#waiting = undefined;
    settle?.(answer);
  }

  #take(bytes: Buffer): void {
    this.#received = this.#received.length === 0 ? bytes : Buffer.concat([this.#received, bytes]);
    const at = this.#received.indexOf(HEAD_END);
    if (at === -1) return;
    const head = this.#received.toString('latin1', 0, at);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    const rest = this.#received.subarray(at + HEAD_END.length);
    const isChunked = length === undefined && /\r\ntransfer-encoding: *chunked/i.test(head);
    const content = isChunked ? contentOfChunks(rest) : rest.length < Number(length ?? 0) ? undefined : rest;
    if (content === undefined) return;
    const body = content.toString('utf8');
    this.#received = Buffer.alloc(0);
    this.#isUsed = true;
    if (/\r\nconnection: *close/i.test(head)) {
      this.#socket
        ?.removeAllListeners()
        .on('error', () => undefined)
        .destroy();
      this.#socket = undefined;
    }
    const status = /^HTTP\/1\.\d (\d{3})/.exec(head)?.[1] ?? '';
    this.#settle(status === '200' ? (this.#target.read ?? decisionIn)(body) : failed(refusalIn(status, body)));
  }
}

/** Undefined until the last chunk has come. */
function contentOfChunks(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    const length = lineEnd === -1 ? Number.NaN : Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    at = lineEnd + 2 + length + 2;
    if (!(at <= bytes.length)) return undefined;
    if (length === 0) return Buffer.concat(parts);
    parts.push(bytes.subarray(at - 2 - length, at - 2));
  }
}

const KINDS = { ALLOW: 'allow', DENY: 'deny', PENDING: 'pending' } as const;

function decisionIn(body: string): Answer {
  const kind = /"decision": ?"DECISION_(ALLOW|DENY|PENDING)"/.exec(body)?.[1];
  if (kind === undefined) return failed(`an answer without a decision: ${body}`);
  if (kind === 'ALLOW') return decided('allow', '', '');
  const { reason = '', cause = '' } = fieldsIn(body);
  return decided(KINDS[kind as keyof typeof KINDS], reason, cause === 'DECISION_CAUSE_UNRECORDED' ? 'unrecorded' : '');
}

/** Connect answers with `message`, everything else of the gateway with `detail`. */
function refusalIn(status: string, body: string): string {
  const { message, detail } = fieldsIn(body);
  return `${status} ${message ?? detail ?? body}`.trim();
}

function fieldsIn(body: string): Readonly<Record<string, string | undefined>> {
  try {
    const fields: unknown = JSON.parse(body);
    return typeof fields === 'object' && fields !== null ? (fields as Readonly<Record<string, string>>) : {};
  } catch {
    return {};
  }
}

/** Sends checkpoints to witnesses outside the disk of the log: a file, an HTTP endpoint, another gateway, syslog. */
import { createSocket } from 'node:dgram';
import { appendFile } from 'node:fs/promises';
import { connect, isIP, isIPv6, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import type { WitnessStatement } from '../../core/audit/witness.ts';

/** Sends one statement. Rejects where the witness may not have it. */
export type Send = (statement: WitnessStatement, signal: AbortSignal) => Promise<void>;

export type Target = { /** Without secrets, for logs and metrics. */ readonly name: string; readonly send: Send };

const PROTOCOLS = ['file:', 'http:', 'https:', 'syslog:', 'syslog+tcp:', 'syslog+tls:'];
const SYSLOG_PORTS: Readonly<Record<string, number>> = { 'syslog:': 514, 'syslog+tcp:': 601, 'syslog+tls:': 6514 };

/** Whether the text says where a witness is. */
export const isWitnessUrl = (text: string): boolean => {
  if (!URL.canParse(text)) return false;
  const url = new URL(text);
  if (!PROTOCOLS.includes(url.protocol) || url.username !== '' || url.password !== '') return false;
  if (url.protocol === 'file:') return url.host === '' && url.pathname.length > 1;
  return url.hostname !== '';
};

/** `token`: the bearer for HTTP endpoints. */
export function targetOf(text: string, token: string | undefined): Target {
  const url = new URL(text);
  const name = url.protocol === 'file:' ? text : `${url.protocol}//${url.host}${url.pathname}`;
  return { name, send: senderOf(url, token) };
}

function senderOf(url: URL, token: string | undefined): Send {
  switch (url.protocol) {
    case 'file:':
      return toFile(fileURLToPath(url));
    case 'http:':
    case 'https:':
      return toEndpoint(url, token);
    case 'syslog:':
      return toDatagrams(url);
    default:
      return toStream(url);
  }
}

/** Appended, and on the disk before it counts. */
const toFile =
  (path: string): Send =>
  (statement) =>
    appendFile(path, `${JSON.stringify(statement)}\n`, { mode: 0o640, flush: true });

/** The meaning of another gateway's conflict. */
const CONTRADICTION =
  ': it has kept something else of this log, which was cut, rewritten or restored, or shares its token with another one';

const toEndpoint =
  (url: URL, token: string | undefined): Send =>
  async (statement, signal) => {
    const answer = await fetch(url, {
      method: 'POST',
      redirect: 'error',
      headers: {
        'content-type': 'application/json',
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(statement),
      signal,
    });
    await answer.body?.cancel();
    if (!answer.ok) throw new Error(`it answered ${answer.status}${answer.status === 409 ? CONTRADICTION : ''}`);
  };

/** Facility authpriv, severity notice. */
const PRIORITY = 10 * 8 + 5;

/** RFC 5424. */
const syslogLine = (statement: WitnessStatement): string =>
  `<${PRIORITY}>1 ${new Date().toISOString()} ${hostname() || '-'} svc-gateway ${process.pid} audit-checkpoint - ${JSON.stringify(statement)}`;

const portOf = (url: URL): number => Number(url.port) || SYSLOG_PORTS[url.protocol]!;
const hostOf = (url: URL): string => url.hostname.replace(/^\[(.*)\]$/, '$1');

/** Nobody confirms a datagram: it may be lost without anybody knowing. */
const toDatagrams =
  (url: URL): Send =>
  (statement) =>
    new Promise((resolve, reject) => {
      const socket = createSocket(isIPv6(hostOf(url)) ? 'udp6' : 'udp4');
      const done = (error?: Error | null): void => {
        socket.close();
        if (error) reject(error);
        else resolve();
      };
      socket.once('error', done);
      socket.send(syslogLine(statement), portOf(url), hostOf(url), done);
    });

/** Framed by their length (RFC 6587), on a connection of its own: one every few minutes is not worth keeping one. */
const toStream =
  (url: URL): Send =>
  (statement, signal) =>
    new Promise((resolve, reject) => {
      const line = syslogLine(statement);
      const at = { host: hostOf(url), port: portOf(url) };
      const socket: Socket =
        url.protocol === 'syslog+tls:'
          ? connectTls({ ...at, servername: isIP(at.host) === 0 ? at.host : '' })
          : connect(at);
      const abort = (): void => void socket.destroy(new Error('it took too long'));
      signal.addEventListener('abort', abort, { once: true });
      socket.once('error', reject);
      // The other end has read it when it closes its side too; a reset before that may have lost it.
      socket.once('close', () => {
        signal.removeEventListener('abort', abort);
        resolve();
      });
      socket.resume();
      socket.end(`${Buffer.byteLength(line)} ${line}`);
    });

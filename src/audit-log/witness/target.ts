/** Sends checkpoints to witnesses outside the disk of the log: a file, an HTTP endpoint, another gateway, syslog. */
import { createSocket } from 'node:dgram';
import { appendFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { WitnessStatement } from '../../core/audit/witness.ts';
import { sendOverStream, syslogAddress, syslogMessage } from '../syslog.ts';

/** Sends one statement. Rejects where the witness may not have it. */
export type Send = (statement: WitnessStatement, signal: AbortSignal) => Promise<void>;

export type Target = { /** Without secrets, for logs and metrics. */ readonly name: string; readonly send: Send };

const PROTOCOLS = ['file:', 'http:', 'https:', 'syslog:', 'syslog+tcp:', 'syslog+tls:'];

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

const syslogLine = (statement: WitnessStatement): string =>
  syslogMessage({
    priority: PRIORITY,
    timestamp: new Date().toISOString(),
    messageId: 'audit-checkpoint',
    text: JSON.stringify(statement),
  });

/** Nobody confirms a datagram: it may be lost without anybody knowing. */
const toDatagrams =
  (url: URL): Send =>
  (statement) =>
    new Promise((resolve, reject) => {
      const { host, port } = syslogAddress(url);
      const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4');
      const done = (error?: Error | null): void => {
        socket.close();
        if (error) reject(error);
        else resolve();
      };
      socket.once('error', done);
      socket.send(syslogLine(statement), port, host, done);
    });

const toStream =
  (url: URL): Send =>
  (statement, signal) =>
    sendOverStream(url, [syslogLine(statement)], signal);

/** Messages of RFC 5424, over connections of RFC 5425 (TLS) or 6587 (without). */
import { connect, isIP, type Socket } from 'node:net';
import { hostname } from 'node:os';
import { connect as connectTls } from 'node:tls';

const PORTS: Readonly<Record<string, number>> = { 'syslog:': 514, 'syslog+tcp:': 601, 'syslog+tls:': 6514 };

/** Whether the text says where a receiver listens that confirms what it has read. */
export function isSyslogStream(text: string): boolean {
  if (!/^syslog\+(tcp|tls):\/\/[^\s/?#]+\/?$/.test(text) || !URL.canParse(text)) return false;
  const { hostname: host, username, password } = new URL(text);
  return host !== '' && username === '' && password === '';
}

export const syslogAddress = (url: URL): { readonly host: string; readonly port: number } => ({
  host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
  port: Number(url.port) || PORTS[url.protocol]!,
});

export type SyslogMessage = {
  readonly priority: number;
  readonly timestamp: string;
  /** At most 32 characters of visible ASCII. */
  readonly messageId: string;
  /** As RFC 5424 writes it; undefined: none. */
  readonly structuredData?: string;
  readonly text: string;
};

export const syslogMessage = ({ priority, timestamp, messageId, structuredData = '-', text }: SyslogMessage): string =>
  `<${priority}>1 ${timestamp} ${hostname() || '-'} svc-gateway ${process.pid} ${messageId} ${structuredData} ${text}`;

export type ClientTls = {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
};

/**
 * Sends messages on a connection of their own, framed by their length. Resolves when the receiver has closed its side
 * too, which it does once it has read everything: nothing else in these protocols confirms anything.
 */
export const sendOverStream = (
  url: URL,
  messages: readonly string[],
  signal: AbortSignal,
  tls: ClientTls = {},
): Promise<void> =>
  new Promise((resolve, reject) => {
    const at = syslogAddress(url);
    const socket: Socket =
      url.protocol === 'syslog+tls:'
        ? connectTls({ ...at, servername: isIP(at.host) === 0 ? at.host : '', ...tls })
        : connect(at);
    let isSent = false;
    const abort = (): void => void socket.destroy(new Error('it took too long'));
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    socket.once('error', reject);
    socket.once('finish', () => {
      isSent = true;
    });
    socket.once('end', () => {
      if (!isSent) socket.destroy(new Error('it closed the connection before it had read everything'));
    });
    socket.once('close', () => {
      signal.removeEventListener('abort', abort);
      if (isSent) resolve();
      else reject(new Error('it closed the connection before it had read everything'));
    });
    socket.resume();
    socket.end(messages.map((message) => `${Buffer.byteLength(message)} ${message}`).join(''));
  });

/**
 * A gateway reached through the proxy of the environment, which Node.js 20 does not know. Loaded only where there is
 * one.
 */
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  type RequestOptions,
  request as requestHttp,
} from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { isIP, type Socket } from 'node:net';
import { type ConnectionOptions, connect as connectTls } from 'node:tls';
import { messageTo } from './answer.ts';
import { certificateAdvice, reasonOf, WayError } from './faults.ts';
import type { ProxySetting } from './proxy-choice.ts';

/** Shorter than a command waits for an answer, so that the error names the proxy. */
const TUNNEL_TIMEOUT_MS = 10_000;

type Proxy = {
  readonly variable: ProxySetting['variable'];
  /** The URL without user and password, for display. */
  readonly name: string;
  readonly isSecure: boolean;
  readonly host: string;
  readonly port: number;
  readonly credentials: string | undefined;
};

type Call = {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly content?: string | Buffer | undefined;
  readonly signal: AbortSignal;
};

/** Returns the gateway's answer: over https through a tunnel; over http the proxy forwards the request. */
export async function messageThrough(
  setting: ProxySetting,
  target: URL,
  { content, ...call }: Call,
): Promise<IncomingMessage> {
  const proxy = proxyIn(setting);
  if (target.protocol === 'https:')
    return messageTo(requestHttps(target, { ...call, agent: agentThrough(setting, true) }), content);
  const request = requestTo(proxy, {
    ...call,
    path: target.href,
    headers: { ...call.headers, host: target.host, ...authorizationFor(proxy) },
  });
  const message = await messageTo(request, content).catch((error: unknown) => {
    throw lostOn(proxy, target.host, error);
  });
  if (!isOfProxy(message)) return message;
  message.destroy(); // it stays unread, and so would its connection stay open
  throw refusedBy(proxy, target.host, message);
}

/** The gateway asks for no proxy's credentials, and refuses in JSON. */
const isOfProxy = ({ statusCode = 0, headers }: IncomingMessage): boolean =>
  statusCode === 407 || (statusCode >= 400 && headers['content-type']?.includes('json') !== true);

const agents = new Map<string, HttpAgent>();

/** Connects through a tunnel; of each kind there is one, so that the requests of a command share their connections. */
export function agentThrough(setting: ProxySetting, isSecure: boolean): HttpAgent {
  const key = `${isSecure} ${setting.text}`;
  const agent = agents.get(key) ?? tunnelling(proxyIn(setting), isSecure);
  agents.set(key, agent);
  return agent;
}

function tunnelling(proxy: Proxy, isSecure: boolean): HttpAgent {
  const agent = isSecure ? new HttpsAgent({ keepAlive: true }) : new HttpAgent({ keepAlive: true });
  return Object.assign(agent, {
    createConnection: (options: ConnectionOptions, done: (error: unknown, socket?: Socket) => void): void => {
      openTunnel(proxy, options.host ?? '', options.port ?? 0).then(
        (socket) => done(null, isSecure ? connectTls({ ...options, socket }) : socket),
        done,
      );
    },
  });
}

function openTunnel(proxy: Proxy, host: string, port: number): Promise<Socket> {
  const target = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  return new Promise((resolve, reject) => {
    const request = requestTo(proxy, {
      method: 'CONNECT',
      path: target,
      headers: { host: target, ...authorizationFor(proxy) },
    });
    const timer = setTimeout(() => request.destroy(new DOMException('no answer', 'TimeoutError')), TUNNEL_TIMEOUT_MS);
    request.once('close', () => clearTimeout(timer));
    request.once('error', (error) => reject(lostOn(proxy, target, error)));
    request.once('connect', (answer, socket, head) => {
      if (answer.statusCode !== 200) {
        socket.destroy();
        return reject(refusedBy(proxy, target, answer));
      }
      socket.unshift(head);
      resolve(socket);
    });
    request.end();
  });
}

/**
 * With an agent of its own: that of all others may have been told by the environment to go through the proxy itself.
 */
function requestTo({ isSecure, host, port }: Proxy, options: RequestOptions): ClientRequest {
  if (!isSecure) return requestHttp({ ...options, host, port, agent: false });
  const servername = isIP(host) === 0 ? host : ''; // by itself it would be the host in the header, which is the gateway
  return requestHttps({ ...options, host, port, servername, agent: false });
}

const authorizationFor = ({ credentials }: Proxy): Record<string, string> =>
  credentials === undefined ? {} : { 'proxy-authorization': `Basic ${Buffer.from(credentials).toString('base64')}` };

function proxyIn({ variable, text }: ProxySetting): Proxy {
  const full = text.includes('://') ? text : `http://${text}`;
  const url = URL.canParse(full) ? new URL(full) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new WayError(
      'setting',
      `${variable} is not a proxy URL that svc can use`,
      'It must be http://host:port or https://host:port, optionally with user:password@ before the host.',
    );
  }
  const isSecure = url.protocol === 'https:';
  return {
    variable,
    name: `${url.protocol}//${url.host}`,
    isSecure,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || (isSecure ? 443 : 80)),
    credentials:
      url.username === '' && url.password === '' ? undefined : `${decoded(url.username)}:${decoded(url.password)}`,
  };
}

/** A password with a lone percent sign is taken as it is. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const directly = (target: string): string => `add ${target.replace(/:\d+$/, '')} to NO_PROXY to connect without it`;

function lostOn(proxy: Proxy, target: string, error: unknown): WayError {
  const advice = certificateAdvice(error) ?? `Fix ${proxy.variable}, or ${directly(target)}.`;
  return new WayError(
    'passing',
    `cannot reach the proxy ${proxy.name} on the way to ${target}: ${reasonOf(error)}`,
    advice,
    error,
  );
}

/** The proxy may recover later. Wrong credentials are 401 to tinyproxy. */
function refusedBy(proxy: Proxy, target: string, { statusCode = 0, statusMessage = '' }: IncomingMessage): WayError {
  const { name, variable, credentials } = proxy;
  if (statusCode === 407 || statusCode === 401) {
    return new WayError(
      'lasting',
      `the proxy ${name} ${credentials === undefined ? 'requires a user and password' : `rejects the user and password in ${variable}`}`,
      `Set ${variable} to ${name.replace('//', '//user:password@')}, with special characters percent-encoded, or ${directly(target)}.`,
    );
  }
  const message = `the proxy ${name} cannot connect to ${target}: it answers ${`${statusCode} ${statusMessage}`.trim()}`;
  const advice = `Check the URL of the gateway, ask the operator of the proxy, or ${directly(target)}.`;
  return new WayError(statusCode >= 500 ? 'passing' : 'lasting', message, advice);
}

/** Reads the gateway's address and the agent's identity from the environment. */
import { type AgentIdentity, parseAgentKey } from '../core/base/ids.ts';
import type { Credential } from './calls.ts';
import type { Gateway } from './connection.ts';
import { WayError } from './faults.ts';
import { proxyFor } from './proxy-choice.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export type GatewayAddress = Gateway & {
  /** The gRPC address, on which signals are pushed. */
  readonly grpc: { readonly address: string; readonly tls: boolean };
};

export const DEFAULT_URL = 'http://127.0.0.1:8080';
const GRPC_PORT = 50051;

/** Without the slash at its end, so that one gateway has one spelling. Undefined where it is none. */
export function apiUrlIn(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) return undefined;
  if ([url.username, url.password, url.search, url.hash].some((part) => part !== '')) return undefined;
  return url.href.replace(/\/+$/, '');
}

export function gatewayIn(env: Environment): GatewayAddress {
  const text = env.SVC_GATEWAY_URL || env.SVC_CLI_API_URL || DEFAULT_URL;
  const apiUrl = apiUrlIn(text);
  if (apiUrl === undefined)
    throw new WayError(
      'setting',
      'SVC_GATEWAY_URL must be http://host:port or https://host',
      `It is the address of the gateway's HTTP API, such as ${DEFAULT_URL}.`,
    );
  const grpc = env.SVC_GATEWAY_GRPC || `${new URL(apiUrl).hostname}:${GRPC_PORT}`;
  if (!/^[^\s/]+:\d{1,5}$/.test(grpc))
    throw new WayError('setting', 'SVC_GATEWAY_GRPC must be host:port', "It is the gateway's gRPC address.");
  return { apiUrl, proxy: proxyFor(apiUrl, env), grpc: { address: grpc, tls: apiUrl.startsWith('https:') } };
}

export function agentNamed(text: string): AgentIdentity {
  const agent = parseAgentKey(text);
  if (agent === undefined)
    throw new WayError(
      'setting',
      'an agent must be <org>/<team>/<agent>, or /<team>/<agent>',
      'For example acme/search/bot.',
    );
  return agent;
}

/** An API key or an access token is a bearer; an agent's own token is anything else. */
export const kindOf = (secret: string): Credential['kind'] =>
  /^svc_[0-9A-Za-z]+_/.test(secret) || /^[\w-]+\.[\w-]+\.[\w-]+$/.test(secret) ? 'bearer' : 'token';

export function credentialIn(env: Environment, agentOption: string | undefined): Credential {
  const name = agentOption ?? env.SVC_AGENT;
  const secret = env.SVC_AGENT_TOKEN || env.SVC_CLI_AGENT_TOKEN;
  if (name === undefined || name === '')
    throw new WayError('setting', 'no agent is named', 'Set SVC_AGENT=<org>/<team>/<agent>, or pass --agent.');
  if (secret === undefined)
    throw new WayError(
      'setting',
      'no agent token is set',
      'Set SVC_AGENT_TOKEN to the token that `svc agents register` has shown.',
    );
  if (!/^[\x21-\x7e]+$/.test(secret))
    throw new WayError(
      'setting',
      'SVC_AGENT_TOKEN must consist of visible ASCII characters',
      'Check how it was copied.',
    );
  return { agent: agentNamed(name), secret, kind: kindOf(secret) };
}

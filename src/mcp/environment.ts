/** Reads the gateway's address and the agent's identity from the environment. */
import { type AgentIdentity, parseAgentKey } from '../core/base/ids.ts';
import type { Credential } from './gateway-calls.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export type GatewayAddress = {
  /** The address of the HTTP API. */
  readonly url: string;
  /** The gRPC address, on which signals are pushed. */
  readonly grpc: { readonly address: string; readonly tls: boolean };
};

/** A mistake in the environment or in options: a line what is wrong, and a sentence what to do. */
export class SettingError extends Error {
  readonly advice: string;

  constructor(message: string, advice: string) {
    super(message);
    this.name = 'SettingError';
    this.advice = advice;
  }
}

const DEFAULT_URL = 'http://127.0.0.1:8080';
const GRPC_PORT = 50051;

export function gatewayIn(env: Environment): GatewayAddress {
  const text = env.SVC_GATEWAY_URL || env.SVC_CLI_API_URL || DEFAULT_URL;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username !== '' ||
    url.search !== '' ||
    url.hash !== ''
  )
    throw new SettingError(
      'SVC_GATEWAY_URL must be http://host:port or https://host',
      `It is the address of the gateway's HTTP API, such as ${DEFAULT_URL}.`,
    );
  const grpc = env.SVC_GATEWAY_GRPC || `${url.hostname}:${GRPC_PORT}`;
  if (!/^[^\s/]+:\d{1,5}$/.test(grpc))
    throw new SettingError('SVC_GATEWAY_GRPC must be host:port', "It is the gateway's gRPC address.");
  return { url: url.href.replace(/\/+$/, ''), grpc: { address: grpc, tls: url.protocol === 'https:' } };
}

export function agentNamed(text: string): AgentIdentity {
  const agent = parseAgentKey(text);
  if (agent === undefined)
    throw new SettingError('an agent must be <org>/<team>/<agent>, or /<team>/<agent>', 'For example acme/search/bot.');
  return agent;
}

/** An API key or an access token is a bearer; an agent's own token is anything else. */
export const kindOf = (secret: string): Credential['kind'] =>
  /^svc_[0-9A-Za-z]+_/.test(secret) || /^[\w-]+\.[\w-]+\.[\w-]+$/.test(secret) ? 'bearer' : 'token';

export function credentialIn(env: Environment, agentOption: string | undefined): Credential {
  const name = agentOption ?? env.SVC_AGENT;
  const secret = env.SVC_AGENT_TOKEN || env.SVC_CLI_AGENT_TOKEN;
  if (name === undefined || name === '')
    throw new SettingError('no agent is named', 'Set SVC_AGENT=<org>/<team>/<agent>, or pass --agent.');
  if (secret === undefined)
    throw new SettingError(
      'no agent token is set',
      'Set SVC_AGENT_TOKEN to the token that `svc agents register` has shown.',
    );
  if (!/^[\x21-\x7e]+$/.test(secret))
    throw new SettingError('SVC_AGENT_TOKEN must consist of visible ASCII characters', 'Check how it was copied.');
  return { agent: agentNamed(name), secret, kind: kindOf(secret) };
}

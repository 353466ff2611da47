/** The options of a client, and the check for mistakes in them before anything is sent. */
import type { GatewayError } from './errors.ts';
import type { Fetch } from './fetch-transport.ts';
import { type KeysOf, requireKnownKeys } from './known-keys.ts';
import { requireAgent } from './text.ts';
import type { AgentId, ClientState, Notice, OpSignal } from './types.ts';

/** How the connection is secured. Certificates and keys are PEM, as text or bytes, which may be a Buffer. */
export type TlsOptions = {
  /** Trusted certificate authorities. Default: those of Node.js. */
  readonly ca?: string | Uint8Array | undefined;
  /** The agent's own certificate, if a proxy in front of the gateway requires one. Together with `key`. */
  readonly cert?: string | Uint8Array | undefined;
  /** The private key of `cert`. */
  readonly key?: string | Uint8Array | undefined;
  /** The name in the gateway's certificate, if it is not the host of the address. */
  readonly serverName?: string | undefined;
};

/** In milliseconds, at most a day each. */
export type Deadlines = {
  /** The longest time a check takes, including all retries. Default 5,000. */
  readonly checkMs?: number | undefined;
  /** The longest time any other call takes, including all retries. Default 10,000. */
  readonly callMs?: number | undefined;
  /**
   * How long checks wait for a lost gateway before `onUnreachable` answers them, so that a restart goes unnoticed.
   * Counted from when the connection was lost: if that is longer ago, checks do not wait. Default 1,000; 0: never wait.
   */
  readonly outageMs?: number | undefined;
  /** How long `run` waits until people have decided on an action that needs an approval. Default 900,000. */
  readonly approvalMs?: number | undefined;
  /** Over HTTP: how often the gateway is asked for operators' signals to operations that run. Default 2,000. */
  readonly signalMs?: number | undefined;
  /** How long `close()` waits for work in progress before it aborts it. Default 5,000. */
  readonly closeMs?: number | undefined;
};

/** At most one of the two. Without: `SVC_AGENT_TOKEN` of the environment, else `SVC_API_KEY`. */
export type AgentCredential =
  | { readonly credentialToken?: undefined; readonly apiKey?: undefined }
  /** The agent's own token, from an earlier registration. */
  | { readonly credentialToken: string; readonly apiKey?: undefined }
  /**
   * An API key, or a token made from one, with write scope. The client registers the agent and keeps the token it
   * receives in memory only. Registering an existing agent replaces its token, so each process needs an `agentId` of
   * its own.
   */
  | { readonly apiKey: string; readonly credentialToken?: undefined };

/** The agent, as its names or as `<org>/<team>/<agent>`, with `-` for no organization. */
export type AgentName = AgentId | string;

/** Options of `createAgentClient`: the gateway's address, the agent's identity, and one credential. */
export type AgentClientOptions = AgentCredential & {
  /** `host:port` of the gateway's gRPC. */
  readonly address?: string | undefined;
  /**
   * In its place, the gateway's HTTP, such as `https://gateway.example:8080`. Default: `SVC_GATEWAY_URL` of the
   * environment.
   */
  readonly url?: string | undefined;
  /** Over HTTP: called in place of the global `fetch`. */
  readonly fetch?: Fetch | undefined;
  /** The agent's identity. Default: `SVC_AGENT` of the environment. */
  readonly agent?: AgentName | undefined;
  /** The agent that started this one, of the same organization; recorded at registration. Only with `apiKey`. */
  readonly parent?: AgentName | undefined;
  /**
   * The answer to checks when the gateway cannot be reached or does not answer in time: `deny` (the default) or
   * `allow`. It never overrides an answer from the gateway, not even that it is overloaded or cannot write its audit
   * log.
   */
  readonly onUnreachable?: 'allow' | 'deny' | undefined;
  readonly deadlines?: Deadlines | undefined;
  /** Maximum checks in flight; further ones wait. 1 to 1,000; default 1,000. */
  readonly maxInFlight?: number | undefined;
  /**
   * TLS of gRPC. `{}`: TLS with the defaults. Omitted: no TLS, which is safe only on loopback or behind a local proxy.
   */
  readonly tls?: TlsOptions | undefined;
  /** Called when the stream of signals opens, is lost or is refused; in the latter cases with the reason. */
  readonly onStateChange?: ((state: ClientState, because: GatewayError | undefined) => void) | undefined;
  /**
   * Called with every signal. Signals to operations of `run` are handled by the client. For any other operation
   * (registered by `check`), return true once you have acted on the signal: that acknowledges it; otherwise it is sent
   * again whenever the channel opens anew.
   */
  readonly onSignal?: ((signal: OpSignal) => boolean | void | Promise<boolean | void>) | undefined;
  /**
   * Called with errors in the background, such as an operation that could not be reported complete. Default:
   * `process.emitWarning`, or the console.
   */
  readonly onWarning?: ((error: Error) => void) | undefined;
  /** Called with what a rule obliges `run` to show to the operator. Default: `process.emitWarning`. */
  readonly onNotice?: ((notice: Notice) => void) | undefined;
};

export type Settings = {
  /** The gateway's address, by gRPC or by HTTP. */
  readonly target:
    | { readonly kind: 'grpc'; readonly address: string; readonly tls: TlsOptions | undefined }
    | { readonly kind: 'http'; readonly url: string; readonly fetch: Fetch };
  readonly agent: AgentId;
  readonly parent: AgentId | undefined;
  readonly credential: AgentCredential;
  readonly onUnreachable: 'allow' | 'deny';
  readonly checkMs: number;
  readonly callMs: number;
  readonly approvalMs: number;
  readonly outageMs: number;
  readonly closeMs: number;
  readonly signalMs: number;
  readonly maxInFlight: number;
  readonly onStateChange: NonNullable<AgentClientOptions['onStateChange']>;
  readonly onSignal: NonNullable<AgentClientOptions['onSignal']>;
  readonly onWarning: NonNullable<AgentClientOptions['onWarning']>;
  readonly onNotice: NonNullable<AgentClientOptions['onNotice']>;
};

const MAX_IN_FLIGHT = 1000;
const LONGEST_MS = 24 * 60 * 60 * 1000;

const OPTIONS: KeysOf<AgentClientOptions> = {
  address: true,
  url: true,
  fetch: true,
  agent: true,
  apiKey: true,
  credentialToken: true,
  parent: true,
  onUnreachable: true,
  deadlines: true,
  maxInFlight: true,
  tls: true,
  onStateChange: true,
  onSignal: true,
  onWarning: true,
  onNotice: true,
};
const DEADLINES: KeysOf<Deadlines> = {
  checkMs: true,
  callMs: true,
  approvalMs: true,
  outageMs: true,
  signalMs: true,
  closeMs: true,
};
const TLS: KeysOf<TlsOptions> = { ca: true, cert: true, key: true, serverName: true };

/** Throws a TypeError that names the wrong option. Missing options are read from the environment. */
export function settingsOf(options: AgentClientOptions, env: Env = environment()): Settings {
  if (typeof options !== 'object' || options === null)
    throw new TypeError(
      "createAgentClient needs options: address, such as '127.0.0.1:50051', or url; agent, { orgId, teamId, agentId }; and apiKey or credentialToken",
    );
  requireKnownKeys(options, 'createAgentClient', OPTIONS);
  const { onUnreachable = 'deny', deadlines = {}, maxInFlight = MAX_IN_FLIGHT } = options;
  requireKnownKeys(deadlines, 'deadlines', DEADLINES);
  const target = targetOf(options, env);
  const agent = options.agent ?? env.SVC_AGENT;
  if (agent === undefined || agent === '')
    throw new TypeError(
      "agent is missing: pass { orgId, teamId, agentId } or '<org>/<team>/<agent>', or set SVC_AGENT",
    );
  const identity = agentOf(agent, 'agent');
  const parent = options.parent === undefined ? undefined : agentOf(options.parent, 'parent');
  const credential = credentialOf(options, env);
  if (onUnreachable !== 'deny' && onUnreachable !== 'allow')
    throw new TypeError("onUnreachable must be 'deny' or 'allow'");
  if (!Number.isInteger(maxInFlight) || maxInFlight < 1 || maxInFlight > MAX_IN_FLIGHT)
    throw new TypeError(`maxInFlight must be a whole number from 1 to ${MAX_IN_FLIGHT}`);
  return {
    target,
    agent: identity,
    parent,
    credential,
    onUnreachable,
    checkMs: duration(deadlines.checkMs, 5_000, 1, 'checkMs'),
    callMs: duration(deadlines.callMs, 10_000, 1, 'callMs'),
    approvalMs: duration(deadlines.approvalMs, 900_000, 0, 'approvalMs'),
    outageMs: duration(deadlines.outageMs, 1_000, 0, 'outageMs'),
    signalMs: duration(deadlines.signalMs, 2_000, 10, 'signalMs'),
    closeMs: duration(deadlines.closeMs, 5_000, 0, 'closeMs'),
    maxInFlight,
    onStateChange: guarded(options.onStateChange ?? (() => {})),
    onSignal: options.onSignal ?? (() => {}),
    onWarning: guarded(options.onWarning ?? ((error) => warn(error))),
    onNotice: guarded(options.onNotice ?? (({ message, opId }) => warn(`${message} (operation ${opId})`, 'SvcNotice'))),
  };
}

type Env = Readonly<Record<string, string | undefined>>;

type Runtime = {
  readonly process?: {
    readonly env?: Env;
    readonly emitWarning?: (warning: Error | string, type?: string) => void;
  };
};

/** Some runtimes have none. */
const environment = (): Env => (globalThis as Runtime).process?.env ?? {};

/** As a warning of the process, where there is one. */
function warn(warning: Error | string, type?: string): void {
  const { process } = globalThis as Runtime;
  if (process?.emitWarning === undefined) console.warn(warning);
  else process.emitWarning(warning, type);
}

const DEFAULT_URL = 'http://127.0.0.1:8080';

function targetOf({ address, url, fetch: given, tls }: AgentClientOptions, env: Env): Settings['target'] {
  if (address !== undefined) {
    if (url !== undefined) throw new TypeError('set only one of address, which is that of gRPC, and url');
    if (given !== undefined) throw new TypeError('fetch is for a url, and address is that of gRPC');
    if (tls !== undefined) requireKnownKeys(tls, 'tls', TLS);
    if (!/^(?!https?:)\S+:\d{1,5}$/i.test(address))
      throw new TypeError('address must be host:port, such as 127.0.0.1:50051');
    return { kind: 'grpc', address, tls };
  }
  if (tls !== undefined)
    throw new TypeError('tls applies to gRPC only: over HTTP, the runtime or your fetch checks certificates');
  if (given !== undefined && typeof given !== 'function') throw new TypeError('fetch must be a function');
  return {
    kind: 'http',
    url: urlOf(url ?? (env.SVC_GATEWAY_URL || DEFAULT_URL)),
    // The global one as it is at the call: tests and instruments replace it.
    fetch: given ?? ((input, init) => fetch(input, init)),
  };
}

function urlOf(text: string): string {
  let url: URL | undefined;
  try {
    url = new URL(text);
  } catch {
    // Said below.
  }
  if (
    url === undefined ||
    !/^https?:$/.test(url.protocol) ||
    url.username !== '' ||
    url.search !== '' ||
    url.hash !== ''
  )
    throw new TypeError("url must be that of the gateway's HTTP port, such as http://127.0.0.1:8080");
  return url.href.replace(/\/+$/, '');
}

function agentOf(name: AgentName, option: string): AgentId {
  if (typeof name !== 'string') {
    requireAgent(name, option);
    return { orgId: name.orgId, teamId: name.teamId, agentId: name.agentId };
  }
  const [orgId, teamId, agentId, ...rest] = name.split('/');
  if (orgId === undefined || orgId === '' || teamId === undefined || agentId === undefined || rest.length > 0)
    throw new TypeError(`${option} must be <org>/<team>/<agent>, with - for no organization`);
  const agent = { orgId: orgId === '-' ? '' : orgId, teamId, agentId };
  requireAgent(agent, option);
  return agent;
}

function credentialOf({ apiKey, credentialToken }: AgentClientOptions, env: Env): Settings['credential'] {
  if (credentialToken !== undefined && apiKey !== undefined)
    throw new TypeError('set only one of credentialToken and apiKey');
  if (credentialToken !== undefined) return { credentialToken: secretOf(credentialToken, 'credentialToken') };
  if (apiKey !== undefined) return { apiKey: secretOf(apiKey, 'apiKey') };
  if (env.SVC_AGENT_TOKEN) return { credentialToken: secretOf(env.SVC_AGENT_TOKEN, 'SVC_AGENT_TOKEN') };
  if (env.SVC_API_KEY) return { apiKey: secretOf(env.SVC_API_KEY, 'SVC_API_KEY') };
  throw new TypeError('set credentialToken or apiKey, or one of SVC_AGENT_TOKEN and SVC_API_KEY in the environment');
}

function secretOf(secret: string, option: string): string {
  if (secret === '') throw new TypeError(`${option} is empty; check that the variable it comes from is set`);
  if (!/^[\x21-\x7e]+$/.test(secret)) throw new TypeError(`${option} must consist of visible ASCII characters`);
  return secret;
}

/** `onWarning` of each client, for the adapters, which have only the client. */
const warningsOf = new WeakMap<object, (warning: Error) => void>();

export const heard = (client: object, { onWarning }: Settings): void => void warningsOf.set(client, onWarning);

/** A client that the application has wrapped has no `onWarning`. */
export const warnOf = (client: object, warning: Error): void => (warningsOf.get(client) ?? warn)(warning);

/** An exception in a hook must not end its caller, nor the process where the hook is asynchronous. */
const guarded =
  <Args extends unknown[]>(hook: (...args: Args) => unknown) =>
  (...args: Args): void => {
    const called = async (): Promise<unknown> => hook(...args);
    called().catch((error: unknown) => warn(error instanceof Error ? error : new Error(String(error))));
  };

function duration(given: number | undefined, fallbackMs: number, leastMs: number, option: string): number {
  const ms = given ?? fallbackMs;
  if (!(ms >= leastMs && ms <= LONGEST_MS))
    throw new TypeError(`deadlines.${option} must be from ${leastMs} to ${LONGEST_MS} milliseconds`);
  return ms;
}

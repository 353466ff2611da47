/** The options of a client, and the check for mistakes in them before anything is sent. */
import type { GatewayError } from './errors.ts';
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
  /** How long `close()` waits for work in progress before it aborts it. Default 5,000. */
  readonly closeMs?: number | undefined;
};

/** Exactly one of the two. */
export type AgentCredential =
  /** The agent's own token, from an earlier registration. */
  | { readonly credentialToken: string; readonly apiKey?: undefined }
  /**
   * An API key, or a token made from one, with write scope. The client registers the agent and keeps the token it
   * receives in memory only. Registering an existing agent replaces its token, so each process needs an `agentId` of
   * its own.
   */
  | { readonly apiKey: string; readonly credentialToken?: undefined };

/** What `createAgentClient` takes: where the gateway is, who the agent is, and one credential. */
export type AgentClientOptions = AgentCredential & {
  /** `host:port` of the gateway's gRPC. */
  readonly address: string;
  /** The agent's identity. */
  readonly agent: AgentId;
  /** The agent that started this one, of the same organization; recorded at registration. Only with `apiKey`. */
  readonly parent?: AgentId | undefined;
  /**
   * The answer to checks when the gateway cannot be reached or does not answer in time: `deny` (the default) or
   * `allow`. It never overrides an answer from the gateway, not even that it is overloaded or cannot write its audit
   * log.
   */
  readonly onUnreachable?: 'allow' | 'deny' | undefined;
  readonly deadlines?: Deadlines | undefined;
  /** Maximum checks in flight; further ones wait. 1 to 1,000; default 1,000. */
  readonly maxInFlight?: number | undefined;
  /** `{}`: TLS with the defaults. Omitted: no TLS, which is safe only on loopback or behind a local proxy. */
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
   * `process.emitWarning`.
   */
  readonly onWarning?: ((error: Error) => void) | undefined;
  /** Called with what a rule obliges `run` to show to the operator. Default: `process.emitWarning`. */
  readonly onNotice?: ((notice: Notice) => void) | undefined;
};

export type Settings = {
  readonly address: string;
  readonly agent: AgentId;
  readonly parent: AgentId | undefined;
  readonly credential: AgentCredential;
  readonly onUnreachable: 'allow' | 'deny';
  readonly checkMs: number;
  readonly callMs: number;
  readonly approvalMs: number;
  readonly outageMs: number;
  readonly closeMs: number;
  readonly maxInFlight: number;
  readonly tls: TlsOptions | undefined;
  readonly onStateChange: NonNullable<AgentClientOptions['onStateChange']>;
  readonly onSignal: NonNullable<AgentClientOptions['onSignal']>;
  readonly onWarning: NonNullable<AgentClientOptions['onWarning']>;
  readonly onNotice: NonNullable<AgentClientOptions['onNotice']>;
};

const MAX_IN_FLIGHT = 1000;
const LONGEST_MS = 24 * 60 * 60 * 1000;

const OPTIONS: KeysOf<AgentClientOptions> = {
  address: true,
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
  closeMs: true,
};
const TLS: KeysOf<TlsOptions> = { ca: true, cert: true, key: true, serverName: true };

/** Throws a TypeError that names the wrong option. */
export function settingsOf(options: AgentClientOptions): Settings {
  if (typeof options !== 'object' || options === null)
    throw new TypeError(
      "createAgentClient needs options: address, such as '127.0.0.1:50051'; agent, { orgId, teamId, agentId }; and apiKey or credentialToken",
    );
  requireKnownKeys(options, 'createAgentClient', OPTIONS);
  const {
    address,
    agent,
    parent,
    credentialToken,
    apiKey,
    onUnreachable = 'deny',
    deadlines = {},
    maxInFlight = MAX_IN_FLIGHT,
    tls,
  } = options;
  requireKnownKeys(deadlines, 'deadlines', DEADLINES);
  if (tls !== undefined) requireKnownKeys(tls, 'tls', TLS);
  if (!/^(?!https?:)\S+:\d{1,5}$/i.test(address))
    throw new TypeError('address must be host:port, such as 127.0.0.1:50051');
  requireAgent(agent, 'agent');
  if (parent !== undefined) requireAgent(parent, 'parent');
  if ((credentialToken === undefined) === (apiKey === undefined))
    throw new TypeError('set exactly one of credentialToken and apiKey');
  const [secret, option] = apiKey === undefined ? [credentialToken, 'credentialToken'] : [apiKey, 'apiKey'];
  if (secret === '') throw new TypeError(`${option} is empty; check that the variable it comes from is set`);
  if (!/^[\x21-\x7e]+$/.test(secret ?? '')) throw new TypeError(`${option} must consist of visible ASCII characters`);
  if (onUnreachable !== 'deny' && onUnreachable !== 'allow')
    throw new TypeError("onUnreachable must be 'deny' or 'allow'");
  if (!Number.isInteger(maxInFlight) || maxInFlight < 1 || maxInFlight > MAX_IN_FLIGHT)
    throw new TypeError(`maxInFlight must be a whole number from 1 to ${MAX_IN_FLIGHT}`);
  return {
    address,
    agent: { orgId: agent.orgId, teamId: agent.teamId, agentId: agent.agentId },
    parent,
    credential: apiKey === undefined ? { credentialToken } : { apiKey },
    onUnreachable,
    checkMs: duration(deadlines.checkMs, 5_000, 1, 'checkMs'),
    callMs: duration(deadlines.callMs, 10_000, 1, 'callMs'),
    approvalMs: duration(deadlines.approvalMs, 900_000, 0, 'approvalMs'),
    outageMs: duration(deadlines.outageMs, 1_000, 0, 'outageMs'),
    closeMs: duration(deadlines.closeMs, 5_000, 0, 'closeMs'),
    maxInFlight,
    tls,
    onStateChange: guarded(options.onStateChange ?? (() => {})),
    onSignal: options.onSignal ?? (() => {}),
    onWarning: guarded(options.onWarning ?? ((error) => process.emitWarning(error))),
    onNotice: guarded(
      options.onNotice ?? (({ message, opId }) => process.emitWarning(`${message} (operation ${opId})`, 'SvcNotice')),
    ),
  };
}

/** An exception in a hook must not end its caller, nor the process where the hook is asynchronous. */
const guarded =
  <Args extends unknown[]>(hook: (...args: Args) => unknown) =>
  (...args: Args): void => {
    const called = async (): Promise<unknown> => hook(...args);
    called().catch((error: unknown) => process.emitWarning(error instanceof Error ? error : new Error(String(error))));
  };

function duration(given: number | undefined, fallbackMs: number, leastMs: number, option: string): number {
  const ms = given ?? fallbackMs;
  if (!(ms >= leastMs && ms <= LONGEST_MS))
    throw new TypeError(`deadlines.${option} must be from ${leastMs} to ${LONGEST_MS} milliseconds`);
  return ms;
}

/** Who calls the proxy: the bearer of a request and the agent that it names, and whether they may be believed. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Credential, GatewayCalls } from '../../client/calls.ts';
import { kindOf } from '../../client/environment.ts';
import { type AgentIdentity, parseAgentKey } from '../../core/base/ids.ts';
import { isMapping, mappingIn } from '../../core/base/mapping.ts';
import { Gateway } from '../gateway.ts';

/** Why nobody is believed to call, as HTTP says it. */
export type Refusal = { readonly status: 401 | 403 | 503; readonly error: string | undefined; readonly detail: string };
export type Claim = { readonly secret: string; readonly agent: AgentIdentity };

export const isRefusal = (value: object): value is Refusal => 'status' in value;

/** The credential and name that a request presents. `named`: undefined if it names no agent. */
type Presented = { readonly secret: string; readonly named: AgentIdentity | undefined };
const NO_AGENT: Refusal = {
  status: 403,
  error: 'invalid_request',
  detail: 'name the agent: x-svc-agent: <org>/<team>/<agent>',
};
const busy = (detail: string): Refusal => ({ status: 503, error: undefined, detail });

function presentedIn({ authorization, 'x-svc-agent': header }: IncomingHttpHeaders): Presented | Refusal {
  if (authorization === undefined)
    return { status: 401, error: undefined, detail: 'send Authorization: Bearer <agent token or API key>' };
  const secret = /^bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1];
  if (secret === undefined)
    return { status: 401, error: 'invalid_request', detail: 'the authorization must be Bearer <credential>' };
  if (header === undefined) return { secret, named: undefined };
  const named = parseAgentKey(String(header));
  return named === undefined ? NO_AGENT : { secret, named };
}

/** Undefined in the place of the agent: the gateway knows the credential, but it is no agent's own token. */
type Owned = { readonly agent: AgentIdentity | undefined };

/** Whose token it is, asked once in so long: nobody else is ever given the same. */
const OWNER_MS = 60_000;
const MAX_OWNERS = 2_000;
/** Beyond that, unauthenticated callers, whose tokens are asked about each time, would take the connections of all. */
const MAX_ASKING = 16;

/** Finds out who calls. `fallback` is the agent of the proxy's own environment. */
export class Callers {
  readonly #calls: GatewayCalls;
  readonly #fallback: AgentIdentity | undefined;
  /** By the digest of the credential; only of those that the gateway knows. */
  readonly #owners = new Map<string, Owned & { readonly untilMs: number }>();
  readonly #asking = new Map<string, Promise<Owned | Refusal>>();

  constructor(calls: GatewayCalls, fallback: AgentIdentity | undefined) {
    this.#calls = calls;
    this.#fallback = fallback;
  }

  /** An agent's own token says by itself whose it is; any other credential speaks for the agent that is named. */
  async callerIn(headers: IncomingHttpHeaders): Promise<Claim | Refusal> {
    const presented = presentedIn(headers);
    if (isRefusal(presented)) return presented;
    const { secret, named } = presented;
    if (named !== undefined) return { secret, agent: named };
    const owned = kindOf(secret) === 'token' ? await this.#ownerOf(secret) : NO_OWNER;
    if (isRefusal(owned)) return owned;
    const agent = owned.agent ?? this.#fallback;
    return agent === undefined ? NO_AGENT : { secret, agent };
  }

  #ownerOf(secret: string): Promise<Owned | Refusal> {
    const digest = digestOf(secret);
    const kept = this.#owners.get(digest);
    if (kept !== undefined && performance.now() < kept.untilMs) return Promise.resolve(kept);
    const asked = this.#asking.get(digest);
    if (asked !== undefined) return asked;
    if (this.#asking.size >= MAX_ASKING)
      return Promise.resolve(busy('too many credentials are looked up; send x-svc-agent: <org>/<team>/<agent>'));
    const asking = this.#ask(secret).then((owned) => {
      this.#asking.delete(digest);
      if (!isRefusal(owned)) this.#keep(digest, owned);
      return owned;
    });
    this.#asking.set(digest, asking);
    return asking;
  }

  async #ask(secret: string): Promise<Owned | Refusal> {
    const reply = await this.#calls.get('api/v1/agents/self', { bearer: secret });
    if (reply.kind === 'answer') {
      const agent = agentIn(reply.body.agent);
      return agent === undefined ? busy('the gateway did not say whose token it is') : { agent };
    }
    if (reply.kind === 'unreachable') return busy(reply.reason);
    if (reply.code === 'unauthenticated')
      return { status: 401, error: 'invalid_token', detail: 'the gateway does not take this credential' };
    // A key is none, and an older gateway does not know the path.
    return ['not_found', 'insufficient_scope'].includes(reply.code) ? NO_OWNER : busy(reply.reason);
  }

  #keep(digest: string, owned: Owned): void {
    this.#owners.delete(digest);
    const [oldest] = this.#owners.keys();
    if (oldest !== undefined && this.#owners.size >= MAX_OWNERS) this.#owners.delete(oldest);
    this.#owners.set(digest, { ...owned, untilMs: performance.now() + OWNER_MS });
  }
}

const NO_OWNER: Owned = { agent: undefined };

function agentIn(value: unknown): AgentIdentity | undefined {
  if (!isMapping(value)) return undefined;
  const { org_id: orgId, team_id: teamId, agent_id: agentId } = value;
  return typeof orgId === 'string' && typeof teamId === 'string' && typeof agentId === 'string'
    ? { orgId, teamId, agentId }
    : undefined;
}

/** Digests have one length, and tell nothing by the time that comparing them takes. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Returns the key that binds a session to its credential and agent. */
export const bindingOf = ({ secret, agent }: Claim): string =>
  digestOf(JSON.stringify([secret, agent.orgId, agent.teamId, agent.agentId]));

/** The credential behind a claim, if the gateway takes it. */
export async function verified(
  claim: Claim,
  calls: GatewayCalls,
  audience: string,
): Promise<{ readonly credential: Credential } | Refusal> {
  const { agent, secret } = claim;
  if (!isForAudience(secret, audience))
    return { status: 401, error: 'invalid_token', detail: 'the access token is not meant for this gateway' };
  const first = kindOf(secret);
  // A key that an operator has chosen looks like nothing in particular.
  const kinds: readonly Credential['kind'][] = first === 'bearer' ? ['bearer'] : ['token', 'bearer'];
  for (const kind of kinds) {
    const credential: Credential = { agent, secret, kind };
    const { known, isReachable, reason } = await new Gateway(calls, credential).isKnown();
    if (known) return { credential };
    if (!isReachable) return { status: 503, error: undefined, detail: reason };
  }
  await new Gateway(calls, { agent, secret, kind: first }).recordRefusal();
  return { status: 401, error: 'invalid_token', detail: 'the gateway does not take this credential for this agent' };
}

/**
 * Compares the audience of an access token, which anybody can read: a token for another audience is passed on to
 * nobody.
 */
function isForAudience(secret: string, audience: string): boolean {
  const [, payload, signature] = secret.split('.');
  if (payload === undefined || signature === undefined) return true;
  const aud = mappingIn(Buffer.from(payload, 'base64url').toString('utf8'))?.aud;
  return Array.isArray(aud) ? aud.includes(audience) : aud === audience;
}

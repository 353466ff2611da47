/** Who calls the proxy: the bearer of a request and the agent that it names, and whether they may be believed. */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { type AgentIdentity, parseAgentKey } from '../../core/base/ids.ts';
import { kindOf } from '../environment.ts';
import { Gateway } from '../gateway.ts';
import type { Credential, GatewayCalls } from '../gateway-calls.ts';

/** Why nobody is believed to call, as HTTP says it. */
export type Refusal = { readonly status: 401 | 403 | 503; readonly error: string | undefined; readonly detail: string };
export type Claim = { readonly secret: string; readonly agent: AgentIdentity };

export const isRefusal = (value: Claim | Refusal): value is Refusal => 'status' in value;

/** What a request claims. `fallback` is the agent of the proxy's own environment. */
export function claimIn(headers: IncomingHttpHeaders, fallback: AgentIdentity | undefined): Claim | Refusal {
  const { authorization, 'x-svc-agent': named } = headers;
  if (authorization === undefined)
    return { status: 401, error: undefined, detail: 'send Authorization: Bearer <agent token or API key>' };
  const secret = /^bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1];
  if (secret === undefined)
    return { status: 401, error: 'invalid_request', detail: 'the authorization must be Bearer <credential>' };
  const agent = named === undefined ? fallback : parseAgentKey(String(named));
  if (agent === undefined)
    return {
      status: 403,
      error: 'invalid_request',
      detail: 'name the agent: x-svc-agent: <org>/<team>/<agent>',
    };
  return { secret, agent };
}

/** Digests have one length, and tell nothing by the time that comparing them takes. */
export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** What a session is bound to. */
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

/** Of an access token, which anybody can read, the audience is compared here: a foreign one is passed on to nobody. */
function isForAudience(secret: string, audience: string): boolean {
  const [, payload, signature] = secret.split('.');
  if (payload === undefined || signature === undefined) return true;
  try {
    const { aud } = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8')) as { readonly aud?: unknown };
    return Array.isArray(aud) ? aud.includes(audience) : aud === audience;
  } catch {
    return false;
  }
}

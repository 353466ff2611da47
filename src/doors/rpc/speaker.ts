/**
 * Who asks at a door whose protocol has no place for an agent's identity: `Authorization: Bearer <agent token or API
 * key>` and, with a key, `x-svc-agent: <org>/<team>/<agent>` (docs/spec.md, Identity).
 */
import { type AgentIdentity, parseAgentKey } from '../../core/base/ids.ts';
import { ok, type Result } from '../../core/base/result.ts';
import { type Fault, invalid, unauthenticated } from '../../core/fault.ts';
import { authenticateWriter, bearerOf } from './bearer.ts';
import { digestOfPresented } from './credential-digests.ts';
import type { WirePorts } from './ports.ts';

/** In lower case, as HTTP headers and gRPC metadata are looked up. */
export const AGENT_HEADER = 'x-svc-agent';

export type Introduction = {
  /** The header or metadata of that name, as it came. */
  readonly authorization: string | undefined;
  /** `<org>/<team>/<agent>`: from the header, or where the protocol names the agent. */
  readonly claimed: string | undefined;
};

/** What a request to `CheckAction` or `CompleteOp` says of its caller; `authorization` is handed over beside it. */
export type Speaker = {
  readonly agent: AgentIdentity;
  /** Empty where a key vouches for the agent. */
  readonly credentialToken: string;
  readonly authorization: string | undefined;
};

/**
 * Only finds out for whom the caller speaks. Whether it may is decided, and recorded, by the check: a token that is
 * presented for another agent, or a key that names an agent of another org, makes a speaker here and is denied there.
 *
 * Faults: `unauthenticated` without a bearer or for one that nobody knows, `insufficient_scope` for a key without
 * write scope, `invalid_argument` for a key that does not say for which agent it speaks.
 */
export async function speakerOf(
  ports: WirePorts,
  { authorization, claimed }: Introduction,
): Promise<Result<Speaker, Fault>> {
  const bearer = bearerOf(authorization);
  if (authorization === undefined || bearer === undefined)
    return unauthenticated(
      "no credential presented; send the agent's token, or an API key with x-svc-agent, as Authorization: Bearer …",
    );
  const named = claimed === undefined || claimed === '' ? undefined : parseAgentKey(claimed);
  const isMalformed = named === undefined && claimed !== undefined && claimed !== '';
  const { reply } = await ports.link.ask({ type: 'find-agent', credential: digestOfPresented(bearer) });
  if (!reply.ok) return reply;
  const { agent: owner } = reply.value;
  if (owner === undefined) {
    const principal = await authenticateWriter(ports, authorization);
    if (!principal.ok) return principal;
  }
  if (isMalformed) return invalid(AGENT_HEADER, 'must be <org>/<team>/<agent>');
  const agent = named ?? owner;
  if (agent === undefined)
    return invalid(AGENT_HEADER, 'is required with an API key: send <org>/<team>/<agent>, the agent it speaks for');
  return ok(
    owner === undefined
      ? { agent, credentialToken: '', authorization }
      : { agent, credentialToken: bearer, authorization: undefined },
  );
}

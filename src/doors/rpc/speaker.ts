/**
 * Who asks at a door whose protocol has no place for an agent's identity: `Authorization: Bearer <agent token or API
 * key>` and, with a key, `x-svc-agent: <org>/<team>/<agent>` (docs/spec.md, Identity).
 */
import { type AgentIdentity, parseAgentKey } from '../../core/base/ids.ts';
import { ok, type Result } from '../../core/base/result.ts';
import { type Fault, invalid, unauthenticated } from '../../core/fault.ts';
import type { Principal } from '../../core/identity/roles.ts';
import type { Origin } from '../../use-cases/use-cases.ts';
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

/** A bearer that somebody knows: an agent's token, or a credential with the write scope. */
export type KnownBearer = {
  readonly authorization: string;
  readonly token: string;
  /** Whose token it is. */
  readonly owner: AgentIdentity | undefined;
  /** Of any other credential. */
  readonly principal: Principal | undefined;
};

/** Faults: `unauthenticated` without a bearer or for one that nobody knows, `insufficient_scope`. */
export async function knownBearer(
  ports: WirePorts,
  authorization: string | undefined,
  origin?: Origin,
): Promise<Result<KnownBearer, Fault>> {
  const token = bearerOf(authorization);
  if (authorization === undefined || token === undefined)
    return unauthenticated(
      "no credential presented; send the agent's token, or an API key with x-svc-agent, as Authorization: Bearer …",
    );
  const { reply } = await ports.link.ask({ type: 'find-agent', credential: digestOfPresented(token) });
  if (!reply.ok) return reply;
  const { agent: owner } = reply.value;
  if (owner !== undefined) return ok({ authorization, token, owner, principal: undefined });
  const principal = await authenticateWriter(ports, authorization, origin);
  return principal.ok ? ok({ authorization, token, owner, principal: principal.value }) : principal;
}

/** Fault: `invalid_argument` where it is not said, or not legibly, for which agent a key speaks. */
export function speakerFor(
  { authorization, token, owner }: KnownBearer,
  claimed: string | undefined,
): Result<Speaker, Fault> {
  const isClaimed = claimed !== undefined && claimed !== '';
  const agent = isClaimed ? parseAgentKey(claimed) : owner;
  if (agent === undefined)
    return isClaimed
      ? invalid(AGENT_HEADER, 'must be <org>/<team>/<agent>')
      : invalid(AGENT_HEADER, 'is required with an API key: send <org>/<team>/<agent>, the agent it speaks for');
  return ok(
    owner === undefined
      ? { agent, credentialToken: '', authorization }
      : { agent, credentialToken: token, authorization: undefined },
  );
}

/**
 * Only finds out for whom the caller speaks. Whether it may is decided, and recorded, by the check: a token that is
 * presented for another agent, or a key that names an agent of another org, makes a speaker here and is denied there.
 * The faults are those of the two steps.
 */
export async function speakerOf(
  ports: WirePorts,
  { authorization, claimed }: Introduction,
  origin?: Origin,
): Promise<Result<Speaker, Fault>> {
  const bearer = await knownBearer(ports, authorization, origin);
  return bearer.ok ? speakerFor(bearer.value, claimed) : bearer;
}

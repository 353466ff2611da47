/**
 * Who asks at a door whose protocol has no place for an agent's identity: `Authorization: Bearer <agent token or API
 * key>` and, with a key, `x-svc-agent: <org>/<team>/<agent>` (docs/spec.md, Identity).
 */
import { type AgentIdentity, agentKeyOf, parseAgentKey } from '../../core/base/ids.ts';
import { ok, type Result } from '../../core/base/result.ts';
import { type Fault, invalid, unauthenticated } from '../../core/fault.ts';
import type { Voucher } from '../../core/identity/access.ts';
import type { Origin } from '../../use-cases/use-cases.ts';
import { authenticateWriter, bearerOf } from './bearer.ts';
import { digestOfPresented } from './credential-digests.ts';
import type { WirePorts } from './ports.ts';

/** In lower case, as HTTP headers and gRPC metadata are looked up. */
export const AGENT_HEADER = 'x-svc-agent';

/** An agent, and the credential behind it. */
export type Vouched = Voucher & { readonly agent: AgentIdentity };

/** A bearer that somebody knows: an agent's token, or a credential of a principal with the write scope. */
export type KnownBearer = Voucher & {
  /** The header or metadata of that name, as it came. */
  readonly authorization: string;
  /** Whose token it is. */
  readonly owner: AgentIdentity | undefined;
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
  const credential = digestOfPresented(token);
  const known = ports.link.ownerOf?.(credential);
  if (known !== undefined) return ok({ authorization, owner: known, credential, principal: undefined });
  void origin?.address; // which can be told only while its connection is there
  const { reply } = await ports.link.ask({ type: 'find-agent', credential });
  if (!reply.ok) return reply;
  const { agent: owner } = reply.value;
  if (owner !== undefined) return ok({ authorization, owner, credential, principal: undefined });
  const principal = await authenticateWriter(ports, authorization, origin);
  return principal.ok ? ok({ authorization, owner, credential: undefined, principal: principal.value }) : principal;
}

/** Who asks, and for which agent it says that it speaks, if it says so. */
export type Asker = { readonly bearer: KnownBearer; readonly claimed: string | undefined };

/** As `knownBearer`, of a request over HTTP. */
export async function askerOf(
  ports: WirePorts,
  { headers, caller }: { readonly headers: Pick<ReadonlyMap<string, string>, 'get'>; readonly caller: Origin },
): Promise<Result<Asker, Fault>> {
  const bearer = await knownBearer(ports, headers.get('authorization'), caller);
  return bearer.ok ? ok({ bearer: bearer.value, claimed: headers.get(AGENT_HEADER) || undefined }) : bearer;
}

/**
 * Only finds out for whom the caller speaks: `claimed` is `<org>/<team>/<agent>`, from the header or where the protocol
 * names the agent. Whether it may is decided, and recorded, by the check: a token that is presented for another agent,
 * or a key that names an agent of another org, makes a speaker here and is denied there. Fault: `invalid_argument`
 * where it is not said, or not legibly, for which agent a key speaks.
 */
export function speakerFor(
  { owner, credential, principal }: KnownBearer,
  claimed: string | undefined,
): Result<Vouched, Fault> {
  const isClaimed = claimed !== undefined && claimed !== '';
  const isOwner = !isClaimed || (owner !== undefined && claimed === agentKeyOf(owner));
  const agent = isOwner ? owner : parseAgentKey(claimed);
  if (agent === undefined)
    return isClaimed
      ? invalid(AGENT_HEADER, 'must be <org>/<team>/<agent>')
      : invalid(AGENT_HEADER, 'is required with an API key: send <org>/<team>/<agent>, the agent it speaks for');
  return ok({ agent, credential, principal });
}

/** An agent with its present credential. */
export type Vouch = () => Promise<Result<Vouched, Fault>>;

/** The speaker with its present credential: a key may have ended since. */
export async function vouchedAgain(
  ports: WirePorts,
  { authorization }: KnownBearer,
  speaker: Vouched,
  origin?: Origin,
): Promise<Result<Vouched, Fault>> {
  if (speaker.credential !== undefined) return ok(speaker);
  const principal = await authenticateWriter(ports, authorization, origin);
  return principal.ok ? ok({ ...speaker, principal: principal.value }) : principal;
}

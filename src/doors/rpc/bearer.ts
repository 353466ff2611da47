/** The bearer of a call over any protocol, and the principal behind it for gRPC and Connect, which need write scope. */

import { fail, ok, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import { refuseWithout } from '../../core/identity/access.ts';
import type { Principal } from '../../core/identity/roles.ts';
import type { Origin } from '../../use-cases/use-cases.ts';
import type { WirePorts } from './ports.ts';

/** The credential of an Authorization header or metadata; undefined when there is none of the Bearer kind. */
export const bearerOf = (authorization: string | undefined): string | undefined =>
  authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];

const BEARER = /^bearer +(\S+) *$/i;

/** The bearer that authorizes an agent without a token of its own; undefined if there is none either. */
export const voucherPrincipal = (
  ports: WirePorts,
  credentialToken: string,
  authorization: string | undefined,
  origin?: Origin,
): Promise<Result<Principal | undefined, Fault>> =>
  credentialToken !== '' || authorization === undefined
    ? Promise.resolve(ok(undefined))
    : authenticateWriter(ports, authorization, origin);

/**
 * The bearer of a call that the HTTP API has too: it counts against the same limit, or the limit would be none
 * (docs/spec.md, Rate limits). The agents' own calls, which come as often as checks, do not.
 */
export async function requireOperator(
  ports: WirePorts,
  authorization: string | undefined,
  origin?: Origin,
): Promise<Result<Principal, Fault>> {
  if (authorization === undefined)
    return fail({
      kind: 'unauthenticated',
      detail: 'no credential presented; send an API key or access token as a bearer in the authorization metadata',
    });
  const principal = await authenticateWriter(ports, authorization, origin);
  if (!principal.ok) return principal;
  const permit = await ports.link.call('takePermit', { limit: 'credential', key: principal.value.subject });
  return permit.ok ? principal : permit;
}

export async function authenticateWriter(
  ports: WirePorts,
  authorization: string,
  origin?: Origin,
): Promise<Result<Principal, Fault>> {
  const bearer = bearerOf(authorization);
  if (bearer === undefined)
    return fail({ kind: 'unauthenticated', detail: 'the authorization must have the form Bearer <credential>' });
  const principal = await ports.authenticate(bearer, origin?.address);
  return principal.ok ? (refuseWithout('write', principal.value) ?? principal) : principal;
}

/** Why a bearer is no longer valid; undefined while it is, or while that cannot be found out. */
export async function endOfBearer(ports: WirePorts, authorization: string): Promise<Fault | undefined> {
  const principal = await authenticateWriter(ports, authorization);
  return !principal.ok && principal.fault.kind === 'unauthenticated' ? principal.fault : undefined;
}

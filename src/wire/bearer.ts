/** Who is behind the bearer of a call, which must have write scope. */
import type { Fault } from '../core/fault.ts';
import { fail, ok, type Result } from '../core/result.ts';
import { refuseWithout, type Principal } from '../core/scope.ts';
import type { WirePorts } from './ports.ts';

/** The bearer that vouches for an agent which presents no token of its own; undefined when there is none either. */
export const voucherPrincipal = (ports: WirePorts, credentialToken: string, authorization: string | undefined): Promise<Result<Principal | undefined, Fault>> =>
  credentialToken !== '' || authorization === undefined ? Promise.resolve(ok(undefined)) : authenticateWriter(ports, authorization);

/**
 * The bearer of a call that the HTTP API has too: it counts against the same limit, or the limit would be none (contract: Rate
 * limits). The agents' own calls, which come as often as checks, do not.
 */
export async function requireOperator(ports: WirePorts, authorization: string | undefined): Promise<Result<Principal, Fault>> {
  if (authorization === undefined) return fail({ kind: 'unauthenticated', detail: 'send an API key or a token as bearer in the authorization metadata' });
  const principal = await authenticateWriter(ports, authorization);
  if (!principal.ok) return principal;
  const permit = await ports.link.call('takePermit', { limit: 'credential', key: principal.value.subject });
  return permit.ok ? principal : permit;
}

const BEARER = /^bearer +(\S+)$/i;

export async function authenticateWriter(ports: WirePorts, authorization: string): Promise<Result<Principal, Fault>> {
  const bearer = BEARER.exec(authorization)?.[1];
  if (bearer === undefined) return fail({ kind: 'unauthenticated', detail: 'the authorization must be the word Bearer and a credential' });
  const principal = await ports.authenticate(bearer);
  return principal.ok ? refuseWithout('write', principal.value) ?? principal : principal;
}

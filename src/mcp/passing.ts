/**
 * Requests that are passed on without an operation: the level of logs, the end of a subscription, and what newer
 * clients ask in the place of `initialize`. They go to their servers with the members that are known, and only while
 * the gateway takes the credential: otherwise they would carry to a server whatever an agent writes into them.
 */
import { isMapping } from '../core/base/mapping.ts';
import type { Gateway } from './gateway.ts';
import { type Answer, errorOf, type Fields, type Request, RPC_CODE } from './json-rpc.ts';
import { askedBy, subjectOf } from './subjects.ts';

export type Passer = { readonly gateway: Gateway; readonly traceId: string; readonly servers: readonly string[] };

/** The levels of RFC 5424. */
const LEVELS: readonly unknown[] = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'];
const META = ['protocolVersion', 'clientInfo', 'clientCapabilities'].map((name) => `io.modelcontextprotocol/${name}`);

type Row = (params: Fields) => Fields | string;

const ROWS: Readonly<Record<string, Row>> = {
  'logging/setLevel': ({ level }) =>
    LEVELS.includes(level) ? { level } : `params.level must be one of ${LEVELS.join(', ')}`,
  'resources/unsubscribe': ({ uri }) => ({ uri }),
  'server/discover': () => ({}),
};

export const PASSED: readonly string[] = Object.keys(ROWS);

/** The request to send instead, and the servers to send it to; or the reason why there is none. */
export type Passed = { readonly params: Fields; readonly servers: readonly string[] };

export async function passed(request: Request, passer: Passer): Promise<Passed | Answer> {
  const { id, method, params = {} } = request;
  const known = ROWS[method]?.(params) ?? 'it cannot be checked';
  if (typeof known === 'string') return errorOf(id, RPC_CODE.invalidParams, known);
  const whole = { ...known, ...metaOf(params) };
  if (method === 'resources/unsubscribe') return readable(request, whole, passer);
  const refusal = await unknownTo(passer.gateway);
  return refusal === undefined ? { params: whole, servers: passer.servers } : { ...refusal, id };
}

/** Why nothing is passed on: the gateway does not take the credential. */
export async function unknownTo(gateway: Gateway): Promise<Answer | undefined> {
  const { known, reason } = await gateway.isKnown();
  return known ? undefined : errorOf(0, RPC_CODE.denied, `Denied: ${reason}`);
}

/** A uri says as much to a server as the reading of it, so it must be one that may be read. */
async function readable(
  { id, params: { uri } = {} }: Request,
  params: Fields,
  { gateway, traceId, servers }: Passer,
): Promise<Passed | Answer> {
  const asked = askedBy({ jsonrpc: '2.0', id: 0, method: 'resources/subscribe', params: { uri } });
  if (asked === undefined || typeof asked === 'string')
    return errorOf(id, RPC_CODE.invalidParams, asked ?? 'it cannot be checked');
  const subjects = servers.map((server) => subjectOf(server, asked));
  const rehearsed = await gateway.rehearse(subjects, traceId);
  if ('failure' in rehearsed) return errorOf(id, RPC_CODE.denied, `Denied: ${rehearsed.failure}`);
  const { verdicts } = rehearsed;
  const allowed = servers.filter((_, n) => verdicts[n]?.decision === 'allow');
  return allowed.length > 0
    ? { params, servers: allowed }
    : errorOf(id, RPC_CODE.denied, `Denied: ${verdicts[0]?.reason ?? 'no server has resources'}`);
}

/** Picks the part that servers know from the metadata that newer clients send with every request. */
export function metaOf({ _meta: meta }: Fields): { readonly _meta?: Fields } {
  if (!isMapping(meta)) return {};
  const kept = META.filter((name) => meta[name] !== undefined).map((name) => [name, meta[name]]);
  return kept.length === 0 ? {} : { _meta: Object.fromEntries(kept) };
}

/**
 * `subscriptions/listen` of MCP 2026-07-28: which changes of a server an agent is told of. Unknown kinds are not passed
 * on, and only resources that may be read are.
 */
import { isMapping } from '../core/base/mapping.ts';
import type { Gateway } from './gateway.ts';
import { type Answer, errorOf, type Fields, type Request, RPC_CODE } from './json-rpc.ts';
import { metaOf, unknownTo } from './passing.ts';
import { askedBy, type Subject, subjectOf } from './subjects.ts';

export const LISTEN = 'subscriptions/listen';

/** That a list has changed says nothing of what is in it: the list itself holds what may be used. */
const LISTS_CHANGED = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const;
const MAX_RESOURCES = 1_000;

export type Listener = { readonly gateway: Gateway; readonly traceId: string; readonly server: string };

/** Returns the request for the server in its place, or the reason why it is not asked. */
export async function listened(
  request: Request,
  { gateway, traceId, server }: Listener,
): Promise<{ readonly params: Fields } | Answer> {
  const { id, params = {} } = request;
  const { notifications } = params;
  if (!isMapping(notifications)) return errorOf(id, RPC_CODE.invalidParams, 'params.notifications must be an object');
  const subjects = subjectsOf(notifications, server);
  if (typeof subjects === 'string') return errorOf(id, RPC_CODE.invalidParams, subjects);
  const lists = Object.fromEntries(
    LISTS_CHANGED.filter((kind) => notifications[kind] === true).map((kind) => [kind, true]),
  );
  const unknown = subjects.size === 0 ? await unknownTo(gateway) : undefined;
  if (unknown !== undefined) return { ...unknown, id };
  const rehearsed = subjects.size === 0 ? { verdicts: [] } : await gateway.rehearse([...subjects.values()], traceId);
  if ('failure' in rehearsed) return errorOf(id, RPC_CODE.denied, `Denied: ${rehearsed.failure}`);
  const { verdicts } = rehearsed;
  const readable = [...subjects.keys()].filter((_, n) => verdicts[n]?.decision === 'allow');
  if (subjects.size > 0 && readable.length === 0 && Object.keys(lists).length === 0)
    return errorOf(id, RPC_CODE.denied, `Denied: ${verdicts[0]?.reason ?? 'the gateway did not answer'}`);
  const asked = { ...lists, ...(readable.length > 0 && { resourceSubscriptions: readable }) };
  return { params: { ...metaOf(params), notifications: asked } };
}

/** By address. */
function subjectsOf(
  { resourceSubscriptions: uris = [] }: Fields,
  server: string,
): ReadonlyMap<string, Subject> | string {
  if (!Array.isArray(uris) || uris.length > MAX_RESOURCES)
    return `params.notifications.resourceSubscriptions must be a list of at most ${MAX_RESOURCES} uris`;
  const subjects = new Map<string, Subject>();
  for (const uri of uris) {
    const asked = askedBy({ jsonrpc: '2.0', id: 0, method: 'resources/subscribe', params: { uri } });
    if (asked === undefined || typeof asked === 'string') return asked ?? 'it cannot be checked';
    subjects.set(asked.name, subjectOf(server, asked));
  }
  return subjects;
}

/** Events that operators see live (docs/spec.md, Live stream). Milliseconds here; the wire makes RFC 3339 of them. */
import type { OpView } from '../core/ops/op-view.ts';

export const EVENT_KINDS = [
  'ops_change',
  'violation',
  'budget',
  'agent',
  'account',
  'halt',
  'approval',
  'policy',
  'limit',
] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

type Common = {
  /** Unique per event, growing. */
  readonly id: number;
  /** The org whose readers may see the event; null: only readers that see every org may. */
  readonly orgId: string | null;
  readonly agentId: string | null;
  readonly atMs: number;
};

export type GatewayEvent = Common &
  (
    | {
        readonly kind: 'ops_change';
        /** The names of its agent are beside it. */
        readonly payload: Omit<OpView, 'agent' | 'acknowledgedAtMs'> & { readonly teamId: string };
      }
    | { readonly kind: Exclude<EventKind, 'ops_change'>; readonly payload: Readonly<Record<string, unknown>> }
  );

type WithoutId<E> = E extends unknown ? Omit<E, 'id'> : never;
/** An event of another gateway: here it gets an id of its own. */
export type UnnumberedEvent = WithoutId<GatewayEvent>;

/** The orgs whose events a thread has a reader for; `all` when one of them may see every org. */
export type Interest = 'all' | readonly string[];

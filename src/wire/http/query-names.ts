/** The query parameters of the API. Each means the same in every route. */
import { z } from 'zod';
import { AUDIT_EVENTS } from '../../core/audit.ts';
import { OP_STATES } from '../../core/op-state.ts';
import { DEFAULT_PER_PAGE, MAX_PER_PAGE } from './body.ts';

const time = z.iso.datetime({ offset: true });

export const QUERY = {
  org_id: z.string().meta({
    description:
      'Only this org. Default: the org that the credential is bound to, or every org if it is bound to none.',
  }),
  team_id: z.string().min(1).meta({ description: 'Limit to teams of this name.' }),
  agent_id: z.string().min(1).meta({ description: 'Limit to agents of this name.' }),
  state: z.enum(OP_STATES).meta({ description: 'Only operations in this state.' }),
  event_type: z.enum(AUDIT_EVENTS).meta({ description: 'Only entries of this type.' }),
  decision: z.enum(['allow', 'deny']).meta({ description: 'Only entries with this decision.' }),
  op_id: z.string().min(1).meta({ description: 'Only entries about this operation.' }),
  actor: z.string().min(1).meta({ description: 'Only entries caused by this actor, such as `key:<id>`.' }),
  since: time.meta({ description: 'Only entries at or after this time.' }),
  until: time.meta({ description: 'Only entries before this time.' }),
  policy: z.string().min(1).meta({ description: 'Only the policy document of this name.' }),
  format: z.enum(['ndjson', 'csv']).meta({ description: 'Format of the export.', default: 'ndjson' }),
  per_page: z
    .int()
    .min(1)
    .max(MAX_PER_PAGE)
    .meta({ description: 'Maximum items per page.', default: DEFAULT_PER_PAGE }),
  cursor: z.string().meta({ description: '`next_cursor` of the previous page.' }),
  snapshot: z.boolean().meta({ description: 'Send the operations in flight first.', default: false }),
  lineage: z
    .boolean()
    .meta({ description: 'Add `registered_at` and `team_id` to the payload of `ops_change`.', default: false }),
  types: z.string().meta({ description: 'Comma-separated event types. Default: all.' }),
  ticket: z.string().meta({ description: 'A ticket from POST /api/v1/auth/ws-ticket, instead of a bearer.' }),
} as const satisfies Record<string, z.ZodType>;

export type QueryName = keyof typeof QUERY;

/** The query parameters of the API. Each means the same in every route. */
import { z } from 'zod';
import { AUDIT_EVENTS } from '../../core/audit.ts';
import { OP_STATES } from '../../core/op-state.ts';
import { DEFAULT_PER_PAGE, MAX_PER_PAGE } from './body.ts';

const time = z.iso.datetime({ offset: true });

export const QUERY = {
  org_id: z.string().meta({ description: 'Only what belongs to this org. Without it: the org of the credential, or every org when it is bound to none.' }),
  team_id: z.string().min(1).meta({ description: 'Only what belongs to a team of this name.' }),
  agent_id: z.string().min(1).meta({ description: 'Only what belongs to an agent of this name.' }),
  state: z.enum(OP_STATES).meta({ description: 'Only operations in this state.' }),
  event_type: z.enum(AUDIT_EVENTS).meta({ description: 'Only entries of this kind.' }),
  decision: z.enum(['allow', 'deny']).meta({ description: 'Only entries with this decision.' }),
  op_id: z.string().min(1).meta({ description: 'Only entries about this operation.' }),
  actor: z.string().min(1).meta({ description: 'Only what this actor caused, such as `key:<id>`.' }),
  since: time.meta({ description: 'Only entries of this time or later.' }),
  until: time.meta({ description: 'Only entries before this time.' }),
  format: z.enum(['ndjson', 'csv']).meta({ description: 'How the entries are written.', default: 'ndjson' }),
  per_page: z.int().min(1).max(MAX_PER_PAGE).meta({ description: 'How many items a page has at most.', default: DEFAULT_PER_PAGE }),
  cursor: z.string().meta({ description: '`next_cursor` of the page before.' }),
  snapshot: z.boolean().meta({ description: 'Sends the operations in flight first.', default: false }),
  lineage: z.boolean().meta({ description: 'Adds `registered_at` and `team_id` to the payload of `ops_change`.', default: false }),
  types: z.string().meta({ description: 'Kinds of events, separated by commas; without it: all.' }),
  ticket: z.string().meta({ description: 'A ticket of POST /api/v1/auth/ws-ticket, in place of a bearer.' }),
} as const satisfies Record<string, z.ZodType>;

export type QueryName = keyof typeof QUERY;

/** Approvals and limits in answers, as schemas. */
import { z } from 'zod';
import { APPROVAL_STATES } from '../../core/approvals/approval.ts';
import { LIMIT_PERS, LIMIT_UNITS } from '../../core/limits/limit.ts';
import { pageOf, rfc3339 } from './shapes.ts';

/** A limit, and one of those whose use it counts; amounts in its unit. */
const limitFields = {
  policy: z.string(),
  id: z.string(),
  per: z.enum(LIMIT_PERS),
  key: z
    .string()
    .meta({ description: 'Whose use it counts: `<trace_id>`, `<org>/<team>/<agent>`, `<org>/<team>` or `<org>`.' }),
  unit: z.enum(LIMIT_UNITS),
  used: z.number(),
  max: z.number().meta({ description: 'The maximum in force, with what was added.' }),
};
const approval = z.strictObject({
  id: z.string(),
  kind: z.enum(['action', 'limit']).meta({ description: 'Whether an action is to be allowed, or a limit raised.' }),
  state: z.enum(APPROVAL_STATES),
  digest: z
    .string()
    .meta({ description: 'SHA-256 of the canonical arguments it is bound to, in lower-case hexadecimal.' }),
  agent: z.strictObject({ org_id: z.string(), team_id: z.string(), agent_id: z.string() }),
  op_id: z.string().nullable(),
  op_ids: z.array(z.string()).meta({ description: 'Every operation that waits for it.' }),
  action: z.string(),
  resource: z.string(),
  attributes: z.unknown().meta({ description: 'Without secrets, as in the audit log.' }),
  estimated_cost_usd: z.number(),
  policy: z.string(),
  rule_id: z.string(),
  reason: z.string(),
  limit: z.strictObject(limitFields).nullable().meta({ description: 'Of kind `limit`: what it is about.' }),
  step: z.number().nullable().meta({ description: 'By how much the limit is raised.' }),
  requested_by: z.array(z.string()),
  requested_at: rfc3339,
  expires_at: rfc3339.meta({ description: 'Until when it can be decided or, once approved, used.' }),
  frozen_at: rfc3339.nullable().meta({ description: 'Since when a halt stops its clock.' }),
  min: z.int().meta({ description: 'How many different approvers it takes.' }),
  approvers: z.array(z.string()).meta({ description: 'Empty: every credential with admin scope.' }),
  valid_secs: z.number().nullable().meta({ description: 'Null: for one use.' }),
  decisions: z.array(
    z.strictObject({ decision: z.enum(['approve', 'deny']), by: z.string(), reason: z.string(), at: rfc3339 }),
  ),
  used_by: z.array(z.string()),
  cancel_reason: z.string().nullable(),
  changed_at: rfc3339,
});
export const limitPage = pageOf(
  'limits',
  z.strictObject({
    ...limitFields,
    org_id: z.string().nullable(),
    reserved: z.number().meta({ description: 'Of money: estimates of operations that run.' }),
    raised: z.number().meta({ description: 'What approvals have added to the maximum.' }),
    resets_at: rfc3339.nullable().meta({ description: 'When some of it leaves the span; null: nothing will.' }),
  }),
);
export const approvalAnswer = z.strictObject({ approval });
export const approvalPage = pageOf('approvals', approval);

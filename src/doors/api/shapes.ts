/** The API's answers as schemas: OpenAPI is generated from them, and tests check real answers against them. */
import { z } from 'zod';
import { AUDIT_EVENTS } from '../../core/audit/audit.ts';
import { PERIODS, TIERS } from '../../core/budget/config.ts';
import { DECISION_CAUSES } from '../../core/check/cause.ts';
import { HALT_MODES } from '../../core/halts/halt.ts';
import { OP_ENDS, OP_STATES } from '../../core/ops/op-state.ts';
import { RULE_EFFECTS } from '../../core/policy/effect.ts';
import { RULE_OUTCOMES } from '../../core/policy/rule.ts';
import { WEBHOOK_EVENTS } from '../../core/webhooks/webhook.ts';
import { obligationList } from '../shared/question-shapes.ts';

export const rfc3339 = z.iso.datetime().meta({ description: 'RFC 3339, UTC' });
export const nextCursor = z
  .string()
  .nullable()
  .meta({ description: 'The `cursor` of the next page; null on the last one.' });
export const pageOf = <S extends z.ZodType, N extends string>(name: N, item: S) =>
  z.strictObject({ [name]: z.array(item), next_cursor: nextCursor });

const pricedCost = z.number().optional().meta({ description: 'The price of the tokens; absent without tokens.' });
export const usageStatus = z.union([
  z.strictObject({ status: z.literal('ok'), cost_usd: pricedCost }),
  z.strictObject({
    status: z.literal('limit_exceeded'),
    tier: z.enum(TIERS),
    period: z.enum(PERIODS),
    cost_usd: pricedCost,
  }),
]);

const rate = z
  .union([
    z.number(),
    z.strictObject({ base: z.number(), tiers: z.array(z.strictObject({ start: z.int(), price: z.number() })) }),
  ])
  .meta({ description: 'US dollars per million tokens; a tier is for all tokens of an input that is longer.' });

export const priceShape = z.strictObject({
  model: z.string(),
  provider: z.string().nullable(),
  input_mtok: rate.nullable(),
  output_mtok: rate.nullable(),
  cache_read_mtok: rate.nullable(),
  cache_write_mtok: rate.nullable(),
  source: z
    .enum(['file', 'table', 'highest'])
    .meta({ description: 'The file at SVC_PRICES_PATH, the table in the package, or the highest of both.' }),
});

const budgetPeriod = z.strictObject({
  spent_usd: z.number(),
  limit_usd: z.number().nullable(),
  period_start: rfc3339,
  reset: rfc3339,
});

export const budgetPage = pageOf(
  'budgets',
  z.strictObject({
    tier: z.enum(TIERS),
    org_id: z.string().nullable(),
    team_id: z.string().nullable(),
    agent_id: z.string().nullable(),
    daily: budgetPeriod,
    monthly: budgetPeriod,
    reserved_usd: z.number(),
  }),
);

export const policyPage = z.strictObject({
  version: z.string().meta({ description: 'Changes if and only if the content of the documents changes.' }),
  loaded_at: rfc3339,
  reload_error: z
    .strictObject({ at: rfc3339, by: z.string(), reason: z.string(), problems: z.array(z.string()) })
    .nullable()
    .meta({ description: 'The last reload, if it failed; for credentials of all orgs.' }),
  documents: z.array(z.strictObject({ name: z.string(), scope: z.string(), rule_count: z.int(), source: z.string() })),
  next_cursor: nextCursor,
});

const approvalTerms = z
  .strictObject({
    min: z.int(),
    expires_secs: z.number(),
    valid_secs: z.number().nullable().meta({ description: 'Null: for one use.' }),
    approvers: z.array(z.string()).meta({ description: 'Empty: every credential with admin scope.' }),
  })
  .nullable();

export const rulePage = z.strictObject({
  version: z.string(),
  rules: z
    .array(
      z.strictObject({
        policy: z.string(),
        scope: z.string(),
        source: z.string(),
        id: z.string(),
        effect: z.enum(RULE_EFFECTS),
        actions: z.array(z.string()),
        resources: z.array(z.string()),
        when: z.string().nullable(),
        reason: z.string().nullable(),
        remedy: z.string().nullable(),
        approval: approvalTerms.meta({ description: 'Of a rule that requires an approval.' }),
        obligations: obligationList.meta({ description: 'Obligations of a caller that the rule allows.' }),
      }),
    )
    .meta({ description: 'In the order in which a check goes through them.' }),
  next_cursor: nextCursor,
});

export const policyReload = z.strictObject({
  version: z.string(),
  documents: z.int(),
  changed: z.boolean(),
  warnings: z.array(z.string()),
});

export const policyExplanation = z.strictObject({
  version: z.string(),
  decision: z.strictObject({
    decision: z.enum(RULE_EFFECTS),
    policy: z.string().nullable(),
    rule_id: z.string().nullable(),
    reason: z.string(),
    remedy: z.string().nullable().meta({ description: 'An alternative for the agent, if the rule names one.' }),
    approval: approvalTerms.meta({ description: 'The terms, if an approval is required.' }),
    obligations: obligationList.meta({
      description: 'Obligations of all matching rules that allow.',
    }),
  }),
  overruled_by: z
    .strictObject({ cause: z.enum(['halt', 'limit', 'budget']), reason: z.string() })
    .nullable()
    .meta({
      description: 'The halt or the exhausted cap that denies the check although the policies do not; null: none.',
    }),
  documents: z
    .array(
      z.strictObject({
        name: z.string(),
        scope: z.string(),
        source: z.string(),
        rules: z.array(
          z.strictObject({
            id: z.string(),
            effect: z.enum(RULE_EFFECTS),
            outcome: z.enum(RULE_OUTCOMES),
            detail: z.string(),
            decided: z.boolean().meta({ description: 'True for the rule named in the decision.' }),
          }),
        ),
      }),
    )
    .meta({ description: 'Documents whose scope includes the agent, in cascade order.' }),
});

const auditEntry = z.strictObject({
  id: z.int().meta({ description: 'Counts from 1 without gaps, across all orgs.' }),
  timestamp: rfc3339,
  event_type: z.enum(AUDIT_EVENTS),
  lineage: z.strictObject({
    org_id: z.string().nullable(),
    team_id: z.string().nullable(),
    agent_id: z.string().nullable(),
  }),
  op_id: z.string().nullable(),
  decision: z.enum(['allow', 'deny']).nullable(),
  reason: z.string().nullable(),
  policy: z.string().nullable(),
  rule_id: z.string().nullable(),
  cause: z.enum(DECISION_CAUSES).nullable().optional().meta({ description: 'Why it was denied.' }),
  actor: z.string(),
  payload: z.record(z.string(), z.unknown()),
  gateway: z.string().optional().meta({ description: 'Which of several gateways that act as one has decided.' }),
  prev_hash: z.string(),
  hash: z.string(),
});

export const incomplete = z
  .array(z.string())
  .optional()
  .meta({ description: 'In a cluster: the gateways that did not answer, so that their rows are missing.' });

export const logPage = pageOf('entries', auditEntry).extend({ incomplete });

const identity = {
  org_id: z.string().meta({ description: 'Empty for an agent without an org.' }),
  team_id: z.string(),
  agent_id: z.string(),
};

const agentFields = {
  ...identity,
  parent: z.string().nullable().meta({ description: '`<org>/<team>/<agent>`' }),
  registered_at: rfc3339,
  last_seen_at: rfc3339.nullable(),
  active_ops: z.int(),
};
const agentShape = z.strictObject(agentFields);

const opCounts = z.strictObject({
  pending: z.int(),
  running: z.int(),
  paused: z.int(),
  completing: z.int(),
  terminated: z.int(),
});
const groupFields = {
  org_id: z.string(),
  agent_count: z.int(),
  agents_seen: z.int().meta({ description: 'In the last five minutes.' }),
  active_ops: z.int(),
  ops: opCounts,
};
const teamShape = z.strictObject({ team_id: z.string(), ...groupFields });

const agentsWithTeams = {
  teams: z.array(teamShape).meta({ description: 'The teams of the agents on this page.' }),
  agents: z.array(agentShape),
  next_cursor: nextCursor,
};
const counts = { org_count: z.int(), team_count: z.int(), agent_count: z.int() };

export const topologyOverview = z.strictObject({ ...counts, ...agentsWithTeams });
export const topologyTeam = z.strictObject(agentsWithTeams);

const treeNode: z.ZodType = z
  .strictObject({
    ...agentFields,
    get children(): z.ZodArray {
      return z.array(treeNode);
    },
    truncated: z.boolean().meta({ description: 'There are more descendants; request the lineage.' }),
  })
  .meta({ id: 'TreeNode' });
export const topologyTree = pageOf(
  'orgs',
  z.strictObject({
    org_id: z.string(),
    teams: z.array(z.strictObject({ team_id: z.string(), agents: z.array(treeNode) })),
  }),
);

export const topologyLineage = pageOf(
  'lineages',
  z.strictObject({
    agent: agentShape,
    ancestors: z.array(agentShape).meta({ description: 'Nearest first.' }),
    descendants: z.array(z.strictObject({ ...agentFields, depth: z.int() })).meta({ description: 'Nearest first.' }),
    truncated: z.boolean(),
  }),
);

export const topologyStats = z.strictObject({
  ...counts,
  agents_seen: z.int(),
  active_ops: z.int(),
  ops: opCounts,
  ops_ttl_secs: z.int().meta({ description: 'How long a finished operation is kept and counted.' }),
  groups: z
    .array(z.union([z.strictObject(groupFields), teamShape]))
    .meta({ description: 'Orgs, or the teams of the requested org.' }),
  next_cursor: nextCursor,
});

export const liveness = z.strictObject({ status: z.literal('ok') });

export const readiness = z.strictObject({
  status: z
    .enum(['ready', 'degraded'])
    .meta({ description: '`degraded`: checks work, but a part named below does not.' }),
  audit: z
    .enum(['writable', 'unwritable'])
    .meta({ description: '`unwritable` only with SVC_AUDIT_ON_FAILURE=allow: checks are answered but not recorded.' }),
  database: z.enum(['not_configured', 'reachable', 'unreachable']).meta({ description: 'Checks do not need it.' }),
  audit_witness: z.literal('unreachable').optional().meta({
    description:
      'Present only while a witness of SVC_AUDIT_WITNESS does not take checkpoints. Checks are recorded as ever.',
  }),
  store: z.literal('unwritable').optional().meta({
    description:
      'Present only while keys, registrations and spend cannot be written to the data directory. Checks still work.',
  }),
  cluster: z.enum(['reachable', 'unreachable', 'wrong_clock']).optional().meta({
    description: 'Present only with SVC_CLUSTER=on. `unreachable`: the lease of this gateway is over.',
  }),
  bus: z.literal('unreachable').optional().meta({
    description:
      'Present only while messages cannot be exchanged with the other gateways of the cluster. Checks do not need them.',
  }),
});

export const witnessed = z.strictObject({
  id: z.int().meta({ description: 'The entry of the other log that is now kept here.' }),
  hash: z.string(),
});

const sinkShape = z.strictObject({
  name: z.string(),
  type: z.enum(['file', 'http', 'syslog', 'otlp']),
  format: z.enum(['native', 'ocsf']),
  place: z.string().meta({ description: 'Its path, or its URL without a query.' }),
  sent_id: z.int().meta({ description: 'The last entry that its receiver has; 0: none.' }),
  lag_entries: z.int().meta({ description: 'Entries that it has not got yet.' }),
  sent_entries: z.int().meta({ description: 'Since the start, repeated ones included.' }),
  lost_entries: z.int().meta({ description: 'Entries that retention deleted before they were sent, since the start.' }),
  failures: z.int().meta({ description: 'Attempts that failed since the start.' }),
  trouble: z.string().nullable().meta({ description: 'Why the last attempt failed; null: it did not.' }),
});
export const sinkList = z.strictObject({ sinks: z.array(sinkShape) });
export const sinkTested = z.strictObject({
  ok: z.boolean(),
  trouble: z.string().nullable().meta({ description: 'Why the receiver did not take the test.' }),
});
export const sinkReplayed = z.strictObject({
  from: z.int().meta({ description: 'The entry that is sent next, with all after it.' }),
});

export const opShape = z.strictObject({
  op_id: z.string().meta({ description: '`<trace_id>:<span_id>`' }),
  op_home: z.string().optional().meta({ description: 'Which gateway of a cluster has it. Absent: there is one only.' }),
  state: z.enum(OP_STATES),
  registered_at: rfc3339,
  updated_at: rfc3339,
  agent: z.strictObject(identity),
  action: z
    .string()
    .nullable()
    .meta({ description: 'Of the check that it began with; null if it was registered without one.' }),
  resource: z.string().nullable().meta({ description: 'At most 256 characters of it, without secrets.' }),
  policy: z.string().nullable(),
  rule_id: z.string().nullable(),
  reason: z.string().nullable().meta({ description: 'Why it runs, waits or was denied.' }),
  estimated_cost_usd: z.number(),
  spent_usd: z.number().meta({ description: 'As recorded for this operation so far.' }),
  approval_id: z.string().nullable(),
  error: z.string().nullable().meta({ description: 'The error that the agent reported.' }),
  ended: z.enum(OP_ENDS).nullable().meta({ description: 'Null while it runs or waits.' }),
  acknowledged_at: rfc3339.nullable().meta({ description: 'When the agent acknowledged the last signal.' }),
});
export const completedOpShape = opShape.extend({ cost_usd: pricedCost });
export const opPage = pageOf('ops', opShape).extend({ incomplete });
export const opOrOps = z.union([
  opShape,
  z
    .strictObject({ ops: z.array(opShape) })
    .meta({ description: 'In a cluster: set if several gateways have an operation of this id.' }),
]);

const halt = z.strictObject({
  id: z.string(),
  scope: z.string().meta({ examples: ['global', 'org:acme', 'lineage:acme/search/crawler'] }),
  mode: z.enum(HALT_MODES),
  actions: z.array(z.string()),
  reason: z.string(),
  created_by: z.string(),
  created_at: rfc3339,
  expires_at: rfc3339.nullable(),
  released_at: rfc3339.nullable(),
  released_by: z.string().nullable(),
  release_reason: z.string().nullable(),
});
export const haltCreated = z.strictObject({
  halt,
  ops_affected: z.int(),
  agents_matched: z.int().meta({ description: 'How many registered agents it covers.' }),
  nearest_scope: z.string().nullable().meta({
    description: 'If no known agent is in the scope: the most similar scope, if there is one.',
  }),
});
export const haltReleased = z.strictObject({ halt });
export const haltPage = pageOf('halts', halt);

const webhookFields = {
  id: z.string(),
  url: z.string(),
  events: z.array(z.enum(WEBHOOK_EVENTS)),
  org_id: z.string().nullable().meta({ description: 'The org whose events it gets; null: all orgs.' }),
  created_by: z.string(),
  created_at: rfc3339,
  waiting: z.int().meta({ description: 'Messages that have not arrived yet.' }),
  dropped: z.int().meta({ description: 'Messages it missed, because too many waited or it was disabled.' }),
  failing_since: rfc3339.nullable().meta({ description: 'Since when its calls fail; null: the last one arrived.' }),
  last_error: z.string().nullable(),
  disabled_at: rfc3339.nullable().meta({ description: 'When the gateway gave it up, after a day of failed calls.' }),
};
const webhook = z.strictObject(webhookFields);
export const webhookCreated = z.strictObject({
  ...webhookFields,
  secret: z
    .string()
    .meta({ description: 'Signs its calls. Shown once.', examples: ['whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD'] }),
});
export const webhookAnswer = z.strictObject({ webhook });
export const webhookPage = pageOf('webhooks', webhook);
export const webhookTested = z.strictObject({
  message_id: z.string().meta({ description: 'The `webhook-id` of the call.' }),
});
export const agentPage = pageOf('agents', agentShape);
export const recordedRefusal = z.strictObject({
  reason: z.string(),
  audit_id: z.int().nullable().meta({ description: 'The entry; null if the agent is not known any more.' }),
});
export const ownAgent = z.strictObject({ agent: z.strictObject(identity) });
export const agentRegistered = z.strictObject({
  agent: agentShape,
  rotated: z.boolean(),
  credential_token: z.string().optional().meta({ description: 'Shown once, if the gateway generated it.' }),
});

export const ticket = z.strictObject({ ticket: z.string(), expires_in: z.int() });

export const memberList = z.strictObject({
  members: z.array(
    z.strictObject({
      name: z.string(),
      run: z.string().meta({ description: 'One start of the gateway.' }),
      state: z.enum(['live', 'suspect', 'retired']).meta({
        description: '`suspect`: its lease is over; it may come back. `retired`: another run has taken its place.',
      }),
      version: z.string(),
      lease_until: rfc3339,
      skew_ms: z.int().meta({ description: 'How far its clock is ahead of the one of the database.' }),
      policy_version: z.string().nullable(),
      audit_head: z
        .strictObject({ id: z.int(), hash: z.string() })
        .nullable()
        .meta({ description: 'The last entry of its audit log that it reported.' }),
      bus: z
        .enum(['connected', 'cut_off'])
        .nullable()
        .meta({ description: 'Whether it can exchange messages with the others. null: an older release.' }),
      unconfirmed: z.int().meta({ description: 'Changes that it did not confirm in time and has not caught up with.' }),
      stranded_usd: z.number().meta({ description: 'Its grants that are neither spent nor returned.' }),
    }),
  ),
});

export const memberForgotten = z.strictObject({
  unspent_usd: z.number().meta({ description: 'Its grants that were not reported as spent.' }),
});

/** The answers about what was counted and changed, as schemas. */
import { z } from 'zod';
import { CHANGES, type ChangeKind } from '../../core/audit/changes.ts';
import { DECISION_CAUSES } from '../../core/check/cause.ts';
import { STATS_WINDOWS } from '../../core/stats/windows.ts';
import { incomplete, pageOf, rfc3339 } from './shapes.ts';

const checkCounts = { allow: z.int(), deny: z.int(), pending: z.int() };
const latencyMs = z
  .strictObject({ p50: z.number().nullable(), p95: z.number().nullable(), p99: z.number().nullable() })
  .nullable()
  .meta({ description: 'At most so many milliseconds, over the whole gateway: null for a single org.' });

const statsPoints = z
  .array(z.strictObject({ at: rfc3339, ...checkCounts, spend_usd: z.number(), latency_ms: latencyMs }))
  .optional();
const agentNames = { org_id: z.string(), team_id: z.string(), agent_id: z.string() };

export const statsAnswer = z.strictObject({
  window: z.enum(STATS_WINDOWS),
  from: rfc3339.meta({ description: 'The beginning of the window, or since when anything is known.' }),
  to: rfc3339,
  checks: z.strictObject(checkCounts),
  denies: z.strictObject({
    by_cause: z.array(z.strictObject({ cause: z.enum(DECISION_CAUSES), count: z.int() })),
    by_rule: z.array(z.strictObject({ policy: z.string().nullable(), rule_id: z.string().nullable(), count: z.int() })),
    by_agent: z
      .array(
        z.strictObject({
          org_id: z.string().nullable(),
          team_id: z.string().nullable(),
          agent_id: z.string().nullable(),
          count: z.int(),
        }),
      )
      .meta({ description: 'The 50 with the most; a last row of nulls has all others. Likewise rules.' }),
    by_org: z.array(z.strictObject({ org_id: z.string(), count: z.int() })),
  }),
  orgs: z.array(z.strictObject({ org_id: z.string(), ...checkCounts, spend_usd: z.number() })),
  spend_usd: z.number(),
  latency_ms: latencyMs,
  top: z
    .strictObject({
      rules: z.array(z.strictObject({ policy: z.string(), rule_id: z.string(), ...checkCounts })),
      agents: z.array(z.strictObject({ ...agentNames, checks: z.int(), denies: z.int() })),
      spenders: z.array(z.strictObject({ ...agentNames, spend_usd: z.number() })),
    })
    .meta({
      description: 'At most 50 of each: the rules that decided most, the busiest agents, the biggest spenders.',
    }),
  minutes: statsPoints.meta({
    description: 'For windows up to a day: the minutes in which something happened, the oldest first.',
  }),
  hours: statsPoints.meta({ description: 'For longer windows, likewise.' }),
  incomplete: z.boolean().meta({
    description: 'There were too many orgs to count each by itself, or a gateway of the cluster has not answered.',
  }),
});

export const changesPage = pageOf(
  'changes',
  z.strictObject({
    at: rfc3339,
    kind: z.enum(Object.keys(CHANGES) as ChangeKind[]),
    summary: z.string().meta({ description: 'One sentence for people.' }),
    by: z.string().meta({ description: 'Who changed it, as `actor` of the audit entry.' }),
    audit_id: z.int(),
    details: z.record(z.string(), z.unknown()).meta({ description: 'The payload of the audit entry.' }),
  }),
).extend({ incomplete });

/** JSON shapes of the answers about the lifecycle of policies. */
import { z } from 'zod';
import { nextCursor, rfc3339 } from './shapes.ts';

const versionFields = {
  version: z.string(),
  state: z.enum(['in_force', 'shadow', 'past']),
  since: rfc3339.meta({ description: 'Since when it was in force the last time.' }),
  until: rfc3339.nullable().meta({ description: 'Until when it was in force; null: it is, or it is the shadow.' }),
  by: z.string().meta({ description: 'Who put it in force: `key:<id>`, `account:<id>` or `gateway`.' }),
  documents: z.int(),
  rules: z.int(),
};

export const policyVersions = z.strictObject({
  versions: z.array(z.strictObject(versionFields)),
  next_cursor: nextCursor,
});

export const policyVersion = z.strictObject({
  ...versionFields,
  files: z.array(z.strictObject({ name: z.string(), text: z.string() })),
});

const written = z.record(z.string(), z.unknown()).nullable();

export const policyDiff = z.strictObject({
  from: z.string(),
  to: z.string(),
  changes: z.array(
    z.strictObject({
      kind: z.enum(['added', 'removed', 'changed']),
      document: z.string(),
      scope: z.string(),
      rule_id: z.string().nullable().meta({ description: 'null: the document itself.' }),
      before: written.meta({ description: 'As written; null for an addition.' }),
      after: written.meta({ description: 'As written; null for a removal.' }),
    }),
  ),
});

export const shadowStarted = z.strictObject({
  version: z.string(),
  documents: z.int(),
  expires_at: rfc3339,
  warnings: z.array(z.string()),
});

const answer = z.enum(['allow', 'deny', 'pending']);

export const shadowStatus = z.strictObject({
  version: z.string(),
  since: rfc3339,
  expires_at: rfc3339,
  by: z.string(),
  checks: z.int().meta({ description: 'Compared so far.' }),
  differing: z.int().meta({ description: 'Checks that it decides differently.' }),
  errors: z.int().meta({ description: 'Checks on which it failed.' }),
  changes: z
    .array(
      z.strictObject({
        from: answer,
        to: answer,
        policy: z.string().nullable(),
        rule_id: z.string().nullable(),
        count: z.int(),
      }),
    )
    .meta({ description: 'By the rule of the shadow or, if none of its rules decides, the rule in force.' }),
});

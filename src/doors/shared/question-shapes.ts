/** Fields of questions and verdicts that all doors of other protocols have in their JSON. */
import { z } from 'zod';
import type { Mapping } from '../../core/base/mapping.ts';
import { DECISION_CAUSES } from '../../core/check/cause.ts';
import { areTextsOrNone, isTextOrNone, optional } from './input.ts';

/** Beside what is asked for. */
export const questionFields = {
  trace_id: optional(z.string().meta({ description: 'With `span_id`: an allow begins this operation.' })),
  span_id: optional(z.string()),
  supported_obligations: optional(
    z.array(z.string()).meta({ description: 'Types of obligations that the caller fulfils. Default: none.' }),
  ),
};

/** As `questionFields` reads them, and as they came. */
export type QuestionFields = {
  readonly trace_id?: string | null | undefined;
  readonly span_id?: string | null | undefined;
  readonly supported_obligations?: readonly string[] | null | undefined;
};

/** Tells it of usual ones without walking the schema: see `input.ts`. */
export const areQuestionFields = (fields: Mapping): fields is Mapping & QuestionFields =>
  isTextOrNone(fields['trace_id']) &&
  isTextOrNone(fields['span_id']) &&
  areTextsOrNone(fields['supported_obligations']);

export const obligationList = z.array(
  z.strictObject({ id: z.string(), type: z.string(), properties: z.record(z.string(), z.unknown()) }),
);

/** Why a door answers as it does, in every protocol that has JSON. */
export const verdictFields = {
  reason: z.string().meta({ description: 'One sentence for people.' }),
  cause: z
    .enum(DECISION_CAUSES)
    .nullable()
    .meta({ description: 'Why it is not allowed, in one word for programs; null if it is allowed.' }),
  policy: z.string().nullable(),
  rule_id: z.string().nullable(),
  audit_id: z.int().nullable().meta({ description: 'The entry in the audit log.' }),
  op_id: z.string().nullable().meta({ description: 'The operation that has begun; null if none was asked for.' }),
  approval_id: z.string().optional().meta({ description: 'The approval that a person must give, or has given.' }),
  remedy: z.string().optional().meta({ description: 'An alternative to the denied action.' }),
  obligations: obligationList
    .optional()
    .meta({ description: 'Obligations of the caller on arguments or results. Absent: none.' }),
};

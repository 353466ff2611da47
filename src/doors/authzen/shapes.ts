/** The answers of AuthZEN as schemas: the description of the API is made from them. */
import { z } from 'zod';
import { verdictFields } from '../shared/question-shapes.ts';

const isAllowed = z
  .boolean()
  .meta({ description: 'Whether the action may be taken; false also while a person must approve.' });

export const decision = z.strictObject({ decision: isAllowed, context: z.strictObject(verdictFields) });

const brokenItem = z.strictObject({
  decision: z.literal(false),
  context: z.strictObject({
    reason: z.string(),
    error: z
      .strictObject({ status: z.int(), message: z.string() })
      .meta({ description: 'Why this item could not be evaluated.' }),
  }),
});

export const batchDecision = z.union([
  z.strictObject({
    evaluations: z.array(z.union([decision, brokenItem])).meta({ description: 'In the order of the request.' }),
  }),
  decision,
]);

export const configuration = z.strictObject({
  policy_decision_point: z.string(),
  access_evaluation_endpoint: z.string(),
  access_evaluations_endpoint: z.string(),
  supported_obligations: z.array(z.string()),
});

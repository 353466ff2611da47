/** The answers of AuthZEN as schemas: the description of the API is made from them. */
import { z } from 'zod';
import { verdictFields } from '../api/shapes.ts';

export const decision = z.strictObject({
  decision: z
    .boolean()
    .meta({ description: 'Whether the action may be taken; false also while a person must approve.' }),
  context: z.strictObject({
    ...verdictFields,
    error: z
      .strictObject({ status: z.int(), message: z.string() })
      .optional()
      .meta({ description: 'Only within a batch: why this item could not be evaluated.' }),
  }),
});

export const batchDecision = z.union([
  z.strictObject({ evaluations: z.array(decision).meta({ description: 'In the order of the request.' }) }),
  decision,
]);

export const configuration = z.strictObject({
  policy_decision_point: z.string(),
  access_evaluation_endpoint: z.string(),
  access_evaluations_endpoint: z.string(),
  supported_obligations: z.array(z.string()),
});

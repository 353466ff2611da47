import type { OpRecord, OpView } from '../views.ts';

/** Field by field: of a spread, Node.js 20 would make an object with a hidden class of its own (docs/style.md, 3). */
export const viewOfOp = (
  { opId, state, registeredAtMs, updatedAtMs, agent }: OpRecord,
  acknowledgedAtMs: number | undefined,
): OpView => ({ opId, state, registeredAtMs, updatedAtMs, agent, acknowledgedAtMs });

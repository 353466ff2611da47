import type { OpView } from './commands.ts';
import type { OpRecord } from './ops.ts';

/** Field by field: of a spread, Node.js 20 would make an object with a hidden class of its own (docs/style.md, 3). */
export const viewOfOp = (
  { opId, state, registeredAtMs, updatedAtMs, agent }: OpRecord,
  acknowledgedAtMs: number | undefined,
): OpView => ({ opId, state, registeredAtMs, updatedAtMs, agent, acknowledgedAtMs });

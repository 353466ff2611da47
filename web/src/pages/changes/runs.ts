/** Many changes of one kind by one hand, one after the other, are one line. Pure. */
import type { Change } from '../../base/api-types.ts';

/** As many are shown individually. */
const LEAST = 5;

export function runsOf(changes: readonly Change[]): readonly (readonly Change[])[] {
  const runs: Change[][] = [];
  for (const change of changes) {
    const last = runs.at(-1);
    const before = last?.at(-1);
    if (last !== undefined && before?.kind === change.kind && before.by === change.by) last.push(change);
    else runs.push([change]);
  }
  return runs.flatMap((run) => (run.length < LEAST ? run.map((change) => [change]) : [run]));
}

import { ok } from '../../core/base/result.ts';
import type { PolicyText } from '../../ports/cluster.ts';
import {
  type EnteredVersion,
  KEPT_POLICY_VERSIONS,
  type KeptVersion,
  type PolicyVersions,
} from '../../ports/policy-versions.ts';
import type { EmbeddedStore } from './store.ts';

export type OwnPolicyVersions = PolicyVersions & {
  /** Keeps the set that is in force from now on. Call it for one after the other. */
  enter(set: EnteredVersion): Promise<void>;
};

/** Stores the policy versions of a gateway outside a cluster. Facts about each set are in memory, the files are not. */
export function createEmbeddedPolicyVersions(store: EmbeddedStore): OwnPolicyVersions {
  const versions = store.table<KeptVersion>('policy_versions');
  const files = store.table<readonly PolicyText[]>('policy_files');
  const kept = new Map([...versions.entries()].map(([version, row]) => [version, row]));
  return {
    list: async () => ok(newestFirst(kept)),
    texts: async (version) => ok(kept.has(version) ? files.get(version) : undefined),
    async enter({ texts, ...entered }) {
      const { version, sinceMs } = entered;
      const before = [...kept.values()].find(({ untilMs }) => untilMs === undefined);
      if (before?.version === version) return;
      const ended = before && { ...before, untilMs: sinceMs };
      const after = new Map(kept).set(version, { ...entered, untilMs: undefined });
      if (ended !== undefined) after.set(ended.version, ended);
      const dropped = newestFirst(after).slice(KEPT_POLICY_VERSIONS);
      await store.transaction((inside) => {
        if (ended !== undefined) inside(versions).put(ended.version, ended);
        inside(versions).put(version, { ...entered, untilMs: undefined });
        inside(files).put(version, texts);
        for (const each of dropped) {
          inside(versions).remove(each.version);
          inside(files).remove(each.version);
        }
      });
      kept.clear();
      for (const [each, row] of after) if (!dropped.includes(row)) kept.set(each, row);
    },
  };
}

const newestFirst = (kept: ReadonlyMap<string, KeptVersion>): readonly KeptVersion[] =>
  [...kept.values()].sort(
    (one, other) => (other.untilMs ?? Infinity) - (one.untilMs ?? Infinity) || other.sinceMs - one.sinceMs,
  );

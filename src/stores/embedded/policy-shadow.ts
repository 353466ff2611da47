import { ok } from '../../core/base/result.ts';
import type { ShadowCounts } from '../../core/policy/shadow.ts';
import type { KeptShadow, ShadowCountStore, ShadowStore } from '../../ports/policy-versions.ts';
import type { EmbeddedStore } from './store.ts';

const ONLY = 'shadow';

/** Stores the shadow of a gateway outside a cluster. */
export function createEmbeddedShadow(store: EmbeddedStore): ShadowStore {
  const table = store.table<KeptShadow>('policy_shadow');
  return {
    load: async () => ok(table.get(ONLY)),
    save: async (shadow) => ok(await table.put(ONLY, shadow)),
    remove: ({ version, sinceMs }) =>
      store
        .transaction((inside) => {
          const kept = inside(table).get(ONLY);
          const isThere = kept?.version === version && kept.sinceMs === sinceMs;
          if (isThere) inside(table).remove(ONLY);
          return isThere;
        })
        .then(ok),
  };
}

type KeptCounts = { readonly of: string; readonly counts: ShadowCounts };

/** Stores this gateway's counts, also in a cluster. */
export function createShadowCounts(store: EmbeddedStore): ShadowCountStore {
  const table = store.table<KeptCounts>('policy_shadow_counts');
  const nameOf = ({ version, sinceMs }: Pick<KeptShadow, 'version' | 'sinceMs'>): string => `${version} ${sinceMs}`;
  return {
    load: (shadow) => {
      const kept = table.get(ONLY);
      return kept?.of === nameOf(shadow) ? kept.counts : undefined;
    },
    save: (shadow, counts) => table.put(ONLY, { of: nameOf(shadow), counts }),
  };
}

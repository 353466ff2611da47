/** Records which settings differ from those of the start before (docs/spec.md, Changes). */
import { createHash } from 'node:crypto';
import { NO_LINEAGE } from '../core/audit/audit.ts';
import type { AuditLog } from '../ports/ports.ts';
import { type Config, VARIABLES, type VariableName } from './config.ts';

/** By name, as JSON; a digest of what is secret; null where nothing is set. */
type Recorded = Readonly<Partial<Record<string, string | null>>>;
type ChangedSetting =
  | { readonly name: string; readonly before: unknown; readonly after: unknown }
  | { readonly name: string };

const KEY = 'settings';

/** The part of the embedded store that keeps them. */
type Store = {
  table<V>(name: string): { get(key: string): V | undefined; put(key: string, row: V): Promise<unknown> };
};

const isSecret = (name: string): boolean => name in VARIABLES && VARIABLES[name as VariableName].isSecret === true;

function recordedSettings(config: Config): Recorded {
  return Object.fromEntries(
    (Object.keys(VARIABLES) as VariableName[]).map((name) => {
      const value = config[name] as unknown;
      if (value === undefined) return [name, null];
      const json = JSON.stringify(value);
      return [name, isSecret(name) ? createHash('sha256').update(json).digest('hex') : json];
    }),
  );
}

/** A setting that only one of both releases knows has not been changed by anybody. */
const changedSettings = (before: Recorded, after: Recorded): readonly ChangedSetting[] =>
  Object.keys(after).flatMap((name): readonly ChangedSetting[] => {
    const [was, is] = [before[name], after[name]];
    if (was === undefined || was === is) return [];
    return isSecret(name) ? [{ name }] : [{ name, before: parsed(was), after: parsed(is) }];
  });

const parsed = (json: string | null | undefined): unknown => (json == null ? null : JSON.parse(json));

/** The entry comes first: after a crash between both, it is written once more. */
export async function recordSettings(
  config: Config,
  { store, audit }: { readonly store: Store; readonly audit: AuditLog },
): Promise<void> {
  const table = store.table<Recorded>(KEY);
  const [before, after] = [table.get(KEY), recordedSettings(config)];
  const changed = before === undefined ? [] : changedSettings(before, after);
  if (before !== undefined && changed.length === 0 && Object.keys(after).every((name) => name in before)) return;
  if (changed.length > 0) {
    const draft = {
      eventType: 'SettingsChanged',
      lineage: NO_LINEAGE,
      actor: 'gateway',
      payload: { changed },
    } as const;
    const recorded = await audit.record(draft);
    if (!recorded.ok) return; // the next start finds the same
  }
  await table.put(KEY, after);
}

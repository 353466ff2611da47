import { assert } from '../../core/base/result.ts';
import { codeOf, messageOf } from '../../core/base/text.ts';
import { type Change, StoreDatabase } from './database.ts';

/** Rows that are written at once. */
const GROUP = 10_000;

/** The outcome of the process below: the number of rows, or the reason for failing. */
export type OldStoreOutcome =
  | { readonly rows: number }
  | { readonly code: string | undefined; readonly message: string; readonly path: string | undefined };

/**
 * Writes all rows of the store in this folder, which an earlier release kept with LMDB, to a new file. Run it in a
 * process of its own: LMDB maps its file into memory unchecked, and a damaged one ends the process without a message.
 */
export async function convertOldStore(folder: string, target: string): Promise<OldStoreOutcome> {
  try {
    const { open } = await import('lmdb');
    const environment = open({ path: folder, readOnly: true, maxDbs: 32 });
    const database = new StoreDatabase(target);
    let rows = 0;
    let group: Change[] = [];
    const commit = () => {
      database.commit(group);
      rows += group.length;
      group = [];
    };
    for (const name of [...environment.getKeys()].map(String)) {
      for (const { key, value } of environment.openDB({ name }).getRange()) {
        group.push([name, String(key), JSON.stringify(value)]);
        if (group.length === GROUP) commit();
      }
    }
    commit();
    assert(database.emptyLog(), 'nobody else has the new file');
    database.close();
    await environment.close();
    return { rows };
  } catch (error) {
    const { path } = Object(error) as { readonly path?: unknown };
    return { code: codeOf(error), message: messageOf(error), path: typeof path === 'string' ? path : undefined };
  }
}

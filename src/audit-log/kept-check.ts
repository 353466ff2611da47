/** Whether what retention has kept of deleted segments is what it signed for. */
import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { codeOf } from '../core/base/text.ts';
import type { Anchor, KeptFile } from './checkpoint.ts';
import { keptIn, keptPath } from './kept.ts';
import { frameOf, hashOfLine } from './line.ts';
import { eachLine } from './shares.ts';

type Broken = {
  readonly id: number;
  readonly segment: string;
  readonly line: number;
  readonly problem: 'changed' | 'removed' | 'reordered';
  readonly detail: string;
};

/** How many entries were kept, or the first that is not as it was. */
export async function checkKept(directory: string, anchor: Anchor | undefined): Promise<number | Broken> {
  let entries = 0;
  let lastId = 0;
  for (const file of keptIn(anchor)) {
    const walked = await walk(directory, file, { lastId, firstId: anchor?.first_id ?? 1 }).catch((error: unknown) => {
      if (codeOf(error) !== 'ENOENT') throw error;
      const detail = 'the file, which retention has kept, is not there';
      return { id: lastId + 1, segment: `kept/${file.name}`, line: 1, problem: 'removed', detail } as const;
    });
    if ('problem' in walked) return walked;
    entries += file.entries;
    ({ lastId } = walked);
  }
  return entries;
}

async function walk(
  directory: string,
  { name, entries, bytes, sha256 }: KeptFile,
  { lastId, firstId }: { readonly lastId: number; readonly firstId: number },
): Promise<{ readonly lastId: number } | Broken> {
  const segment = `kept/${name}`;
  const hash = createHash('sha256');
  let [line, id] = [0, lastId];
  let broken: Broken | undefined;
  await eachLine(keptPath(directory, name), bytes, nextTurn, ({ text }) => {
    line += 1;
    const whole = Buffer.from(text, 'latin1');
    hash.update(whole);
    const frame = frameOf(whole.subarray(0, -1));
    if (frame === undefined || hashOfLine(whole.subarray(0, -1)) !== frame.hash)
      broken ??= {
        ...{ id: frame?.id ?? id + 1, segment, line, problem: 'changed' },
        detail: 'the entry, which retention has kept, does not match its hash',
      };
    else if (frame.id <= id || frame.id >= firstId)
      broken ??= { ...{ id: frame.id, segment, line, problem: 'reordered' }, detail: `entry ${id} comes before it` };
    else id = frame.id;
  });
  if (broken !== undefined) return broken;
  if (line === entries && hash.digest('hex') === sha256) return { lastId: id };
  const detail = `the file does not have the ${entries} entries that the signed anchor says were kept`;
  return { id: id + 1, segment, line: line + 1, problem: 'removed', detail };
}

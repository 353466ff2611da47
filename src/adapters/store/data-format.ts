import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { removeRemains, replaceFile } from '../durable-file.ts';
import { ifThere } from '../if-there.ts';

/** Increase it with every change in the data directory that older releases would misread. */
export const DATA_FORMAT = '1';

/**
 * The content of `<dataDir>/format` if this release does not know it, else undefined. A missing file is created: the
 * directory is new, or has the first format. Call it before anything else is opened: the data of another release would
 * be taken for damaged, set aside or overwritten.
 */
export async function unknownFormat(dataDir: string): Promise<string | undefined> {
  const path = join(dataDir, 'format');
  await removeRemains(path);
  const format = (await ifThere(readFile(path, 'utf8')))?.trim();
  if (format === undefined) await replaceFile(path, `${DATA_FORMAT}\n`);
  return format === DATA_FORMAT ? undefined : format;
}

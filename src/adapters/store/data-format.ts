import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFile } from '../durable-file.ts';
import { ifThere } from '../if-there.ts';

/** Grows with a change of anything in the data directory that a release without it would misread. */
export const DATA_FORMAT = '1';

/**
 * What `<dataDir>/format` says where this release does not know it; undefined where it does. Where there is no such file, it is
 * made: the directory is new, or of the first format. Ask before anything else is opened: what another release has laid out
 * would be taken for damaged, set aside or written over.
 */
export async function unknownFormat(dataDir: string): Promise<string | undefined> {
  const path = join(dataDir, 'format');
  const format = (await ifThere(readFile(path, 'utf8')))?.trim();
  if (format === undefined) await replaceFile(path, `${DATA_FORMAT}\n`);
  return format === DATA_FORMAT ? undefined : format;
}

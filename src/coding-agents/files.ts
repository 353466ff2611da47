/** The settings files on disk: changed as a whole, with what was there before beside them until it is restored. */
import { chmod, readFile, realpath, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { ifThere, makeFolder, replaceFile } from '../system/files.ts';
import { type Text, withHooks, withoutHooks } from './documents.ts';
import type { CodingAgent, Installation } from './tools.ts';

const backupOf = (path: string): string => `${path}.before-svc-hooks`;

export const readText = (path: string): Promise<Text> => ifThere(readFile(path, 'utf8'));

export type Change = 'changed' | 'unchanged';

/** Throws `UnusableFile`, or what the system says, and then has changed nothing. */
export async function install(agent: CodingAgent, path: string, installation: Installation): Promise<Change> {
  const before = await readText(path);
  const after = withHooks(agent, before, installation);
  if (after === before) return 'unchanged';
  const isFirst = before !== undefined && withoutHooks(agent, before) === before;
  if (before !== undefined && (isFirst || !mentionsUs(agent, before))) await write(backupOf(path), before, path);
  await write(path, after, path);
  return 'changed';
}

const mentionsUs = (agent: CodingAgent, text: string): boolean =>
  text.includes(`/api/v1/hooks/${agent.name}`) || text.includes(` hooks run ${agent.name} `);

/** Byte for byte as it was, unless something else was changed since: then our hooks are removed from what is there. */
export async function uninstall(agent: CodingAgent, path: string): Promise<Change> {
  const current = await readText(path);
  const backup = await readText(backupOf(path));
  if (current === undefined || !mentionsUs(agent, current)) return 'unchanged';
  const rest = withoutHooks(agent, current);
  const isAsWeLeftIt = backup !== undefined && rest === withoutHooks(agent, normalized(agent, backup));
  const restored = isAsWeLeftIt ? backup : rest;
  if (restored === undefined && backup === undefined) await rm(path);
  else await write(path, restored ?? '', path);
  await rm(backupOf(path), { force: true });
  return 'changed';
}

/** The backup as it would be after hooks were put in and removed. */
const normalized = (agent: CodingAgent, backup: string): string =>
  withHooks(agent, backup, { url: 'http://localhost', agent: undefined, svc: 'svc' });

/** A link stays a link, and a file keeps its mode. A new one is for its owner, in a folder of the system for all. */
async function write(path: string, text: string, like: string): Promise<void> {
  makeFolder(dirname(path), 0o755);
  const target = (await ifThere(realpath(path))) ?? path;
  const mode =
    (await ifThere(stat(like)))?.mode ?? (process.getuid?.() === 0 && target.startsWith('/etc/') ? 0o644 : 0o600);
  await replaceFile(target, text);
  await chmod(target, mode & 0o777);
}

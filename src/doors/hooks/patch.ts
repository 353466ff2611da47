/** The files that a patch in the format of `apply_patch` touches. */
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { absolutePath } from './paths.ts';
import type { Read, Subject } from './tool.ts';

/** One operation each. Whoever changes more than this at once is asked to do it in parts. */
export const MAX_FILES = 100;

/** As lenient as those who apply patches: a line that might be a header counts as one. */
const HEADER = /^\s*\*\*\*\s*(Add File|Update File|Delete File|Move to):(.*)$/i;

const ACTION: Readonly<Record<string, string>> = {
  'add file': 'file.write',
  'update file': 'file.edit',
  'delete file': 'file.write',
  'move to': 'file.write',
};

/** One subject for each file: what is moved is changed in one place and written in another. */
export function subjectsOfPatch(patch: string, cwd: string | undefined): Read<readonly Subject[]> {
  const subjects = new Map<string, Subject>();
  for (const line of patch.split(/\r\n|\n|\r/)) {
    const [, header, path] = HEADER.exec(line) ?? [];
    if (header === undefined || path === undefined) continue;
    const resource = absolutePath(path.trim(), cwd);
    if (!resource.ok) return resource;
    const change = header.toLowerCase();
    const action = ACTION[change] ?? 'file.write';
    subjects.set(`${change} ${resource.value}`, {
      action,
      resource: resource.value,
      attributes: { change: change.split(' ')[0] },
    });
    if (subjects.size > MAX_FILES) return invalid('patch', `must not change more than ${MAX_FILES} files at once`);
  }
  return subjects.size === 0 ? invalid('patch', 'names no file') : ok([...subjects.values()]);
}

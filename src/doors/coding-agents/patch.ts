/** The files that a patch in the format of `apply_patch` touches, and what it does to each. */
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { digestsOf } from './arguments.ts';
import { absolutePath } from './paths.ts';
import type { Read, Subject } from './tool.ts';

/** Each file is one operation. An agent that changes more at once is asked to do it in parts. */
export const MAX_FILES = 100;

/** Some who apply patches cut off a byte order mark, too, so that a header may follow one. */
const AROUND_LINE = /^[\p{White_Space}\ufeff]+|[\p{White_Space}\ufeff]+$/gu;
const AROUND_PATH = /^\p{White_Space}+|\p{White_Space}+$/gu;

/** As lenient as those who apply patches: a line that might be a header counts as one. */
const HEADER = /^\*\*\*\p{White_Space}*(Add File|Update File|Delete File|Move to):(.*)$/isu;
const FRAME = /^\*\*\*\p{White_Space}*(Begin Patch|End Patch|End of File|Environment ID:.*)$/isu;
/** Characters at which some end a line, and others do not. */
const HIDDEN_HEADER = /[\r\v\f\u0085\u2028\u2029]\p{White_Space}*\*\*\*/u;

const ACTION: Readonly<Record<string, string>> = {
  'add file': 'file.write',
  'update file': 'file.edit',
  'delete file': 'file.write',
  'move to': 'file.write',
};

/** All that a patch does to one file in one way. */
type Section = {
  readonly change: string;
  readonly path: string;
  /** Whose lines become this file, where it is moved. */
  readonly from: string | undefined;
  readonly lines: string[];
};

/** Returns one subject for each file: a move changes one place and writes another. */
export function subjectsOfPatch(patch: string, cwd: string | undefined): Read<readonly Subject[]> {
  const sections = new Map<string, Section>();
  /** The sections that the next lines belong to. */
  let open: readonly Section[] = [];
  let environment: string | undefined;
  for (const raw of patch.split('\n')) {
    const line = raw.replace(AROUND_LINE, '');
    if (HIDDEN_HEADER.test(line)) return invalid('patch', 'must not have *** behind a character that may end a line');
    const frame = FRAME.exec(line)?.[1]?.toLowerCase();
    if (frame === 'begin patch' || frame === 'end patch') {
      open = [];
    } else if (frame?.startsWith('environment')) {
      environment = line;
    } else if (frame !== undefined || !line.startsWith('***')) {
      for (const { lines } of open) lines.push(raw);
    } else {
      const section = sectionOf(line, cwd, open.at(-1)?.path);
      if (!section.ok) return section;
      const { change, path, from } = section.value;
      const key = JSON.stringify([change, path, from]);
      const known = sections.get(key);
      known?.lines.push('***');
      const opened = known ?? section.value;
      sections.set(key, opened);
      open = change === 'move to' ? [...open, opened] : [opened];
      if (sections.size > MAX_FILES) return invalid('patch', `must not change more than ${MAX_FILES} files at once`);
    }
  }
  if (sections.size === 0) return invalid('patch', 'names no file');
  return ok([...sections.values()].map((section) => subjectOf(section, environment)));
}

function sectionOf(line: string, cwd: string | undefined, before: string | undefined): Read<Section> {
  const [, header, name] = HEADER.exec(line) ?? [];
  if (header === undefined || name === undefined)
    return invalid(
      'patch',
      'must not have a line that begins with *** and is no header; write the file in another way',
    );
  const path = absolutePath(name.replace(AROUND_PATH, ''), cwd);
  if (!path.ok) return path;
  const change = header.toLowerCase();
  return ok({ change, path: path.value, from: change === 'move to' ? before : undefined, lines: [] });
}

/** The environment, which says on which machine the file lies, is bound by an approval like the lines. */
const subjectOf = ({ change, path, from, lines }: Section, environment: string | undefined): Subject => ({
  action: ACTION[change] ?? 'file.write',
  resource: path,
  attributes: {
    change: change.split(' ')[0],
    ...(from === undefined ? {} : { from }),
    ...(environment === undefined ? {} : { environment }),
    ...digestsOf('content', lines.join('\n')),
  },
});

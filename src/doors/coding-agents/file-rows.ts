/** Rows of tools that read, write or change files that they name. */
import { ok } from '../../core/base/result.ts';
import { type Contents, givenName, textsIn, withDigests } from './arguments.ts';
import { readText } from './event-fields.ts';
import { MAX_FILES, subjectsOfPatch } from './patch.ts';
import { absolutePath } from './paths.ts';
import { joined, one, type Row } from './rows.ts';

export type FileAction = 'file.read' | 'file.write' | 'file.edit';
type FileRow = {
  /** The arguments that may hold the path. */
  readonly path: readonly string[];
  readonly contents?: Contents;
  /** Whether the working directory is meant where there is no path. */
  readonly isOptional?: boolean;
};

export const file = (action: FileAction, { path: names, contents = {}, isOptional = false }: FileRow): Row => ({
  becomes: `\`${action}\` on the path`,
  reads: names,
  digests: Object.values(contents).flat(),
  others: [],
  refuses: isOptional ? '' : 'without a path',
  subjects: ({ input, cwd }) => {
    const given = givenName(input, names);
    if (!given.ok) return given;
    const { value: name } = given;
    const text = name === undefined && isOptional ? ok('.') : readText(input, name ?? names[0]!);
    if (!text.ok) return text;
    const path = absolutePath(text.value, cwd);
    if (!path.ok) return path;
    const attributes = withDigests(input, contents);
    return attributes.ok ? one(action, path.value, attributes.value) : attributes;
  },
});

/** Each file of a list. */
export const files = (action: FileAction, name: string): Row => ({
  becomes: `\`${action}\` on each path`,
  reads: [name],
  digests: [],
  others: [],
  refuses: '',
  subjects: ({ input, cwd }) => {
    const paths = textsIn(input, [name]);
    if (!paths.ok) return paths;
    return joined(
      paths.value.map((path) => {
        const resolved = absolutePath(path, cwd);
        return resolved.ok ? one(action, resolved.value, input) : resolved;
      }),
    );
  },
});

/** A patch of many files: one check for each. */
export const patch = (...names: readonly string[]): Row => ({
  becomes: '`file.write` or `file.edit` on each path',
  reads: [],
  digests: names,
  others: [],
  refuses: `without a file, with more than ${MAX_FILES}, or with a line that begins with \`***\` and is no header`,
  subjects: ({ input, cwd }) => {
    const given = givenName(input, names);
    if (!given.ok) return given;
    const text = readText(input, given.value ?? names[0]!);
    return text.ok ? subjectsOfPatch(text.value, cwd) : text;
  },
});

/** Readers of what rules and limits have in common. Mistakes are noted at the reader of the mapping. */
import { isMapping, type MappingReader } from '../base/mapping.ts';
import { MAX_GLOB_LENGTH } from './glob.ts';

export const MAX_NAME_LENGTH = 128;

// Names are shown on terminals and in audit entries; a control character in them could forge a line.
const PRINTABLE = /^[^\p{C}]+$/u;

export function readName(mapping: MappingReader, key: 'name' | 'id'): string | undefined {
  const value = mapping.raw[key];
  if (value === undefined) return mapping.missing(key);
  if (typeof value === 'string' && value.trim() === value && value.length <= MAX_NAME_LENGTH && PRINTABLE.test(value))
    return value;
  return mapping.refuse(
    key,
    `must be a string of 1 to ${MAX_NAME_LENGTH} printable characters, without spaces at either end; this is ${kindOf(value)}`,
  );
}

const EVERYTHING: readonly string[] = ['*'];

export function readGlobs(rule: MappingReader, key: 'actions' | 'resources'): readonly string[] {
  const value = rule.raw[key];
  if (value === undefined) return EVERYTHING;
  if (!Array.isArray(value))
    return rule.refuse(key, `must be a list of patterns such as ["web_*"]; this is ${kindOf(value)}`) ?? EVERYTHING;
  if (value.length === 0) rule.refuse(key, `is empty; omit ${key} to match all`);
  value.forEach((glob: unknown, index) => {
    if (typeof glob === 'string' && glob.length > 0 && glob.length <= MAX_GLOB_LENGTH) return;
    rule.note({
      path: [key, index],
      problem: `must be a pattern of 1 to ${MAX_GLOB_LENGTH} characters; this is ${kindOf(glob)}`,
    });
  });
  return value as readonly string[];
}

/** Names the kind of a value for a reader. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'empty';
  if (Array.isArray(value)) return 'a list';
  switch (typeof value) {
    case 'string':
      return value.trim() === '' ? 'an empty string' : `a string of ${value.length} characters`;
    case 'number':
    case 'bigint':
      return 'a number';
    case 'boolean':
      return 'a boolean';
    default:
      return 'a mapping';
  }
}

/** `key`: the list, in which no two may have one id. */
export function refuseTwins(document: MappingReader, key: 'rules' | 'limits', all: readonly unknown[]): void {
  const firstAt = new Map<unknown, number>();
  all.forEach((raw, index) => {
    const id = isMapping(raw) ? raw.id : undefined;
    if (typeof id !== 'string') return;
    const first = firstAt.get(id);
    if (first === undefined) firstAt.set(id, index);
    else
      document.note({
        path: [key, index, 'id'],
        problem: `${id} is also the id of ${key}[${first}]; ids must be unique within a document`,
      });
  });
}

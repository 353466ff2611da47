/** The `obligations:` section of a rule that allows: what its caller must do (docs/spec.md, Obligations). */
import { isMapping, type Mapping, type MappingReader } from '../base/mapping.ts';
import { type Obligation, SUPPORTED_OBLIGATIONS } from '../check/obligations.ts';

export type ObligationType = (typeof SUPPORTED_OBLIGATIONS)[number];

/** Properties of each obligation type besides its id and its type. */
export const PROPERTIES_OF = {
  redact: ['paths'],
  set: ['path', 'value'],
  cap: ['path', 'max'],
  notify: ['message'],
} as const satisfies Record<ObligationType, readonly string[]>;

export const MAX_OBLIGATIONS = 32;
export const MAX_PATHS = 64;
export const MAX_PATH_LENGTH = 256;
export const MAX_MESSAGE_LENGTH = 512;
export const MAX_OBLIGATION_ID_LENGTH = 128;
/** Limits a value to set, as JSON. */
const MAX_VALUE_LENGTH = 4096;

/** Names with dots between them; no name is empty. */
export const PATH_PATTERN = '^[^.\\p{C}]+(\\.[^.\\p{C}]+)*$';
const PATH = new RegExp(PATH_PATTERN, 'u');
export const OBLIGATION_ID_PATTERN = '^[^\\s\\p{C}]+$';
const ID = new RegExp(OBLIGATION_ID_PATTERN, 'u');

/** Mistakes are noted at the reader. Undefined where the rule has none. */
export function readObligations(rule: MappingReader): readonly Obligation[] | undefined {
  const raw = rule.raw.obligations;
  if (raw === undefined) return undefined;
  if (!Array.isArray(raw) || raw.length === 0 || raw.length > MAX_OBLIGATIONS)
    return rule.refuse('obligations', `must be a list of 1 to ${MAX_OBLIGATIONS} obligations`);
  const read: Obligation[] = [];
  raw.forEach((each: unknown, index) => {
    if (!isMapping(each))
      return rule.note({ path: ['obligations', index], problem: 'must be a mapping with the keys id and type' });
    const obligation = readObligation(rule.within(['obligations', index], each));
    if (obligation === undefined) return;
    if (read.some(({ id }) => id === obligation.id))
      rule.note({
        path: ['obligations', index, 'id'],
        problem: `${obligation.id} is already an id in this rule; ids must be unique within a rule`,
      });
    read.push(obligation);
  });
  return read;
}

function readObligation(reader: MappingReader): Obligation | undefined {
  const { id, type } = reader.raw;
  if (id === undefined) reader.missing('id');
  else if (typeof id !== 'string' || id.length > MAX_OBLIGATION_ID_LENGTH || !ID.test(id))
    reader.refuse('id', `must be a string of 1 to ${MAX_OBLIGATION_ID_LENGTH} visible characters`);
  const known = SUPPORTED_OBLIGATIONS.find((each) => each === type);
  if (known === undefined)
    return type === undefined
      ? reader.missing('type')
      : reader.refuse('type', `must be ${SUPPORTED_OBLIGATIONS.slice(0, -1).join(', ')} or notify`);
  reader.refuseKeysExcept(['id', 'type', ...PROPERTIES_OF[known]]);
  for (const key of PROPERTIES_OF[known]) {
    const value = reader.raw[key];
    if (value === undefined) reader.missing(key);
    else if (!READS[key](value)) reader.refuse(key, MUST_BE[key]);
  }
  if (typeof id !== 'string') return undefined;
  return { id, type: known, properties: propertiesOf(reader.raw, known) };
}

const propertiesOf = (raw: Mapping, type: ObligationType): Mapping =>
  Object.fromEntries(PROPERTIES_OF[type].map((key) => [key, raw[key]]));

type PropertyKey = (typeof PROPERTIES_OF)[ObligationType][number];

const isPath = (value: unknown): boolean =>
  typeof value === 'string' && value.length <= MAX_PATH_LENGTH && PATH.test(value);

const READS: Readonly<Record<PropertyKey, (value: unknown) => boolean>> = {
  paths: (value) => Array.isArray(value) && value.length > 0 && value.length <= MAX_PATHS && value.every(isPath),
  path: isPath,
  value: isShortJson,
  max: (value) => typeof value === 'number' && Number.isFinite(value),
  message: (value) => typeof value === 'string' && value.trim() !== '' && value.length <= MAX_MESSAGE_LENGTH,
};

const MUST_BE: Readonly<Record<PropertyKey, string>> = {
  paths: `must be a list of 1 to ${MAX_PATHS} dotted paths, such as ["customer.email", "result.rows.email"]`,
  path: 'must be a dotted path, such as customer.email or result.rows.email',
  value: `must be text, a number, a boolean, null, or a list or mapping of them, at most ${MAX_VALUE_LENGTH} characters as JSON`,
  max: 'must be a number',
  message: `must be a string of 1 to ${MAX_MESSAGE_LENGTH} characters`,
};

/** JSON would turn NaN and the infinities, which YAML has, into null. */
function isShortJson(value: unknown): boolean {
  let isJson = true;
  const text = JSON.stringify(value, (_key, each: unknown) => {
    if (typeof each === 'number' && !Number.isFinite(each)) isJson = false;
    if (typeof each !== 'bigint') return each;
    isJson = false;
    return null;
  });
  return isJson && text.length <= MAX_VALUE_LENGTH;
}

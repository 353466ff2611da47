/** The part of JSON Schema that our schemas use. An unknown keyword throws, so that none is ignored. */
type Schema = Readonly<Record<string, any>>;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const IS_TYPE: Readonly<Record<string, (value: unknown) => boolean>> = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  integer: Number.isSafeInteger,
  number: (value) => typeof value === 'number' && !Number.isNaN(value),
};

/** Applied to values of the kind that the keyword is about; others pass it, as the standard says. */
const KEYWORDS: Readonly<Record<string, (value: any, wanted: any, schema: Schema) => boolean>> = {
  $schema: () => true,
  $comment: () => true,
  title: () => true,
  description: () => true,
  examples: () => true,
  type: (value, wanted) => [wanted].flat().some((each: string) => IS_TYPE[each]!(value)),
  enum: (value, wanted) => wanted.includes(value),
  pattern: (value, wanted) => typeof value !== 'string' || new RegExp(wanted, 'u').test(value),
  minLength: (value, wanted) => typeof value !== 'string' || [...value].length >= wanted,
  maxLength: (value, wanted) => typeof value !== 'string' || [...value].length <= wanted,
  minimum: (value, wanted) => typeof value !== 'number' || value >= wanted,
  exclusiveMinimum: (value, wanted) => typeof value !== 'number' || value > wanted,
  maximum: (value, wanted) => typeof value !== 'number' || value <= wanted,
  minItems: (value, wanted) => !Array.isArray(value) || value.length >= wanted,
  maxItems: (value, wanted) => !Array.isArray(value) || value.length <= wanted,
  items: (value, wanted) => !Array.isArray(value) || value.every((each) => conforms(each, wanted)),
  required: (value, wanted) => !isObject(value) || wanted.every((key: string) => Object.hasOwn(value, key)),
  properties: (value, wanted) =>
    !isObject(value) ||
    Object.entries(value).every(([key, each]) => !Object.hasOwn(wanted, key) || conforms(each, wanted[key])),
  propertyNames: (value, wanted) => !isObject(value) || Object.keys(value).every((key) => conforms(key, wanted)),
  additionalProperties: (value, wanted, { properties }) =>
    !isObject(value) ||
    Object.entries(value).every(
      ([key, each]) => Object.hasOwn(properties ?? {}, key) || (wanted !== false && conforms(each, wanted)),
    ),
  allOf: (value, wanted) => wanted.every((each: Schema) => conforms(value, each)),
  anyOf: (value, wanted) => wanted.some((each: Schema) => conforms(value, each)),
  oneOf: (value, wanted) => wanted.filter((each: Schema) => conforms(value, each)).length === 1,
  not: (value, wanted) => !conforms(value, wanted),
  if: (value, wanted, { then }) => !conforms(value, wanted) || conforms(value, then),
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema, which goes with `if`
  then: () => true,
};

export const conforms = (value: unknown, schema: Schema): boolean =>
  Object.entries(schema).every(([keyword, wanted]) => {
    const holds = KEYWORDS[keyword];
    if (holds === undefined) throw new Error(`this validator has no keyword ${keyword}`);
    return holds(value, wanted, schema);
  });

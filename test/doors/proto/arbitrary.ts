/** Any message that a shape allows. */
import fc from 'fast-check';
import type { FieldShape, MessageShape } from '../../../src/doors/proto/schema.ts';

// Implementations differ in whether JSON has a negative zero, and nothing here depends on one.
const withoutMinusZero = (value: number): number => (value === 0 ? 0 : value);

const json: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constant(null),
    fc.boolean(),
    fc.string({ unit: 'grapheme' }),
    fc
      .double({ noNaN: true, noDefaultInfinity: true })
      .filter((value) => !Number.isInteger(value) || Number.isSafeInteger(value))
      .map(withoutMinusZero),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(
      fc.string().filter((key) => key !== '__proto__'),
      tie('value'),
      { maxKeys: 4, noNullPrototype: true },
    ),
  ),
})).value;
const struct = fc.dictionary(
  fc.string().filter((key) => key !== '__proto__'),
  json,
  { maxKeys: 6, noNullPrototype: true },
);

function valueOf(field: FieldShape): fc.Arbitrary<unknown> {
  switch (field.kind) {
    case 'string':
      return fc.string({ unit: 'grapheme', maxLength: 200 });
    case 'bool':
      return fc.boolean();
    case 'double':
      return fc.double().map(withoutMinusZero);
    case 'uint32':
      return fc.nat({ max: 0xffff_ffff });
    case 'uint64':
      return fc.nat({ max: Number.MAX_SAFE_INTEGER });
    case 'enum':
      return fc.constantFrom(...field.shape.values.map(({ word }) => word));
    case 'struct':
      return struct;
    case 'timestamp':
      return fc.nat({ max: 253_402_300_799_999 });
    case 'message':
      return messageOf(field.shape);
  }
}

export function messageOf(shape: MessageShape): fc.Arbitrary<Record<string, unknown>> {
  return fc.record(
    Object.fromEntries(
      shape.fields.map((field) => {
        const value = valueOf(field);
        if (field.repeated) return [field.name, fc.array(value, { maxLength: 3 })];
        return [field.name, field.hasPresence ? fc.option(value, { nil: undefined }) : value];
      }),
    ),
  );
}

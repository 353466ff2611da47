import { describe, expect, test } from 'vitest';
import { isSameJson, jsonIn, mappingIn } from '../../../src/core/base/mapping.ts';

describe('JSON of unknown shape', () => {
  test.each([
    ['{"a":1}', { a: 1 }, { a: 1 }],
    ['{}', {}, {}],
    ['[1]', [1], undefined],
    ['null', null, undefined],
    ['"text"', 'text', undefined],
    ['0', 0, undefined],
    ['{"a":', undefined, undefined],
    ['', undefined, undefined],
  ])('%s is read as a value, and as a mapping only if it is one', (text, value, mapping) => {
    expect(jsonIn(text)).toEqual(value);
    expect(mappingIn(text)).toEqual(mapping);
  });

  test.each([
    [{ a: 1, b: [true, null] }, { b: [true, null], a: 1 }, true],
    [{ a: 1 }, { a: 1, b: undefined }, false],
    [{ a: undefined }, { b: undefined }, false],
    [[1, 2], [2, 1], false],
    [[], {}, false],
    [null, {}, false],
    ['1', 1, false],
    [{ a: { b: [{ c: 1 }] } }, { a: { b: [{ c: 2 }] } }, false],
  ])('%j and %j are compared by value', (one, other, isSame) => {
    expect([isSameJson(one, other), isSameJson(other, one)]).toEqual([isSame, isSame]);
  });
});

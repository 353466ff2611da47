import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { finish } from '../../../src/core/base/steps.ts';
import {
  type FindLiterals,
  FoundKeys,
  findingBeginnings,
  findingContained,
  findingEndings,
  type Literal,
} from '../../../src/core/policy/literals.ts';
import { runs } from '../../support/runs.ts';

const literalsOf = (texts: readonly string[]): readonly Literal[] => texts.map((text, key) => ({ text, key }));
const foundBy = (find: FindLiterals | undefined, texts: readonly string[], text: string): readonly string[] => {
  const found = new FoundKeys();
  find?.(text, found);
  return found.keys
    .slice(0, found.count)
    .map((key) => texts[key] ?? 'a key that nobody gave')
    .sort();
};

describe('literals', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', 'c', '/', '😀'), maxLength: 12 });
  const texts = fc.uniqueArray(
    text.filter((each) => each !== ''),
    { maxLength: 30 },
  );

  test('are found where the text begins with them, ends with them and contains them', () => {
    fc.assert(
      fc.property(texts, text, (looked, searched) => {
        const found = [findingBeginnings, findingEndings, findingContained].map((finding) =>
          foundBy(finish(finding(literalsOf(looked))), looked, searched),
        );
        expect(found).toEqual([
          looked.filter((each) => searched.startsWith(each)).sort(),
          looked.filter((each) => searched.endsWith(each)).sort(),
          looked.filter((each) => searched.includes(each)).sort(),
        ]);
      }),
      { numRuns: runs(100) },
    );
  });

  test('within one another are all found, each once', () => {
    const looked = ['a', 'aa', 'aaa', 'ba', 'ab', 'abab'];
    const find = finish(findingContained(literalsOf(looked)));
    expect(foundBy(find, looked, 'aaaabab')).toEqual(['a', 'aa', 'aaa', 'ab', 'abab', 'ba']);
    expect(foundBy(find, looked, 'bb')).toEqual([]);
  });

  test('are found once each in a long text of one letter', () => {
    const looked = Array.from({ length: 500 }, (_, at) => 'a'.repeat(at + 1));
    const find = finish(findingContained(literalsOf(looked)));
    for (let round = 0; round < 20; round += 1) expect(foundBy(find, [], 'a'.repeat(4_096))).toHaveLength(500);
  });
});

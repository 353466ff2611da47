import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { jsonText, yamlText } from '../../src/cli/terminal/output.ts';
import { printable } from '../../src/cli/terminal/printable.ts';
import { cellText, fieldLines, tableLines } from '../../src/cli/terminal/table.ts';
import { clipped, widthOf } from '../../src/cli/terminal/width.ts';
import { CODE_POINT } from '../support/code-point.ts';

const anything = fc.string({ unit: CODE_POINT, maxLength: 40 });
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e0fff}]/u;

describe('printable', () => {
  test('printable text is one line without control of the terminal', () => {
    fc.assert(
      fc.property(anything, (text) => {
        expect(printable(text)).not.toMatch(UNSAFE);
      }),
    );
    expect(printable('a\u001b[2J\u009b1m\u202eb\r\n\u0000')).toBe('a\\u001b[2J\\u009b1m\\u202eb\\u000d\\u000a\\u0000');
    expect(printable('grün 東京 🙂 – ok')).toBe('grün 東京 🙂 – ok');
    expect(printable('a\u{e0041}b')).toBe('a\\udb40\\udc41b'); // an invisible tag, in the two halves that JSON reads
  });

  test('the width of a text is that on a terminal, also for marks of no script', () => {
    const widths = {
      abc: 3,
      é: 1,
      'e\u0301': 1,
      東京: 4,
      データ: 6,
      ﾃﾞｰﾀ: 4,
      한국: 4,
      ㄅ: 2,
      '、。': 4,
      '🚀': 2,
      '🇯🇵': 2,
      שלום: 4,
      'x：y': 4,
    };
    expect(Object.fromEntries(Object.keys(widths).map((text) => [text, widthOf(text)]))).toEqual(widths);
  });

  test('JSON and YAML cannot drive the terminal and keep their meaning', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(anything, fc.oneof(anything, fc.integer(), fc.array(anything, { maxLength: 3 })), { maxKeys: 4 }),
        async (value) => {
          const plain = JSON.parse(JSON.stringify(value)) as unknown;
          const [json, yaml] = [jsonText(value, 2), await yamlText(value)];
          for (const text of [json, yaml]) expect(text.replaceAll('\n', '')).not.toMatch(UNSAFE);
          expect(JSON.parse(json)).toEqual(plain);
          expect(parse(yaml)).toEqual(plain);
        },
      ),
    );
  });

  test('clipped text is never wider than asked', () => {
    fc.assert(
      fc.property(anything.map(printable), fc.integer({ min: 1, max: 30 }), (text, width) => {
        expect(widthOf(clipped(text, width))).toBeLessThanOrEqual(width);
      }),
    );
    expect(clipped('abcdef', 4)).toBe('abc…');
    expect(clipped('東京都', 4)).toBe('東…');
    expect(clipped('abcd', 4)).toBe('abcd');
  });

  test('a table takes its width from its cells and shrinks on a narrow terminal', () => {
    const columns = [
      { title: 'ID', cell: 'id', isWhole: true },
      { title: 'NAME', cell: 'is.name' },
      { title: 'N', cell: 'n' },
    ];
    const rows = [
      { id: '0123456789', is: { name: 'a long name that has to give way' }, n: 1 },
      { id: '1', n: null },
    ];
    expect(tableLines(columns, rows, undefined)).toEqual([
      'ID          NAME                              N',
      '0123456789  a long name that has to give way  1',
      '1           -                                 -',
    ]);
    const outlier = { id: 'an id far too long for the screen', is: { name: 'x' }, n: 2 };
    expect(tableLines(columns, [...rows, outlier], 30)).toEqual([
      'ID          NAME             N',
      '0123456789  a long name th…  1',
      '1           -                -',
      'an id far too long for the screen  x                2',
    ]);
    expect(tableLines(columns, rows, 30)).toEqual([
      'ID          NAME             N',
      '0123456789  a long name th…  1',
      '1           -                -',
    ]);
  });

  test('a table that cannot fit drops its spare columns, the last first', () => {
    const columns = [
      { title: 'ID', cell: 'id', isWhole: true },
      { title: 'NAME', cell: 'name' },
      { title: 'SUM', cell: 'sum', isWhole: true, isSpare: true },
      { title: 'LEFT', cell: 'left', isSpare: true },
    ];
    const rows = [{ id: '0123456789', name: 'a long name', sum: '$1000.00', left: '12h' }];
    expect(tableLines(columns, rows, 34)).toEqual([
      'ID          NAME    SUM       LEFT',
      '0123456789  a lon…  $1000.00  12h',
    ]);
    expect(tableLines(columns, rows, 31)).toEqual(['ID          NAME       SUM', '0123456789  a long n…  $1000.00']);
    expect(tableLines(columns, rows, 27)).toEqual(['ID          NAME', '0123456789  a long name']);
    expect(tableLines(columns, rows, undefined)).toEqual([
      'ID          NAME         SUM       LEFT',
      '0123456789  a long name  $1000.00  12h',
    ]);
  });

  test('a cell shows nothing as a dash, a list with commas, and an object as JSON', () => {
    expect([undefined, null, '', [], ['a', 'b'], { a: 1 }, false, 0].map(cellText)).toEqual([
      '-',
      '-',
      '-',
      '-',
      'a,b',
      '{"a":1}',
      'false',
      '0',
    ]);
    expect(
      fieldLines([
        ['a', 1],
        ['long', undefined],
      ]),
    ).toEqual(['a     1', 'long  -']);
  });
});

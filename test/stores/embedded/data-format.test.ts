import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { unknownFormat } from '../../../src/stores/embedded/data-dir.ts';
import { temporaryFolder } from '../../support/harness.ts';

describe('data format', () => {
  test('a data directory has its format from the first start; an older one is the first', async () => {
    const dataDir = temporaryFolder();
    expect(await unknownFormat(dataDir)).toBeUndefined();
    expect(readFileSync(join(dataDir, 'format'), 'utf8')).toBe('1\n');
    expect(await unknownFormat(dataDir)).toBeUndefined();
  });

  test.each([
    ['2\n', '2'],
    ['10', '10'],
    ['', ''],
    ['of another program', 'of another program'],
  ])('the unknown format %j is refused and left alone', async (text, format) => {
    const dataDir = temporaryFolder();
    const file = join(dataDir, 'format');
    writeFileSync(file, text);
    expect(await unknownFormat(dataDir)).toBe(format);
    expect(existsSync(file) && readFileSync(file, 'utf8')).toBe(text);
  });
});

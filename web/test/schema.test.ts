import { readFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';
import { describe, expect, test } from 'vitest';

describe('the types of answers', () => {
  test('are those of docs/openapi.json; else run npm run docs', async () => {
    const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');
    const made = astToString(await openapiTS(JSON.parse(read('../../docs/openapi.json'))));
    // Not as a diff: nine thousand lines say less than the title does.
    expect(read('../src/base/schema.d.ts').endsWith(made)).toBe(true);
  });
});

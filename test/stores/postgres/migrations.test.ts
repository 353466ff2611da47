import { describe, expect, test } from 'vitest';
import { MIGRATIONS } from '../../../src/stores/postgres/migrations.ts';

describe('migrations', () => {
  test('have consecutive numbers, in the order in which they are taken, each once', () => {
    const numbers = MIGRATIONS.map(({ number }) => number);
    expect(numbers).toEqual(Array.from({ length: MIGRATIONS.length }, (_, at) => at + 1));
  });
});

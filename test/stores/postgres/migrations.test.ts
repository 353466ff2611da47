import { describe, expect, test } from 'vitest';
import { MIGRATIONS } from '../../../src/stores/postgres/migrations.ts';

describe('migrations', () => {
  test('have consecutive numbers, each once: a database remembers them by number', () => {
    const numbers = MIGRATIONS.map(({ number }) => number).sort((one, other) => one - other);
    expect(numbers).toEqual(Array.from({ length: MIGRATIONS.length }, (_, at) => at + 1));
  });
});

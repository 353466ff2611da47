import { describe, expect, test } from 'vitest';
import { CursorSeal } from '../../../src/threads/main/cursor-seal.ts';

describe('cursor seal', () => {
  test('a sealed cursor opens unchanged, always looks alike and hides its number', () => {
    const seal = new CursorSeal();
    const sealed = ['7', '123456789', '3.1.22.333'].map((cursor) => seal.seal('ops', cursor));
    expect(sealed.map((cursor) => seal.open('ops', cursor))).toEqual(['7', '123456789', '3.1.22.333']);
    expect(seal.seal('ops', '7')).toBe(sealed[0]);
    expect(new Set(sealed.map(({ length }) => length)).size).toBe(1);
    expect(new Set(sealed.map((cursor) => cursor.slice(0, 16))).size).toBe(3);
  });

  test('a changed, invented or foreign cursor does not open', () => {
    const seal = new CursorSeal();
    const sealed = seal.seal('ops', '42');
    const changed = `${sealed.slice(0, 40)}${sealed[40] === 'A' ? 'B' : 'A'}${sealed.slice(41)}`;
    expect(['42', '', changed, new CursorSeal().seal('ops', '42')].map((cursor) => seal.open('ops', cursor))).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('a cursor of one listing does not open in another', () => {
    const seal = new CursorSeal();
    expect(seal.open('agents', seal.seal('ops', '42'))).toBeUndefined();
    expect(seal.seal('agents', '42').slice(0, 16)).not.toBe(seal.seal('ops', '42').slice(0, 16));
  });
});

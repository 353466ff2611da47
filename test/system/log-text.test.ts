import { describe, expect, test } from 'vitest';
import { logText } from '../../src/system/log-text.ts';

const LINE =
  '{"level":"warn","time":"2026-01-31T12:00:00.125Z","file":"a b.yaml","rules":7,"why":"gone","msg":"not read"}\n';

describe('the log on a terminal', () => {
  test('has the time of day, the level, the message and its fields', () => {
    expect(logText(LINE, false)).toBe('12:00:00.125 WARN  not read  file="a b.yaml"  rules=7  why=gone\n');
    expect(logText(LINE, true)).toContain('12:00:00.125 \u001b[33mWARN \u001b[0m not read');
  });

  test('does not drive the terminal, nor begin a line of its own', () => {
    const line = { level: 'info', time: '2026-01-31T12:00:00.000Z', name: '\u001b[2Jx', msg: 'a\nb\u202ec\u001b]0;t' };
    expect(logText(`${JSON.stringify(line)}\n`, false)).toBe(
      '12:00:00.000 INFO  a\\u{a}b\\u{202e}c\\u{1b}]0;t  name=\\u{1b}[2Jx\n',
    );
  });

  test('a line that is no JSON stays as it is', () => {
    expect(logText('node: out of memory\n', true)).toBe('node: out of memory\n');
  });
});

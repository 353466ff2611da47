/** The tables of tools as docs/hook-tools.md has them. */
import type { Row } from './rows.ts';
import { TOOL_TABLES } from './tool-tables.ts';

const TITLES: Readonly<Record<keyof typeof TOOL_TABLES, string>> = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  cursor: 'Cursor',
  gemini: 'Gemini CLI',
  copilot: 'GitHub Copilot',
};

export function toolTables(): string {
  return Object.entries(TOOL_TABLES)
    .map(([agent, table]) => {
      const rows = [...table].map(([name, row]) => line(name, row));
      const head = [
        '| tool | becomes | read | digests | other arguments | refused |',
        '| --- | --- | --- | --- | --- | --- |',
      ];
      return [`## ${TITLES[agent as keyof typeof TOOL_TABLES]}`, '', ...head, ...rows, ''].join('\n');
    })
    .join('\n');
}

const line = (name: string, { becomes, reads, digests, others, refuses }: Row): string =>
  `| ${[code([name]), becomes, code(reads), code(digests), code(others), refuses || '–'].join(' | ')} |`;

const code = (names: readonly string[]): string =>
  names.length === 0 ? '–' : names.map((name) => `\`${name}\``).join(', ');

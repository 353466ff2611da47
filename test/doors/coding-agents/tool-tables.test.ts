/** The tables of tools, held against what the agents really offer (scripts/agent-tools.mjs). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Row, tool } from '../../../src/doors/coding-agents/rows.ts';
import { toolTables } from '../../../src/doors/coding-agents/tool-page.ts';
import { TOOL_TABLES } from '../../../src/doors/coding-agents/tool-tables.ts';
import { PACKAGE_ROOT } from '../../../src/system/package-files.ts';

type Offered = {
  readonly package: string;
  readonly version: string;
  readonly taken: string;
  readonly tools: Readonly<Record<string, readonly string[]>>;
};

const AGENTS = ['claude-code', 'codex', 'gemini', 'copilot'] as const;
const offeredBy = (agent: string): Offered =>
  JSON.parse(readFileSync(new URL(`agent-tools/${agent}.json`, import.meta.url), 'utf8'));

/** Lists arguments of the agent's tools that the table lacks. */
function missing(table: ReadonlyMap<string, Row>, { tools }: Offered): readonly string[] {
  return Object.entries(tools).flatMap(([name, fields]) => {
    const row = table.get(name);
    if (row === undefined) return [name];
    const known = new Set([...row.reads, ...row.digests, ...row.others]);
    return fields.filter((field) => !known.has(field)).map((field) => `${name}.${field}`);
  });
}

/** Names of arguments that say where a tool reaches, unless somebody has looked and found otherwise. */
const REACHES = /path|file|dir|url|uri|^cmd|command|^code$|chars|glob|include|folder|paths|ws$/i;
const LOOKED_AT: Readonly<Record<string, readonly string[]>> = {
  // `url` is that of a page of the maker, `path` a document of a project there.
  'claude-code': ['Artifact.url', 'Projects.path'],
  // `workdir` says where a command runs; the other is a list of agents.
  codex: [
    'exec_command.workdir',
    'shell.workdir',
    'local_shell.workdir',
    'shell_command.workdir',
    'list_agents.path_prefix',
  ],
  cursor: ['Shell.working_directory', 'LS.ignore_globs'],
  gemini: [
    ...['run_shell_command.dir_path', 'run_shell_command.directory', 'read_many_files.file_filtering_options'],
    ...['list_directory.file_filtering_options', 'get_internal_docs.path', 'read_mcp_resource.uri'],
    ...['exit_plan_mode.plan_filename', 'exit_plan_mode.plan_path'],
    ...['grep_search.max_matches_per_file', 'search_file_content.max_matches_per_file'],
  ],
  copilot: ['view.forceReadLargeFiles', 'str_replace_editor.command', 'list_agents.include_completed'],
};

describe('the tables of tools', () => {
  test.each(AGENTS)('have a row for each tool of %s, and a place for each of its fields', (agent) => {
    const offered = offeredBy(agent);
    expect(Object.keys(offered.tools).length).toBeGreaterThan(15);
    expect(missing(TOOL_TABLES[agent], offered)).toEqual([]);
  });

  test('lack a tool, or a field of one, that an agent has since been given', () => {
    const offered = offeredBy('copilot');
    const tools = { ...offered.tools, teleport: ['to'], bash: [...offered.tools.bash!, 'elsewhere'] };
    expect(missing(TOOL_TABLES.copilot, { ...offered, tools })).toEqual(['bash.elsewhere', 'teleport']);
  });

  test.each(Object.entries(TOOL_TABLES))('let nothing pass in %s that says where a tool reaches', (agent, table) => {
    const passed = [...table].flatMap(([name, { others }]) =>
      others.filter((field) => REACHES.test(field)).map((field) => `${name}.${field}`),
    );
    expect(passed.sort()).toEqual([...LOOKED_AT[agent]!].sort());
  });

  test('say for each row what it becomes, and name no field twice', () => {
    for (const [agent, table] of Object.entries(TOOL_TABLES))
      for (const [name, row] of table) {
        const passed = row.others.filter((field) => row.reads.includes(field));
        expect({ agent, name, becomes: row.becomes !== '', passed }).toEqual({
          agent,
          name,
          becomes: true,
          passed: [],
        });
      }
    expect(tool().becomes).toBe('`tool.call` on its name');
  });

  test('stand in docs/hook-tools.md as they are, with the releases behind them', () => {
    const page = readFileSync(join(PACKAGE_ROOT, 'docs/hook-tools.md'), 'utf8');
    expect(/<!-- tools -->\n([^]*?)<!-- \/tools -->/.exec(page)?.[1], 'run `npm run docs`').toBe(toolTables());
    for (const agent of AGENTS) expect(page).toContain(offeredBy(agent).version);
  });

  test.each(AGENTS)('were held against a release of %s that has a date', (agent) => {
    const { version, taken } = offeredBy(agent);
    expect({ version, taken }).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
      taken: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
    });
  });
});

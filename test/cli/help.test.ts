import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { wordsOf } from '../../src/cli/command-row.ts';
import { COMMANDS, GROUPS } from '../../src/cli/commands.ts';
import { EXIT } from '../../src/cli/errors.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { type CliHome, createCliHome, SVC } from '../support/cli.ts';

let cli: CliHome;
describe('help', () => {
  beforeEach(() => {
    cli = createCliHome();
  });
  afterEach(() => cli.remove());

  const tooMuchIn = (text: string, most = 30): readonly string[] => {
    const lines = text.split('\n');
    return [
      ...(lines.length > most ? [`${lines.length} lines: ${text}`] : []),
      ...lines.filter((line) => line.length > 80).map((line) => `${line.length} columns: ${line}`),
    ];
  };

  const helpOf = async (...words: readonly string[]): Promise<string> => (await cli.run([...words, '--help'])).stdout;

  test('help and version are also words', async () => {
    expect((await cli.run(['help'])).stdout).toBe(await helpOf());
    expect(await cli.run(['help', 'halts', 'release'])).toMatchObject({
      status: 0,
      stdout: await helpOf('halts', 'release'),
    });
    expect((await cli.run(['version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test('every help fits 30 lines, that of svc 40, and 80 columns, with an example', async () => {
    const groups = new Set(COMMANDS.map((row) => wordsOf(row)).flatMap(([first]) => first ?? []));
    const texts: string[] = [await helpOf()];
    for (const words of [...[...groups].map((name) => [name]), ...COMMANDS.map(wordsOf)]) {
      const text = await helpOf(...words);
      expect(text).toMatch(new RegExp(`^Usage: svc ${words.join(' ')} `));
      texts.push(text);
    }
    for (const text of texts) {
      expect(tooMuchIn(text, text === texts[0] ? 40 : 30)).toEqual([]);
      expect(text).toMatch(/Example: \S/);
    }
  });

  test('the help of svc names every command', async () => {
    const shown = [...(await helpOf()).matchAll(/^ {2}([a-z]+) {2,}\S/gm)].map(([, name]) => name);
    expect(shown).toEqual(GROUPS.map(({ name }) => name));
    expect([...new Set(COMMANDS.map((row) => wordsOf(row)[0]))].sort()).toEqual(GROUPS.map(({ name }) => name).sort());
  });

  test('the help of svc names every exit status', async () => {
    expect(await helpOf()).toContain('\nExit status: 0 success, 1 failure, 2 usage, 3 check denied, 130 interrupted\n');
    expect(Object.values(EXIT)).toEqual([0, 1, 2, 3, 130]);
  });

  test.each([
    ['login', ['SVC_CLI_API_KEY']],
    ['context use', ['SVC_CLI_CONTEXT', 'SVC_CLI_API_URL']],
    ['check', ['SVC_CLI_AGENT_TOKEN']],
    ['agents register', ['SVC_CLI_AGENT_TOKEN']],
  ])('the help of %s names the variables that it reads: %s', async (words, variables) => {
    const text = await helpOf(...words.split(' '));
    for (const variable of variables) expect(text).toContain(variable);
  });

  test('requested help goes to standard output, with an example of its own command', async () => {
    for (const words of [['--help'], ['ops', '--help'], ['ops', 'pause', '--help'], ['check', '-h']]) {
      const { status, stdout, stderr } = await cli.run(words);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      expect(tooMuchIn(stdout, 40)).toEqual([]);
    }
    for (const row of COMMANDS) expect(row.example).toContain(`svc ${wordsOf(row).join(' ')}`);
  });

  const isDocument = (name: string): boolean => name.endsWith('.md');
  /** Collects each printed command: its words up to a comment or another command. */
  const printedIn = (path: string): readonly string[] =>
    [...readFileSync(join(PACKAGE_ROOT, path), 'utf8').matchAll(/(?:^|`|; )(?:npx )?svc ([a-z][^`#;\n]*)/gm)].map(
      ([, words]) => words!.trim(),
    );

  test('every command that the documents print exists, with its options', async () => {
    const documents = readdirSync(join(PACKAGE_ROOT, 'docs'))
      .filter(isDocument)
      .map((name) => `docs/${name}`);
    const printed = ['README.md', 'CHANGELOG.md', 'examples/README.md', ...documents].flatMap(printedIn);
    expect(printed.length).toBeGreaterThan(30);
    const everywhere = await helpOf();
    const wrong = printed.filter((text) => {
      const row = COMMANDS.find((command) =>
        wordsOf(command).every((word, at) => text.split(/\s+/)[at]?.split('|').includes(word)),
      );
      const flags = `${everywhere} ${row?.options?.map((option) => option.flags).join(' ')}`;
      return (
        row === undefined || !(text.match(/--[a-z0-9-]+/g) ?? []).every((flag) => new RegExp(`${flag}\\b`).test(flags))
      );
    });
    expect(wrong).toEqual([]);
  });

  test('the process ends with the status of the command', async () => {
    expect((await cli.start(['--version'])).status).toBe(0);
    expect((await cli.start(['context', 'use', 'nowhere'])).status).toBe(1);
    expect((await cli.start(['ops', 'show'])).status).toBe(2);
  });

  test('a usage error exits with 2 and a hint on standard error', async () => {
    const cases: readonly (readonly [readonly string[], string])[] = [
      [['wohami'], "error: unknown command 'wohami'\n(Did you mean whoami?)\nRun `svc --help` for help.\n"],
      [['ops', 'show'], "error: missing required argument 'op_id'\nRun `svc ops show --help` for help.\n"],
      [
        ['ops', 'pause'],
        'error: no operations to pause given\nGive their ids, or select them with --agent, --team, --org or --all.\n',
      ],
      [
        ['ops', 'terminate', 'o:1', '--all'],
        'error: give either operation ids or options that select operations, not both\n',
      ],
      [
        ['ops', 'ls', '--agent', 'acme/search/a1', '--org', 'other'],
        'error: --agent acme/search/a1 is not in this org\n',
      ],
      [
        ['logs', '--agent', '/search/a1'],
        'error: the log cannot be searched for an agent without an org\n--team search --agent a1 finds it, together with agents of the same name in all orgs.\n',
      ],
      [['ops', 'ls', '--limit', '0'], 'error: --limit must be a whole number of at least 1\n'],
      [
        ['check', '--agent', 'acme/search/a1', '--actoin', 'tool.call'],
        "error: unknown option '--actoin'\n(Did you mean --action?)\nRun `svc check --help` for help.\n",
      ],
      [
        ['check', '--agent', 'acme/search/a1'],
        "error: required option '--action <action>' not specified\nRun `svc check --help` for help.\n",
      ],
      [
        ['agents', 'rm', 'search/crawler'],
        'error: an agent must be <org>/<team>/<agent>, or /<team>/<agent> without an org\nDid you mean /search/crawler?\n',
      ],
      [
        ['whoami', '--api-url', 'ftp://x'],
        'error: the gateway URL must be http://host:port or https://host, with nothing after its path\nFor example: http://127.0.0.1:8080\n',
      ],
      [['check', '--agent', 'a/b/c', '--action', 'x', '--attr', 'novalue'], 'error: --attr must be <name>=<value>\n'],
      [
        ['check', '--agent', 'a/b/c', '--action', 'x', '--attr', 'size=1e400'],
        'error: a number in --attr is too large\nTo send it as a string, put it in quotes: --attr \'size="1e400"\'.\n',
      ],
      [
        ['policy', 'explain', '--agent', 'a/b/c', '--action', 'x', '--attr', 'sizes=[1,{"least":-1e400}]'],
        'error: a number in --attr is too large\n',
      ],
    ];
    for (const [args, message] of cases) {
      const { status, stdout, stderr } = await cli.run(args);
      expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
      expect(stderr.startsWith(message), stderr).toBe(true);
    }
  });

  test('a mistyped word is quoted without driving the terminal', async () => {
    for (const args of [
      ['\u001b[31mred'],
      ['ops', 'ls', '--state', '\u001b[31mred'],
      ['ops', 'ls', '--\u001b[31mred'],
    ]) {
      const { status, stderr } = await cli.run(args);
      expect(status).toBe(2);
      expect(stderr).toContain('\\u001b[31mred');
      expect(stderr).not.toContain('\u001b');
    }
  });

  test('--version prints the version of the package', async () => {
    expect(await cli.run(['--version'])).toEqual({ status: 0, stdout: '0.2.0\n', stderr: '' });
  });

  test('global options may stand before or behind the command', async () => {
    for (const args of [
      ['--api-url', 'http://127.0.0.1:9', 'whoami', '-o', 'json'],
      ['whoami', '--output', 'json', '--api-url', 'http://127.0.0.1:9'],
    ]) {
      expect((await cli.run(args)).stdout).toBe('{\n  "logged_in": false\n}\n');
    }
  });

  test('a reader of standard output that stops early is no error', () => {
    const script = `"${process.execPath}" "${SVC}" completion bash | head -n 1; echo "\${PIPESTATUS[0]}"`;
    const { stdout, stderr } = spawnSync('bash', ['-c', script], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH ?? '', HOME: cli.home },
    });
    expect(stdout).toBe('# bash completion for svc: source <(svc completion bash)\n0\n');
    expect(stderr).toBe('');
  });

  test('a reader of standard error may stop early too; the exit status is unchanged', () => {
    const statusOf = (args: string): string => {
      const script = `"${process.execPath}" "${SVC}" ${args} 2>&1 >/dev/null | true; echo "\${PIPESTATUS[0]}"`;
      return spawnSync('bash', ['-c', script], {
        encoding: 'utf8',
        env: { PATH: process.env.PATH ?? '', HOME: cli.home },
      }).stdout;
    };
    expect({ contextLs: statusOf('context ls'), contextUse: statusOf('context use nowhere') }).toEqual({
      contextLs: '0\n',
      contextUse: '1\n',
    });
  });

  test('output that cannot be written is an error with a reason', () => {
    const script = `"${process.execPath}" "${SVC}" completion bash > /dev/full; echo "$?"`;
    const { stdout, stderr } = spawnSync('bash', ['-c', script], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH ?? '', HOME: cli.home },
    });
    expect(stdout).toBe('1\n');
    expect(stderr).toMatch(/^error: the output cannot be written: ENOSPC.*\nCheck where the output goes\.\n$/);
  });

  test('bash completes commands, options and their words', async () => {
    const script = join(cli.home, 'svc.bash');
    writeFileSync(script, (await cli.run(['completion', 'bash'])).stdout);
    const complete = (...words: string[]): string[] => {
      const probe = `source "${script}"; COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _svc; echo "\${COMPREPLY[@]}"`;
      return spawnSync('bash', ['-c', probe], { encoding: 'utf8' })
        .stdout.trim()
        .split(' ')
        .filter((word) => word !== '');
    };
    expect(complete('svc', 'lo')).toEqual(['login', 'logout', 'logs', 'load']);
    expect(complete('svc', 'ops', 'p')).toEqual(['pause']);
    expect(complete('svc', '--context', 'prod', 'ops', 're')).toEqual(['resume']);
    expect(complete('svc', 'ops', 'ls', '--st')).toEqual(['--state']);
    expect(complete('svc', 'ops', 'ls', '--state', 'p')).toEqual(['pending', 'paused']);
    expect(complete('svc', 'login', '--sc')).toEqual(['--scope']);
    expect(complete('svc', 'completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']));
    expect(complete('svc', 'whoami', '--output', '')).toEqual(['table', 'json', 'yaml', 'wide', 'csv']);
    expect(complete('svc', 'topology', '')).toEqual(['overview', 'tree', 'stats']);
    expect(complete('svc', 'topology', '--li')).toEqual(['--lineage', '--limit']);
    expect(complete('svc', 'ops', 'ls', '--org', '')).toEqual([]);
    // Bash hands over what holds a `=` or a `:` in pieces.
    expect(complete('svc', '--api-url', 'http', ':', '//127.0.0.1', ':', '8080', 'ops', 'pa')).toEqual(['pause']);
    expect(complete('svc', '--output', '=', 'json', 'ops', 'pa')).toEqual(['pause']);
    expect(complete('svc', 'whoami', '--output', '=', 'j')).toEqual(['json']);
    expect(complete('svc', 'whoami', '--output', '=')).toEqual(['table', 'json', 'yaml', 'wide', 'csv']);
  });

  test.skipIf(spawnSync('fish', ['--version']).error !== undefined)(
    'fish completes the next word, and files only where files are read',
    async () => {
      const script = join(cli.home, 'svc.fish');
      writeFileSync(script, (await cli.run(['completion', 'fish'])).stdout);
      writeFileSync(join(cli.home, 'search.yaml'), '');
      const complete = (line: string): string[] =>
        spawnSync('fish', ['--no-config', '-c', 'source $argv[1]; complete -C $argv[2]', script, line], {
          encoding: 'utf8',
          cwd: cli.home,
        })
          .stdout.split('\n')
          .map((row) => row.split('\t')[0] ?? '')
          .filter((word) => word !== '');
      expect(complete('svc lo')).toEqual(['login', 'logout', 'logs', 'load']);
      expect(complete('svc --context prod ops p')).toEqual(['pause']);
      expect(complete('svc ops ls --state ')).toEqual(['completing', 'paused', 'pending', 'running', 'terminated']);
      expect(complete('svc whoami -o ')).toEqual(['json', 'table', 'yaml']);
      expect(complete('svc ops pause ')).toEqual([]);
      expect(complete('svc ops ls --org ')).toEqual([]);
      expect(complete('svc policy test sea')).toEqual(['search.yaml']);
      expect(complete('svc audit export --file sea')).toEqual(['search.yaml']);
    },
  );

  test('the shells complete the names of contexts', async () => {
    for (const name of ['prod', 'staging']) await cli.run(['context', 'add', name, 'https://svc.example.com']);
    writeFileSync(join(cli.home, 'svc'), `#!/bin/sh\nexec "${process.execPath}" "${SVC}" "$@"\n`, { mode: 0o755 });
    const env = { PATH: `${cli.home}:${process.env.PATH}`, HOME: cli.home };
    const inBash = (...words: string[]) =>
      spawnSync(
        'bash',
        [
          '-c',
          `source <(svc completion bash); COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _svc; echo "\${COMPREPLY[@]}"`,
        ],
        { encoding: 'utf8', env },
      ).stdout.trim();
    expect({
      contextUse: inBash('svc', 'context', 'use', ''),
      contextRm: inBash('svc', 'context', 'rm', 's'),
      opsLs: inBash('svc', 'ops', 'ls', '--context', 'p'),
    }).toEqual({ contextUse: 'prod staging', contextRm: 'staging', opsLs: 'prod' });
    expect(inBash('svc', 'context', 'use', '--de')).toBe('--debug');
    if (spawnSync('fish', ['--version']).error !== undefined) return;
    const inFish = (line: string) =>
      spawnSync('fish', ['--no-config', '-c', 'svc completion fish | source; complete -C $argv[1]', line], {
        encoding: 'utf8',
        env,
      })
        .stdout.trim()
        .split('\n')
        .map((row) => row.split('\t')[0]);
    expect({ contextUse: inFish('svc context use '), opsLs: inFish('svc ops ls --context p') }).toEqual({
      contextUse: ['prod', 'staging'],
      opsLs: ['prod'],
    });
  });

  test.skipIf(spawnSync('zsh', ['--version']).error !== undefined)('zsh loads its completions silently', async () => {
    const script = join(cli.home, '_svc');
    writeFileSync(script, (await cli.run(['completion', 'zsh'])).stdout);
    const { status, stdout, stderr } = spawnSync(
      'zsh',
      ['-f', '-c', `autoload -Uz compinit; compinit -D; source "${script}"; print $_comps[svc]`],
      { encoding: 'utf8', env: { PATH: process.env.PATH ?? '', HOME: cli.home } },
    );
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '_svc\n', stderr: '' });
  });

  test('completions for zsh and fish name every command behind the words before it', async () => {
    const [zsh, fish] = [(await cli.run(['completion', 'zsh'])).stdout, (await cli.run(['completion', 'fish'])).stdout];
    for (const words of COMMANDS.map(wordsOf)) {
      expect(zsh).toContain(`\n    '${words.join(' ')}') `);
      expect(fish).toContain(`'__svc_at ${words.slice(0, -1).join(' ')}' -a ${words.at(-1)} `);
    }
    for (const shell of ['tcsh', 'toString'])
      expect(await cli.run(['completion', shell])).toMatchObject({ status: 2, stdout: '' });
  });
});

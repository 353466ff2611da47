/**
 * `svc` in a home folder of its own: within the test, as the built command in a process, and in a pseudo-terminal where
 * it asks something.
 */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { spawn as spawnInTerminal } from '@lydell/node-pty';
import { runCommandLine } from '../../src/cli/run.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

export const SVC = join(PACKAGE_ROOT, 'dist', 'src', 'cli', 'main.js');

export type CliResult = { readonly status: number | null; readonly stdout: string; readonly stderr: string };

export type CliOptions = {
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input; nothing by default. */
  readonly input?: string;
  readonly cwd?: string;
};

export type TerminalOptions = {
  readonly env?: Readonly<Record<string, string>>;
  readonly columns?: number;
  readonly rows?: number;
  /** For bash, to which the command is `"$@"`. */
  readonly script?: string;
};

export type TerminalSession = {
  /** All that a person would have been sent so far. */
  shown(): string;
  /** Resolves when the text has been shown. */
  until(text: string | RegExp): Promise<void>;
  type(keys: string): void;
  readonly ended: Promise<number>;
};

export type CliHome = {
  readonly home: string;
  readonly folder: string;
  /**
   * Runs the sources within the process of the test, one command after the other: to start a process for each takes
   * thirty times as long.
   */
  run(args: readonly string[], options?: CliOptions): Promise<CliResult>;
  /** Starts the built command: for what depends on the process, such as how it ends or what others see of it. */
  start(args: readonly string[], options?: CliOptions): Promise<CliResult>;
  inTerminal(args: readonly string[], options?: TerminalOptions): TerminalSession;
  remove(): void;
};

export function createCliHome(): CliHome {
  const home = mkdtempSync(join(tmpdir(), 'svc-cli-'));
  const envOf = (env: Readonly<Record<string, string>> = {}) => ({ PATH: process.env.PATH ?? '', HOME: home, ...env });
  return {
    home,
    folder: join(home, '.svc'),
    run: (args, { env, ...options } = {}) => runHere(args, { env: envOf(env), ...options }),
    start: (args, { env, input = '', cwd } = {}) =>
      new Promise((resolve, reject) => {
        const child = spawn(process.execPath, [SVC, ...args], {
          env: envOf(env),
          ...(cwd === undefined ? {} : { cwd }),
        });
        let stdout = '';
        let stderr = '';
        child.stdout.setEncoding('utf8').on('data', (text: string) => {
          stdout += text;
        });
        child.stderr.setEncoding('utf8').on('data', (text: string) => {
          stderr += text;
        });
        child.once('error', reject);
        child.once('close', (status) => resolve({ status, stdout, stderr }));
        child.stdin.on('error', () => {}); // a command that asks nothing may end before it reads
        child.stdin.end(input);
      }),
    inTerminal: (args, { env, columns = 80, rows = 24, script = 'exec "$@"' } = {}) => {
      const child = spawnInTerminal('bash', ['-c', script, 'bash', process.execPath, SVC, ...args], {
        name: env?.TERM ?? 'xterm',
        cols: columns,
        rows,
        env: envOf(env),
      });
      let shown = '';
      const waiting = new Set<() => void>();
      child.onData((text) => {
        shown += text;
        for (const look of waiting) look();
      });
      return {
        pid: child.pid,
        shown: () => shown,
        until: (text) =>
          new Promise((resolve, reject) => {
            const timer = setTimeout(() => {
              waiting.delete(look);
              reject(new Error(`never shown: ${text}; but:\n${shown}`));
            }, 30_000);
            const look = (): void => {
              if (!(typeof text === 'string' ? shown.includes(text) : text.test(shown))) return;
              waiting.delete(look);
              clearTimeout(timer);
              resolve();
            };
            waiting.add(look);
            look();
          }),
        type: (keys) => child.write(keys),
        ended: new Promise((resolve) => child.onExit(({ exitCode }) => resolve(exitCode))),
      };
    },
    remove: () => rmSync(home, { recursive: true, force: true }),
  };
}

let last: Promise<unknown> = Promise.resolve();

function runHere(args: readonly string[], options: CliOptions): Promise<CliResult> {
  const run = last.then(() => runAlone(args, options));
  last = run.catch(() => undefined);
  return run;
}

/** The command sees its own parts of the process until it has ended. */
async function runAlone(args: readonly string[], { env = {}, input = '', cwd }: CliOptions): Promise<CliResult> {
  const [stdout, stderr] = [new Collected(1), new Collected(2)];
  const before = { env: process.env, argv: process.argv, cwd: process.cwd() };
  const streams = (['stdin', 'stdout', 'stderr'] as const).map(
    (name) => [name, Object.getOwnPropertyDescriptor(process, name)!] as const,
  );
  Object.assign(process, { argv: [process.execPath, SVC, ...args] });
  const hidden = Object.entries(before.env).filter(([name]) => !(name in env));
  const changed = Object.keys(env).map((name) => [name, process.env[name]] as const);
  for (const [name] of hidden) delete process.env[name];
  Object.assign(process.env, env);
  for (const [name, value] of Object.entries({ stdin: Readable.from([Buffer.from(input)]), stdout, stderr }))
    Object.defineProperty(process, name, { value, configurable: true, enumerable: true });
  if (cwd !== undefined) process.chdir(cwd);
  try {
    const status = (await runCommandLine(args, process.env)) ?? 0;
    return { status, stdout: stdout.text, stderr: stderr.text };
  } finally {
    process.chdir(before.cwd);
    for (const [name, descriptor] of streams) Object.defineProperty(process, name, descriptor);
    process.argv = before.argv;
    for (const [name, value] of [...hidden, ...changed])
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  }
}

class Collected extends Writable {
  readonly fd: number;
  readonly #chunks: Buffer[] = [];

  constructor(fd: number) {
    super();
    this.fd = fd;
  }

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.#chunks.push(chunk);
    done();
  }

  get text(): string {
    return Buffer.concat(this.#chunks).toString();
  }
}

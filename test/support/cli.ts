/**
 * The built `svc` as a child process, in a home folder of its own, and in a pseudo-terminal where it asks something.
 */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn as spawnInTerminal } from '@lydell/node-pty';
import { PACKAGE_ROOT } from '../../src/app/package-files.ts';

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
  run(args: readonly string[], options?: CliOptions): Promise<CliResult>;
  inTerminal(args: readonly string[], options?: TerminalOptions): TerminalSession;
  remove(): void;
};

export function createCliHome(): CliHome {
  const home = mkdtempSync(join(tmpdir(), 'svc-cli-'));
  const envOf = (env: Readonly<Record<string, string>> = {}) => ({ PATH: process.env.PATH ?? '', HOME: home, ...env });
  return {
    home,
    folder: join(home, '.svc'),
    run: (args, { env, input = '', cwd } = {}) =>
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

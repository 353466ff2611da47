/** An MCP server as a child process, without the credentials of this one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf, messageOf } from '../core/base/text.ts';
import { FROM_UPSTREAM } from './json-bounds.ts';
import { errorOf, RPC_CODE } from './json-rpc.ts';
import { MessageWriter, noiseAnswer, readMessages } from './stdio.ts';
import { type Link, LinkError, type LinkEvents } from './upstream.ts';

export type ChildOptions = {
  readonly command: readonly string[];
  /** All of its environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Resolves when the agent has read enough for more; undefined when it has. */
  readonly ready: () => Promise<void> | undefined;
  readonly log: (line: string) => void;
};

/** How long a server may take to end by itself, and then after each signal. */
const GRACE_MS = 2_000;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The environment of a guard, which its client gives to one server. A server does not need the gateway's address or the
 * agent's credential.
 */
export const wholeEnvironment = (env: Environment): Readonly<Record<string, string>> =>
  entriesOf(env, (name) => !/^SVC_/i.test(name));

/** Variables that programs need to run at all. None of them is a secret. */
const BASIC = /^(PATH|HOME|LANG|LANGUAGE|LC_\w+|TZ|TMPDIR|SHELL|USER|LOGNAME|TERM)$/;
const BASIC_ON_WINDOWS =
  /^(PATH|PATHEXT|SYSTEMROOT|SYSTEMDRIVE|WINDIR|COMSPEC|TEMP|TMP|TZ|USERNAME|USERPROFILE|HOMEDRIVE|HOMEPATH|APPDATA|LOCALAPPDATA|PROGRAMDATA|PROGRAMFILES(\(X86\))?|NUMBER_OF_PROCESSORS|PROCESSOR_ARCHITECTURE|OS)$/i;

/** Returns the part of the environment for a server of a proxy: the whole holds the secrets of all the others. */
export const basicEnvironment = (
  env: Environment,
  platform: NodeJS.Platform = process.platform,
): Readonly<Record<string, string>> => {
  const basic = platform === 'win32' ? BASIC_ON_WINDOWS : BASIC;
  return entriesOf(env, (name) => basic.test(name));
};

const entriesOf = (env: Environment, isKept: (name: string) => boolean): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined && isKept(entry[0])),
  );

export const nameOfCommand = (command: readonly string[]): string =>
  basename(command[0] ?? '')
    .replace(/\.(exe|cmd|[cm]?js|py|sh)$/i, '')
    .replace(/[^A-Za-z0-9_.-]/g, '-')
    .replace(/_{2,}/g, '_')
    .slice(0, 64) || 'server';

export function openChild({ command, env, ready, log }: ChildOptions, events: LinkEvents): Link {
  const [file = '', ...args] = command;
  const child = spawn(file, args, {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
    windowsHide: true,
  });
  const name = nameOfCommand(command);
  const writer = new MessageWriter(child.stdin);
  const gone = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      events.onClosed(
        `\`${file}\` cannot be started: ${codeOf(error) === 'ENOENT' ? 'no such command' : messageOf(error)}`,
      );
      resolve();
    });
    // Not at `exit`: what it said last may still be in the pipe then.
    child.once('close', (status, signal) => {
      events.onClosed(signal === null ? `it exited with status ${status}` : `it was ended by ${signal}`);
      resolve();
    });
  });
  readMessages(child.stdout, {
    onMessage: events.onMessage,
    onNoise: (noise) => {
      const { problem, request, answered } = noise;
      log(`${name} wrote ${problem} to its standard output; it is not passed on`);
      // Nobody waits for what will not come.
      if (request !== undefined) void writer.send(noiseAnswer(noise)).catch(() => {});
      if (answered !== undefined)
        events.onMessage(errorOf(answered, RPC_CODE.internal, `the MCP server ${name} answered with ${problem}`));
    },
    bounds: FROM_UPSTREAM,
    ready,
  }).catch((error: unknown) => log(`${name} cannot be read: ${messageOf(error)}`));
  return {
    send: async (message) => {
      if (child.stdin.destroyed || child.exitCode !== null) throw new LinkError('it has ended');
      await writer.send(message).catch((error: unknown) => {
        throw new LinkError(`its standard input is closed (${codeOf(error) ?? 'unknown'})`);
      });
    },
    negotiated: () => {},
    close: () => ended(child, gone),
  };
}

/** Its input ends first, which servers take for a request to end; then it is asked, then made to. */
async function ended(child: ChildProcess, gone: Promise<void>): Promise<void> {
  child.stdin?.end();
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    const timer = new AbortController();
    const late = sleep(GRACE_MS, 'late', { signal: timer.signal }).catch(() => 'over');
    const first = await Promise.race([gone.then(() => 'gone'), late]);
    timer.abort();
    if (first === 'gone') return;
    child.kill(signal);
  }
  await gone;
}

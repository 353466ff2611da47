/** `svc hooks install|uninstall|doctor|run`: coding agents that ask the gateway before they use a tool. */
import { execFile, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { resolve } from 'node:path';
import { parseAgentKey } from '../../core/base/ids.ts';
import { messageOf } from '../../core/base/text.ts';
import { ask, readEvent } from '../../hooks/ask.ts';
import { ownHooks, settingsIn, UnusableFile } from '../../hooks/documents.ts';
import { install as installFile, readText, uninstall as uninstallFile } from '../../hooks/files.ts';
import { CODING_AGENTS, type CodingAgent, type Fields, type Installation, quoted } from '../../hooks/tools.ts';
import { CliError, EXIT, type ExitStatus, usageError } from '../errors.ts';
import { fileFault } from '../files/private-folder.ts';
import type { Invocation, Run } from '../invocation.ts';
import { parseApiUrl } from '../remote/target.ts';
import { note } from '../terminal/output.ts';

const DEFAULT_URL = 'http://127.0.0.1:8080';
const DEFAULT_TIMEOUT_SECS = 600;

export const install: Run = async (invocation) => {
  const agent = agentOf(invocation);
  const path = fileOf(agent, invocation);
  const changed = await onFile(path, () => installFile(agent, path, installationOf(invocation)));
  note(`${changed === 'changed' ? 'Installed' : 'Already installed'}: ${agent.title} asks the gateway, by ${path}.`);
  for (const line of agent.notes) note(line);
  if (!invocation.env.SVC_AGENT_TOKEN)
    note(`Set SVC_AGENT_TOKEN where ${agent.title} runs, to the token that \`svc agents register\` has shown.`);
};

export const uninstall: Run = async (invocation) => {
  const agent = agentOf(invocation);
  const path = fileOf(agent, invocation);
  const changed = await onFile(path, () => uninstallFile(agent, path));
  note(changed === 'changed' ? `Removed the hooks from ${path}.` : `${path} has no hooks of ours.`);
};

/** Proves that a tool does not run while the gateway is away: the hook asks a port where nobody listens. */
export const doctor: Run = async (invocation) => {
  const agent = agentOf(invocation);
  const path = fileOf(agent, invocation);
  const problems = await onFile(path, () => problemsOf(agent, path, invocation));
  for (const problem of problems) note(`problem: ${problem}`);
  if (problems.length > 0) {
    note(`Run \`svc hooks install ${agent.name}${invocation.options.isSet('managed') ? ' --managed' : ''}\`.`);
    return EXIT.failed;
  }
  note(`${agent.title} asks the gateway, by ${path}, and runs no tool while it is away.`);
  return EXIT.done;
};

/**
 * What the installed command does. Exit status 0 means that the answer is on standard output; 2 blocks the tool, with
 * the reason on standard error, unless the tool has to be told in an answer.
 */
export const run: Run = async (invocation) => {
  try {
    const answer = await askGateway(invocation);
    process.stdout.write(answer);
    return EXIT.done;
  } catch (error) {
    const reason = `svc hooks: blocked, because ${messageOf(error)}`;
    note(reason);
    const denial = CODING_AGENTS.find(({ name }) => name === invocation.args[0])?.denial;
    if (denial === undefined) return EXIT.usage;
    process.stdout.write(denial(reason));
    return EXIT.done;
  }
};

async function askGateway({ args, options, env }: Invocation): Promise<string> {
  const [name = ''] = args;
  if (!CODING_AGENTS.some((agent) => agent.name === name)) throw new Error(`there are no hooks of ${name}`);
  const token = env.SVC_AGENT_TOKEN;
  if (token === undefined || !/^[\x21-\x7e]+$/.test(token)) throw new Error('SVC_AGENT_TOKEN is not set to a token');
  const timeoutSecs = options.count('timeout', '--timeout', 1) ?? DEFAULT_TIMEOUT_SECS;
  const agent = options.text('agent') ?? env.SVC_AGENT;
  return ask({
    url: `${urlOf(options.text('url'), env)}/api/v1/hooks/${name}`,
    headers: {
      authorization: `Bearer ${token}`,
      'x-svc-hook-timeout': String(timeoutSecs),
      ...(agent === undefined || agent === '' ? {} : { 'x-svc-agent': agent }),
    },
    event: await readEvent(process.stdin),
    // The gateway answers before the agent gives up, and so does this.
    timeoutMs: timeoutSecs * 1000 - Math.min(1000, timeoutSecs * 100),
  });
}

function agentOf({ args: [name = ''] }: Invocation): CodingAgent {
  const agent = CODING_AGENTS.find((one) => one.name === name);
  const known = CODING_AGENTS.map((one) => one.name).join(', ');
  if (agent === undefined) throw usageError(`there are no hooks of ${name}`, `Choose one of ${known}.`);
  return agent;
}

function fileOf(agent: CodingAgent, { options, env }: Invocation): string {
  const places = { home: homedir(), env, platform: process.platform };
  if (!options.isSet('managed')) return agent.userFile(places);
  const path = agent.managedFile(places);
  if (path === undefined) throw usageError(`${agent.title} has no managed settings file`, 'Omit --managed.');
  return path;
}

function installationOf({ options, globals, env }: Invocation): Installation {
  const agent = options.text('agent') ?? env.SVC_AGENT;
  if (agent !== undefined && agent !== '' && parseAgentKey(agent) === undefined)
    throw usageError('--agent must be <org>/<team>/<agent>');
  return {
    url: urlOf(options.text('url') ?? globals.apiUrl, env),
    agent: agent === '' ? undefined : agent,
    // Whole paths: what PATH finds where the agent runs may be another program, or none.
    svc: `${quoted(process.execPath)} ${quoted(resolve(process.argv[1] ?? 'svc'))}`,
  };
}

const urlOf = (given: string | undefined, env: NodeJS.ProcessEnv): string =>
  parseApiUrl(given || env.SVC_GATEWAY_URL || env.SVC_CLI_API_URL || DEFAULT_URL).replace(/\/+$/, '');

async function onFile<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UnusableFile)
      throw new CliError(`${path} cannot be used: ${error.message}`, 'It was not changed. Correct it, and try again.');
    const fault = fileFault(error);
    if (fault === undefined) throw error;
    throw new CliError(`${path} cannot be changed: ${fault}`, 'Check the path and its permissions.', { cause: error });
  }
}

async function problemsOf(agent: CodingAgent, path: string, invocation: Invocation): Promise<readonly string[]> {
  const text = await readText(path);
  if (text === undefined) return [`${path} does not exist`];
  const own = ownHooks(agent, text);
  const expected = agent.hooks(installationOf(invocation));
  const missing = Object.keys(expected).filter((event) => own[event] === undefined);
  if (missing.length > 0) return missing.map((event) => `${path} has no hook of ours for ${event}`);
  const settings = settingsIn(agent, text);
  const off = switchedOff(settings);
  if (off !== undefined) return [`${path} turns hooks off: ${off}`];
  const port = await deadPort();
  const gates = Object.entries(own).filter(([event]) => /^(pre|before)/i.test(event));
  const found = await Promise.all(
    gates.flatMap(([event, groups]) =>
      groups.flatMap(hooksIn).map(async (hook) => {
        const problem = await whyItRuns(agent, hook, port, invocation.env);
        return problem === undefined ? [] : [`${event}: ${problem}`];
      }),
    ),
  );
  return found.flat();
}

function switchedOff({ disableAllHooks, features, hooks }: Fields): string | undefined {
  if (disableAllHooks === true) return 'disableAllHooks';
  const { hooks: feature, codex_hooks: older } = fieldsOf(features);
  if (feature === false || older === false) return 'features.hooks';
  return fieldsOf(hooks).enabled === false ? 'hooks.enabled' : undefined;
}

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});

/** The hooks of a group, or the hook that stands alone. */
const hooksIn = (group: unknown): readonly Fields[] => {
  const { hooks } = fieldsOf(group);
  return Array.isArray(hooks) ? hooks.map(fieldsOf) : [fieldsOf(group)];
};

/** Why a tool would run although the gateway is away; undefined where it is blocked. */
async function whyItRuns(
  agent: CodingAgent,
  hook: Fields,
  port: number,
  env: NodeJS.ProcessEnv,
): Promise<string | undefined> {
  if (hook.type === 'http') {
    if (hook.onFailure !== 'block') return 'without onFailure: "block" the tool runs when the gateway is away';
    return tooOld(agent, env);
  }
  if (agent.name === 'cursor' && hook.failClosed !== true)
    return 'without failClosed the tool runs when the hook fails';
  const command = hook.command ?? hook.bash;
  if (typeof command !== 'string') return 'the hook has no command';
  const dead = command.replace(/--url (?:'(?:[^']|'\\'')*'|\S+)/, `--url http://127.0.0.1:${port}`);
  if (dead === command) return 'its command does not say where the gateway is';
  const { status, output } = await runShell(dead, JSON.stringify(agent.sample), env);
  const isDenied = /"(permissionDecision|permission|decision)"\s*:\s*"deny"/.test(output);
  return status === 2 || (status === 0 && isDenied)
    ? undefined
    : `its command ends with ${status} when the gateway is away, and the tool runs`;
}

/** Releases of Claude Code before this one do not know `onFailure`. Where none is installed here, nothing is known. */
const FIRST_WITH_ON_FAILURE = [2, 1, 295];

async function tooOld(agent: CodingAgent, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  const text = await new Promise<string>((done) => {
    execFile('claude', ['--version'], { env, timeout: 10_000 }, (error, stdout) => done(error === null ? stdout : ''));
  });
  const version = /(\d+)\.(\d+)\.(\d+)/.exec(text)?.slice(1).map(Number);
  if (version === undefined) return undefined;
  const at = FIRST_WITH_ON_FAILURE.findIndex((part, n) => part !== version[n]);
  const isOlder = at !== -1 && version[at]! < FIRST_WITH_ON_FAILURE[at]!;
  return isOlder ? `${agent.title} ${version.join('.')} is too old: ${agent.notes[0]}` : undefined;
}

/** A port where nobody listens: one that was free a moment ago. */
const deadPort = (): Promise<number> =>
  new Promise((done, fail) => {
    const server = createServer().once('error', fail);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => done(typeof address === 'object' && address !== null ? address.port : 1));
    });
  });

const PROBE_MS = 30_000;

function runShell(
  command: string,
  input: string,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly status: ExitStatus | number | string; readonly output: string }> {
  return new Promise((done, fail) => {
    // With a token, so that the answer is that of the port and not that of a missing one.
    const child = spawn(command, {
      shell: true,
      env: { ...env, SVC_AGENT_TOKEN: 'svc-hooks-doctor' },
      stdio: ['pipe', 'pipe', 'ignore'],
      timeout: PROBE_MS,
    });
    let output = '';
    child.stdout.on('data', (piece: Buffer) => {
      output += piece.toString();
    });
    child.stdin.on('error', () => undefined); // a command that is gone does not read
    child.once('error', fail);
    child.once('close', (code, signal) => done({ status: code ?? signal ?? 'nothing', output }));
    child.stdin.end(input);
  });
}

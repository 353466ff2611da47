/** `svc hooks install|uninstall|run`: coding agents that ask the gateway before they use a tool. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { DEFAULT_URL } from '../../client/environment.ts';
import { proxyFor } from '../../client/proxy-choice.ts';
import { ask, readEvent } from '../../coding-agents/ask.ts';
import { UnusableFile } from '../../coding-agents/documents.ts';
import { install as installFile, uninstall as uninstallFile } from '../../coding-agents/files.ts';
import { CODING_AGENTS, type CodingAgent, type Installation, quoted } from '../../coding-agents/tools.ts';
import { parseAgentKey } from '../../core/base/ids.ts';
import { messageOf } from '../../core/base/text.ts';
import { PACKAGE_ROOT } from '../../system/package-files.ts';
import { CliError, EXIT, usageError } from '../errors.ts';
import { fileFault } from '../files/private-folder.ts';
import type { Invocation, Run } from '../invocation.ts';
import { parseApiUrl } from '../remote/target.ts';
import { note } from '../terminal/output.ts';

const DEFAULT_TIMEOUT_SECS = 600;

export const install: Run = async (invocation) => {
  const agent = agentOf(invocation);
  const path = fileOf(agent, invocation);
  const changed = await onFile(path, () => installFile(agent, path, installationOf(invocation)));
  note(`${changed === 'changed' ? 'Installed' : 'Already installed'}: ${agent.title} asks the gateway, by ${path}.`);
  for (const line of agent.notes) note(line);
  note(`A policy to start with: ${join(PACKAGE_ROOT, 'examples', 'policies', `${agent.name}.yaml`)}`);
  if (!invocation.env.SVC_AGENT_TOKEN)
    note(`Set SVC_AGENT_TOKEN where ${agent.title} runs, to the token that \`svc agents register\` has shown.`);
};

export const uninstall: Run = async (invocation) => {
  const agent = agentOf(invocation);
  const path = fileOf(agent, invocation);
  const changed = await onFile(path, () => uninstallFile(agent, path));
  note(changed === 'changed' ? `Removed the hooks from ${path}.` : `${path} has no hooks of ours.`);
};

/**
 * Runs the installed command. Exit status 0 means that the answer is on standard output; 2 blocks the tool, with the
 * reason on standard error, unless the tool has to be told in an answer.
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
  const apiUrl = urlOf(options.text('url'), env);
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'x-svc-hook-timeout': String(timeoutSecs),
    ...(agent === undefined || agent === '' ? {} : { 'x-svc-agent': agent }),
  };
  const content = await readEvent(process.stdin);
  // The gateway answers before the agent gives up, and so does this.
  const withinMs = timeoutSecs * 1000 - Math.min(1000, timeoutSecs * 100);
  const call = { method: 'POST', path: `/api/v1/hooks/${name}`, headers, content } as const;
  return ask({ apiUrl, proxy: proxyFor(apiUrl, env) }, call, withinMs);
}

export function agentOf({ args: [name = ''] }: Invocation): CodingAgent {
  const agent = CODING_AGENTS.find((one) => one.name === name);
  const known = CODING_AGENTS.map((one) => one.name).join(', ');
  if (agent === undefined) throw usageError(`there are no hooks of ${name}`, `Choose one of ${known}.`);
  return agent;
}

export function fileOf(agent: CodingAgent, { options, env }: Invocation): string {
  const places = { home: homedir(), env, platform: process.platform };
  if (!options.isSet('managed')) return agent.userFile(places);
  const path = agent.managedFile(places);
  if (path === undefined) throw usageError(`${agent.title} has no managed settings file`, 'Omit --managed.');
  return path;
}

export function installationOf({ options, globals, env }: Invocation): Installation {
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
  parseApiUrl(given || env.SVC_GATEWAY_URL || env.SVC_CLI_API_URL || DEFAULT_URL);

export async function onFile<T>(path: string, work: () => Promise<T>): Promise<T> {
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

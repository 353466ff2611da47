/** `svc hooks doctor`: whether a coding agent asks the gateway before it uses a tool, and uses none without it. */
import { execFile, spawn } from 'node:child_process';
import { connect } from 'node:http2';
import { createServer } from 'node:net';
import { GatewayCalls } from '../../client/calls.ts';
import { proxyFor } from '../../client/proxy-choice.ts';
import { ownHooks, settingsIn } from '../../coding-agents/documents.ts';
import { readText } from '../../coding-agents/files.ts';
import type { CodingAgent, Fields } from '../../coding-agents/tools.ts';
import { agentKeyOf, parseAgentKey } from '../../core/base/ids.ts';
import { isMapping } from '../../core/base/mapping.ts';
import { CliError, EXIT, type ExitStatus } from '../errors.ts';
import type { Invocation, Run } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { note } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { agentOf, fileOf, installationOf, onFile } from './hooks.ts';

/** The settings of an agent, and the hooks of ours in them. */
type Installed = {
  readonly path: string;
  /** Undefined if there is no such file. */
  readonly text: string | undefined;
  readonly own: Readonly<Record<string, readonly unknown[]>>;
};

/** How the installed hooks ask. */
type Asking = {
  /** The address of the gateway. */
  readonly url: string;
  /** For which agent, where the settings say so. */
  readonly agent: string | undefined;
};

export const doctor: Run = async (invocation) => {
  const agent = agentOf(invocation);
  const path = fileOf(agent, invocation);
  const { problems, asking } = await onFile(path, async () => {
    const text = await readText(path);
    const installed = { path, text, own: text === undefined ? {} : ownHooks(agent, text) };
    return { problems: await problemsOf(agent, installed, invocation), asking: askingOf(agent, installed) };
  });
  if (problems.length > 0) {
    for (const problem of problems) note(`problem: ${problem}`);
    note(`Run \`svc hooks install ${agent.name}${invocation.options.isSet('managed') ? ' --managed' : ''}\`.`);
    return EXIT.failed;
  }
  const answer = await askGateway(agent, asking, invocation.env);
  if (typeof answer === 'string') {
    note(`problem: ${answer}`);
    return EXIT.failed;
  }
  note(
    `${agent.title} asks the gateway at ${asking.url} as ${answer.agent}, by ${path}, and runs no tool while it is away.`,
  );
  note(await lastAsked(invocation, asking.url, answer.agent));
  return EXIT.done;
};

const HOOK_EVENTS = 'ActionAllowed,ActionDenied,BudgetLimitExceeded,ApprovalRequested';
/** The newest entries may be our own dry runs. */
const LOOKED_AT = 50;

/** Which hook has fired last, where the credential of `svc` may read the log of this gateway. */
async function lastAsked(invocation: Invocation, url: string, name: string): Promise<string> {
  const agent = parseAgentKey(name);
  try {
    const api = await Api.of(invocation);
    const isThere = new URL(api.target.apiUrl).origin === new URL(url).origin;
    if (isThere && agent !== undefined && (await api.bearer()) !== undefined) {
      const query = {
        ...(agent.orgId !== '' && { org_id: agent.orgId }),
        ...{ team_id: agent.teamId, agent_id: agent.agentId, event_type: HOOK_EVENTS },
      };
      const { rows } = await api.list('/api/v1/logs', 'entries', { query, limit: LOOKED_AT });
      const last = rows.find(({ payload }) => isMapping(payload) && payload.dry_run !== true);
      if (last === undefined) return 'No hook of it has fired yet, as far back as was looked: have it use a tool.';
      const { action, resource } = fieldsOf(last.payload);
      const answer = last.event_type === 'ApprovalRequested' ? 'pending' : last.decision;
      return printable(
        `Its hook fired last at ${String(last.timestamp)}: ${[action, resource].join(' ').trim()}, ${String(answer)} (entry ${String(last.id)}).`,
      );
    }
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
  }
  return `To see which hook fired last, log in: svc login --api-url ${url}`;
}

/** From the first hook of ours: all are installed at once. */
function askingOf(agent: CodingAgent, { own }: Installed): Asking {
  const [hook = {}] = Object.values(own).flat().flatMap(hooksIn);
  if (typeof hook.url === 'string') {
    const named = fieldsOf(hook.headers)['x-svc-agent'];
    const url = hook.url.replace(`/api/v1/hooks/${agent.name}`, '');
    return { url, agent: typeof named === 'string' ? named : undefined };
  }
  const command = String(hook.command ?? hook.bash ?? '');
  return { url: optionIn(command, 'url') ?? '', agent: optionIn(command, 'agent') };
}

const OPTION = `('(?:[^']|'\\\\'')*'|\\S+)`;

/** The value of an option in a command line, without the quotes for a shell. */
function optionIn(command: string, name: string): string | undefined {
  const value = new RegExp(`--${name} ${OPTION}`).exec(command)?.[1];
  return value?.startsWith("'") === true ? value.slice(1, -1).replaceAll("'\\''", "'") : value;
}

/** Asks by a dry run, as the hooks would. Returns for which agent, or what is wrong and what to do about it. */
async function askGateway(
  coding: CodingAgent,
  { url, agent: named }: Asking,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly agent: string } | string> {
  const { SVC_AGENT_TOKEN: token = '', SVC_AGENT } = env;
  if (token === '')
    return `SVC_AGENT_TOKEN is not set here: set it where ${coding.title} runs, to the token that \`svc agents register\` has shown`;
  if (!/^[\x21-\x7e]+$/.test(token))
    return 'SVC_AGENT_TOKEN is not a token: it has white space or other characters than ASCII';
  const claimed = named ?? (coding.name === 'claude-code' ? undefined : SVC_AGENT || undefined);
  const calls = new GatewayCalls({ apiUrl: url, proxy: proxyFor(url, env) });
  try {
    const self = await calls.get('api/v1/agents/self', { bearer: token });
    if (self.kind === 'unreachable')
      return (await isGrpc(url)) ? grpcPort(url) : `no gateway answers there: ${self.reason}`;
    if (self.kind === 'refused' && self.code === 'unauthenticated')
      return `the gateway at ${url} does not know the token in SVC_AGENT_TOKEN; \`svc agents register\` shows a new one`;
    if (self.kind === 'refused' && self.code !== 'not_found')
      return `the gateway at ${url} refuses the credential in SVC_AGENT_TOKEN: ${self.reason}`;
    const owner = self.kind === 'answer' ? ownerIn(self.body.agent) : undefined;
    if (self.kind === 'answer' && owner === undefined)
      return `${url} answers, but not as a gateway does; check the address`;
    if (owner !== undefined && claimed !== undefined && owner !== claimed)
      return `the token in SVC_AGENT_TOKEN is that of ${owner}, and the hooks ask as ${claimed}; install them with --agent ${owner}`;
    const agent = parseAgentKey(owner ?? claimed ?? '');
    if (agent === undefined)
      return 'SVC_AGENT_TOKEN is an API key, which speaks for no agent of its own; install the hooks with --agent <org>/<team>/<agent>';
    return (await dryRun(calls, { agent, token, isKey: owner === undefined })) ?? { agent: agentKeyOf(agent) };
  } finally {
    calls.close();
  }
}

type Speaker = {
  readonly agent: NonNullable<ReturnType<typeof parseAgentKey>>;
  readonly token: string;
  readonly isKey: boolean;
};

/** Why the agent may ask nothing. Whether a rule allows it does not matter: a rule was asked. */
async function dryRun(calls: GatewayCalls, { agent, token, isKey }: Speaker): Promise<string | undefined> {
  const request = {
    agent,
    traceId: 'svc-hooks-doctor',
    spanId: 'dry-run',
    action: 'tool.call',
    resource: 'svc-hooks-doctor',
    dryRun: true,
    ...(isKey ? {} : { credentialToken: token }),
  };
  const reply = await calls.post('PolicyService/CheckAction', request, isKey ? { bearer: token } : {});
  if (reply.kind !== 'answer') return `the gateway does not take a check for ${agentKeyOf(agent)}: ${reply.reason}`;
  return reply.body.cause === 'DECISION_CAUSE_CREDENTIAL'
    ? `the gateway does not take a check for ${agentKeyOf(agent)}: ${String(reply.body.reason)}`
    : undefined;
}

function ownerIn(value: unknown): string | undefined {
  if (!isMapping(value)) return undefined;
  const { org_id: orgId, team_id: teamId, agent_id: agentId } = value;
  return typeof orgId === 'string' && typeof teamId === 'string' && typeof agentId === 'string'
    ? agentKeyOf({ orgId, teamId, agentId })
    : undefined;
}

const grpcPort = (url: string): string =>
  `${url} speaks HTTP/2 alone, as the gateway's gRPC port does; install the hooks with the address of its HTTP port (SVC_HTTP_ADDR)`;

const GRPC_MS = 2_000;

/** Whether it greets in HTTP/2, as a server does that speaks nothing else. */
const isGrpc = (url: string): Promise<boolean> =>
  new Promise((done) => {
    const session = connect(url);
    const end = (is: boolean): void => {
      clearTimeout(timer);
      session.destroy();
      done(is);
    };
    const timer = setTimeout(() => end(false), GRPC_MS);
    session.once('remoteSettings', () => end(true));
    session.once('error', () => end(false));
    session.once('close', () => end(false));
  });

/** Lists problems with the settings that installing again would repair. */
async function problemsOf(
  agent: CodingAgent,
  { path, text, own }: Installed,
  invocation: Invocation,
): Promise<readonly string[]> {
  if (text === undefined) return [`${path} does not exist`];
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

const fieldsOf = (value: unknown): Fields => (isMapping(value) ? value : {});

/** The hooks of a group, or the only hook. */
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
  if (dead === command) return 'its command lacks the address of the gateway';
  const { status, output } = await runShell(dead, JSON.stringify(agent.sample), env);
  const isDenied = /"(permissionDecision|permission|decision)"\s*:\s*"deny"/.test(output);
  return status === 2 || (status === 0 && isDenied)
    ? undefined
    : `its command ends with ${status} when the gateway is away, and the tool runs`;
}

/**
 * Releases of Claude Code before this one do not know `onFailure`. If none is installed here, its version is unknown.
 */
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

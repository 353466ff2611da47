// Writes down which tools the coding agents offer to their models, and the fields of each: npm run agents:tools
//
// Installs the newest releases in a folder outside of the project, starts each against a model that takes what it is
// sent and refuses, and reads what the packages declare beside it. Its output is committed: the tables of hooks are
// tested against it, so a new tool or field fails a test. It takes a minute, 1 GB of disk and Linux on x64.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const TARGET = new URL('../test/doors/coding-agents/agent-tools', import.meta.url);
const RUN_MS = 30_000;
const SCRIPTED = 'scripted';

const root = mkdtempSync(join(realpathSync(tmpdir()), 'agent-tools-'));
const modules = join(root, 'node_modules');
/** Bodies that an agent sent to its model, by the name of the run. */
const sent = new Map();

const server = createServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const run = request.url.split('/')[1];
    sent.set(run, [...(sent.get(run) ?? []), Buffer.concat(pieces).toString()]);
    const refusal = { error: { message: 'this model answers nothing', type: 'invalid_request_error' } };
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(refusal));
  });
});

/** Names of tools and their fields, of one body in the words of any of the four APIs. */
function toolsIn(body) {
  const offered = [...(body.tools ?? []), ...(body.input ?? []).flatMap((item) => item.tools ?? [])];
  return offered.flatMap(expanded).map((tool) => {
    const own = tool.function ?? tool.custom ?? tool;
    const schema = own.input_schema ?? own.parameters ?? own.parametersJsonSchema ?? {};
    return [own.name ?? own.type, Object.keys(schema.properties ?? {})];
  });
}

const expanded = (tool) =>
  tool.functionDeclarations ?? (tool.type === 'namespace' ? tool.tools.flatMap(expanded) : [tool]);

/** Runs an agent until it gives up, and returns what it offered. */
async function offered(run, command, args, env, settings) {
  const home = join(root, run);
  mkdirSync(join(home, 'work'), { recursive: true });
  for (const [file, value] of Object.entries(settings ?? {})) {
    mkdirSync(join(home, file, '..'), { recursive: true });
    writeFileSync(join(home, file), JSON.stringify(value));
  }
  const child = spawn(command, args, {
    cwd: join(home, 'work'),
    env: { PATH: process.env.PATH, HOME: home, ...env },
    stdio: 'ignore',
    timeout: RUN_MS,
  });
  await new Promise((done) => child.once('close', done));
  const tools = (sent.get(run) ?? []).flatMap((text) => (text.startsWith('{') ? toolsIn(JSON.parse(text)) : []));
  if (tools.length === 0)
    throw new Error(`${run} offered no tool: it may need other settings than those in this script`);
  return tools;
}

const urlOf = (run) => `http://127.0.0.1:${server.address().port}/${run}`;

async function claudeCode() {
  const binary = join(modules, '@anthropic-ai/claude-code-linux-x64/claude');
  const tools = [];
  for (const [run, more] of [
    ['claude', {}],
    [
      'claude-all',
      {
        ENABLE_TOOL_SEARCH: 'false',
        CLAUDE_CODE_ENABLE_TASKS: '1',
        CLAUDE_CODE_ENABLE_TODO_TOOLS: '1',
        CLAUDE_CODE_USE_POWERSHELL_TOOL: '1',
        CLAUDE_CODE_ENABLE_REFRESH_MCP_TOOLS: '1',
      },
    ],
  ]) {
    const env = {
      IS_SANDBOX: '1',
      ANTHROPIC_API_KEY: 'none',
      ANTHROPIC_BASE_URL: urlOf(run),
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      ...more,
    };
    tools.push(...(await offered(run, binary, ['-p', 'go'], env)));
  }
  // The types that its package publishes name what it offers only to some of its users, too.
  const types = readFileSync(join(modules, '@anthropic-ai/claude-code/sdk-tools.d.ts'), 'utf8');
  const renamed = {
    FileEdit: 'Edit',
    FileRead: 'Read',
    FileWrite: 'Write',
    ListMcpResources: 'ListMcpResourcesTool',
    ReadMcpResource: 'ReadMcpResourceTool',
    ReadMcpResourceDir: 'ReadMcpResourceDirTool',
  };
  // `Mcp` stands for the tools of servers, whose fields nobody knows.
  for (const [, name, body = ''] of types.matchAll(/^export interface (\w+)Input \{(?:\}|\n(.*?)^\})/gms))
    if (name !== 'Mcp')
      tools.push([renamed[name] ?? name, [...body.matchAll(/^ {2}"?([\w-]+)"?\??:/gm)].map(([, field]) => field)]);
  return tools;
}

async function codex() {
  const binary = join(modules, '@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex');
  const features = ['multi_agent_v2', 'memories', 'request_permissions_tool', 'image_generation', 'artifact'];
  const tools = [];
  for (const [run, model, more] of [
    ['codex', SCRIPTED, []],
    ['codex-patch', 'gpt-5.5', []],
    ['codex-newest', 'gpt-6.1-terra', []],
    [
      'codex-all',
      'gpt-5.5',
      [...features, 'send_message_to_user_async', 'current_time_reminder'].flatMap((f) => ['--enable', f]),
    ],
  ]) {
    const provider = `{name="s",base_url="${urlOf(run)}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}`;
    const args = ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox'];
    const settings = [`model=${model}`, `model_provider=${SCRIPTED}`, `model_providers.${SCRIPTED}=${provider}`];
    const options = settings.flatMap((setting) => ['-c', setting]);
    tools.push(...(await offered(run, binary, [...args, ...options, ...more, 'go'], { OPENAI_API_KEY: 'none' })));
  }
  return tools;
}

async function gemini() {
  const bundle = join(modules, '@google/gemini-cli/bundle');
  const settings = {
    '.gemini/settings.json': {
      security: { auth: { selectedType: 'gemini-api-key' } },
      general: { enableAutoUpdate: false },
    },
  };
  const tools = [];
  for (const [run, model] of [
    ['gemini', 'gemini-2.5-flash'],
    ['gemini-3', 'gemini-3-pro-preview'],
  ]) {
    const env = { GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: urlOf(run) };
    const args = [join(bundle, 'gemini.js'), '-m', model, '--yolo', '--skip-trust', '-p', 'go'];
    tools.push(...(await offered(run, process.execPath, args, env, settings)));
  }
  // Its own list of names, and the declarations of classes that need no settings.
  const core = execFileSync('sh', ['-c', `grep -l ALL_BUILTIN_TOOL_NAMES ${bundle}/core-*.js | head -1`], {
    encoding: 'utf8',
  }).trim();
  const own = await import(pathToFileURL(core).href);
  for (const name of own.ALL_BUILTIN_TOOL_NAMES) tools.push([name, []]);
  const bus = { subscribe() {}, publish() {}, unsubscribe() {} };
  for (const [name, Tool] of Object.entries(own).filter(([name]) => /^[A-Z]\w+Tool$/.test(name)))
    try {
      const { schema } = new Tool(anything(), bus);
      if (own.ALL_BUILTIN_TOOL_NAMES.includes(schema.name))
        tools.push([schema.name, Object.keys(schema.parametersJsonSchema?.properties ?? {})]);
    } catch (error) {
      console.log(`${name} cannot be made without its settings: ${error.message}`);
    }
  return tools;
}

/** Settings that answer every question with themselves. */
const anything = () =>
  new Proxy(() => {}, {
    get: (_, key) => {
      if (key === 'then') return undefined;
      if (key === Symbol.toPrimitive) return () => 'x';
      return key === Symbol.iterator ? function* () {} : anything();
    },
    apply: () => anything(),
  });

async function copilot() {
  const tools = [];
  for (const model of ['claude-sonnet-4.5', 'gpt-5.1-codex']) {
    const run = `copilot-${model}`;
    const env = { COPILOT_OFFLINE: 'true', COPILOT_PROVIDER_BASE_URL: `${urlOf(run)}/v1`, COPILOT_MODEL: model };
    const binary = join(modules, '@github/copilot-linux-x64/copilot');
    tools.push(...(await offered(run, binary, ['-p', 'go', '--allow-all-tools'], env)));
  }
  return tools;
}

const AGENTS = [
  ['claude-code', '@anthropic-ai/claude-code', claudeCode],
  ['codex', '@openai/codex', codex],
  ['gemini', '@google/gemini-cli', gemini],
  ['copilot', '@github/copilot', copilot],
];

try {
  writeFileSync(join(root, 'package.json'), '{"private":true}');
  const packages = AGENTS.map(([, name]) => `${name}@latest`);
  const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', ...packages];
  execFileSync('npm', install, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  mkdirSync(TARGET, { recursive: true });
  for (const [agent, name, read] of AGENTS) {
    const fields = new Map();
    for (const [tool, names] of await read())
      fields.set(tool, [...new Set([...(fields.get(tool) ?? []), ...names])].sort());
    const { version } = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8'));
    const tools = Object.fromEntries([...fields].sort(([a], [b]) => (a < b ? -1 : 1)));
    const taken = new Date().toISOString().slice(0, 10);
    writeFileSync(
      new URL(`${agent}.json`, TARGET),
      `${JSON.stringify({ package: name, version, taken, tools }, null, 2)}\n`,
    );
    console.log(`${agent} ${version}: ${fields.size} tools`);
  }
} finally {
  server.close();
  server.closeAllConnections();
  rmSync(root, { recursive: true, force: true });
}
process.exit(0);

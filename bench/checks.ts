/**
 * Do the parts that anybody can load keep to their limits of time and memory? What the tests state in results, and a
 * busy machine must not make fail. Hostile or very large input throughout; more than the limit fails.
 */
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { AgentRegistry } from '../src/core/agents/agents.ts';
import { redactAttributes } from '../src/core/audit/redact.ts';
import { redactedKeys, redactText } from '../src/core/audit/redact-text.ts';
import { type AgentKey, agentKeyOf, type OpId, type SecretDigest } from '../src/core/base/ids.ts';
import { BudgetTracker } from '../src/core/budget/budget.ts';
import { type CheckSubject, ConditionVariables, compileCondition } from '../src/core/condition/condition.ts';
import type { ApiKey } from '../src/core/identity/api-key.ts';
import { compileLimits } from '../src/core/limits/compiled.ts';
import { LimitTracker } from '../src/core/limits/limits.ts';
import { lineages, overview, tree } from '../src/core/listings/topology.ts';
import { parsePolicyDocument } from '../src/core/policy/document.ts';
import { compileGlob } from '../src/core/policy/glob.ts';
import { compilePolicies } from '../src/core/policy/policy.ts';
import { unreachableAllows } from '../src/core/policy/unreachable.ts';
import { ApiKeyIndex } from '../src/credentials/api-key-index.ts';
import { digestOfPresented } from '../src/doors/rpc/credential-digests.ts';
import { createMailer } from '../src/mail/mailer.ts';
import { heading, line } from './lib/report.ts';
import { hostileMessages, pieces } from './lib/strangers.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function check(name: string, value: number, unit: 'ms' | 'MB' | '×', limit: number): void {
  const isOver = !(value <= limit);
  if (isOver) process.exitCode = 1;
  line(name, value, unit, `limit: ${limit}${isOver ? ', EXCEEDED' : ''}`);
}

/** The processor time of a piece of work: what else the machine does adds nothing to it. */
function processorMsOf(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** The quickest of some runs: what else the machine does only ever makes one slower. */
function quickestMs(work: () => unknown): number {
  let best = Infinity;
  for (let run = 0; run < 15; run += 1) {
    const startedMs = performance.now();
    for (let time = 0; time < 20; time += 1) work();
    best = Math.min(best, performance.now() - startedMs);
  }
  return best;
}

/** Measures the heap that a piece of work leaves. */
function keptMbOf(work: () => unknown): number {
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  work();
  collectGarbage();
  return (process.memoryUsage().heapUsed - before) / 1e6;
}

const times = (count: number, work: (nth: number) => unknown): void => {
  for (let nth = 0; nth < count; nth += 1) work(nth);
};

const SUBJECT: CheckSubject = {
  agent: { orgId: 'acme', teamId: 'search', agentId: 'a1' },
  action: 'tool.call',
  resource: 'web_search',
  attributes: {},
  caller: undefined,
  estimatedCostMicroUsd: 0,
};

function policiesOf(rules: readonly object[]) {
  const { document } = parsePolicyDocument({ name: 'checks', scope: 'global', rules }, 'checks');
  const compiled = compilePolicies(document === undefined ? [] : [document]);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  return compiled.value;
}

function conditions(): void {
  const numbers = Array.from({ length: 150_000 }, (_, index) => index);
  const few = Array.from({ length: 200 }, (_, index) => index);
  const hostile: readonly (readonly [source: string, over: Partial<CheckSubject>])[] = [
    ['attributes.list.all(item, item.nope == 1)', { attributes: { list: numbers } }],
    ['attributes.text.split("").all(letter, letter == "a")', { attributes: { text: 'a'.repeat(1_000_000) } }],
    ['attributes.text.matches("(a*)*(a*)*(a*)*b")', { attributes: { text: 'a'.repeat(8_000) } }],
    [
      'attributes.list.exists(text, text.matches("(a*)*(a*)*(a*)*b"))',
      { attributes: { list: Array.from({ length: 120 }, () => 'a'.repeat(8_000)) } },
    ],
    [
      'resource.split("").all(one, one in attributes.list || one == "x")',
      { resource: 'x'.repeat(2_048), attributes: { list: few } },
    ],
    [
      'resource.split("/").all(part, attributes.list.all(item, part.matches("(.{1,20}){1,20}[0-9]$") == false))',
      { resource: 'xxxxxxxxx/'.repeat(200), attributes: { list: few } },
    ],
    [
      `${Array.from({ length: 180 }, (_, nth) => `resource != "a${nth}"`).join(' && ')} && attributes.list.all(item, item.nope == 1)`,
      { attributes: { list: Array.from({ length: 9_000 }, () => 1) } },
    ],
    ['int(attributes.text) < 10', { attributes: { text: '1'.repeat(1_000_000) } }],
  ];
  for (const [source, over] of hostile) {
    const compiled = compileCondition(source);
    if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
    const evaluate = () => compiled.value.evaluate(new ConditionVariables().fill({ ...SUBJECT, ...over }));
    check(source.length <= 44 ? source : `${source.slice(0, 43)}…`, processorMsOf(evaluate), 'ms', 500);
  }
  const loops = policiesOf(
    Array.from({ length: 460 }, (_, nth) => ({
      id: `r${nth}`,
      effect: 'deny',
      when: 'attributes.tags.exists(tag, tag == "x")',
    })),
  );
  const tags = Array.from({ length: 500 }, (_, nth) => `v${nth}`);
  check(
    '460 rules that loop over 500 values',
    processorMsOf(() => loops.decide({ ...SUBJECT, attributes: { tags } })),
    'ms',
    300,
  );
}

function policies(): void {
  check(
    'a hostile pattern on 100,000 characters',
    processorMsOf(() => compileGlob(`${'a*'.repeat(200)}b`).matches('a'.repeat(100_000))),
    'ms',
    1_000,
  );
  const large = policiesOf(
    Array.from({ length: 10_000 }, (_, nth) =>
      nth % 2 === 0
        ? { id: `r${nth}`, actions: [`act.${nth}`], effect: 'allow' }
        : { id: `r${nth}`, actions: [`a*.${nth}*`], resources: [`x${nth}*`], effect: 'deny' },
    ),
  );
  check(
    'the first check after a load of 10,000 rules',
    processorMsOf(() => large.decide({ ...SUBJECT, action: 'act.9998', resource: 'x9' })),
    'ms',
    1_000,
  );
  const starred = (name: string, effect: 'allow' | 'deny', hostOf: (nth: number) => string) =>
    parsePolicyDocument(
      {
        name,
        scope: 'global',
        rules: Array.from({ length: 10_000 }, (_, nth) => ({
          id: `r${nth}`,
          effect,
          actions: ['net.connect'],
          resources: [hostOf(nth)],
        })),
      },
      'checks',
    ).document!;
  const documents = [
    starred('blocked', 'deny', (nth) => `*.ads${nth}.com`),
    starred('known', 'allow', (nth) => `*.shop${nth}.com`),
  ];
  check(
    'warnings about 20,000 rules with a leading star',
    processorMsOf(() => unreachableAllows(documents)),
    'ms',
    2_500,
  );
}

function redaction(): void {
  const keys = redactedKeys();
  check(
    'redaction of 12 MB made to slow it down',
    processorMsOf(() => {
      for (const text of ['eyJ'.repeat(350_000), 'svc_a'.repeat(200_000), 'bearer '.repeat(150_000)])
        redactAttributes({ text }, keys);
      for (const text of [
        '://a:'.repeat(200_000),
        '?token'.repeat(170_000),
        '=@'.repeat(500_000),
        `://${'a'.repeat(1_000_000)}@`,
        '://a:@'.repeat(170_000),
        'token='.repeat(170_000),
        'a:'.repeat(500_000),
        'sk-'.repeat(330_000),
        `${'a'.repeat(1_000_000)}:`,
      ])
        redactText(text);
    }),
    'ms',
    1_500,
  );
  const marks = `a${'\u0315'.repeat(250_000)}${'\u0300'.repeat(250_000)}`;
  check(
    'an attribute name of 500,000 marks to normalize',
    processorMsOf(() => redactAttributes({ [marks]: 1 }, keys)),
    'ms',
    50,
  );
  check(
    'memory of 300,000 ever new attribute names',
    keptMbOf(() => times(300_000, (nth) => keys.covers(String(nth).padEnd(60, 'x')))),
    'MB',
    8,
  );
  check(
    'memory of 4,000 very long attribute names',
    keptMbOf(() => times(4_000, (nth) => keys.covers(String(nth).padEnd(20_000, 'x')))),
    'MB',
    8,
  );
  check(
    'memory of 32 MB presented as tokens',
    keptMbOf(() => times(2_000, (nth) => digestOfPresented(`${nth}`.padEnd(16_000, 'x')))),
    'MB',
    8,
  );
}

const MANY = 100_000;

function registerMany(): AgentRegistry {
  const agents = new AgentRegistry();
  const register = (orgId: string, teamId: string, agentId: string): void =>
    void agents.register({
      identity: { orgId, teamId, agentId },
      credential: `${orgId}/${teamId}/${agentId}` as SecretDigest,
      registeredAtMs: 0,
      parent: undefined,
    });
  // Registers a huge org with a huge team, and behind it as many orgs of one agent each, all of one name.
  times(MANY, (nth) => register('huge', 'wide', `n${nth}`));
  times(MANY, (nth) => register(`o${nth}`, 't', 'worker'));
  return agents;
}

/** Pages at the end of a long listing against its first page: walking there costs several hundred first pages. */
function deepPages(): void {
  const agents = registerMany();
  const deep = `${agents.groups.orgs.get('huge')!.registration + 2 * MANY - 100}.0`;
  const overviewAt = (cursor: string | undefined) =>
    quickestMs(() => overview(agents, { orgId: undefined, perPage: 10, cursor }, 0));
  check('a page deep in the overview / the first', overviewAt(deep) / overviewAt(undefined), '×', 10);
  const lineageOf = (agentId: string) =>
    quickestMs(() => lineages(agents, { orgId: `o${MANY - 1}`, agentId, perPage: 10, cursor: undefined }));
  check('a lineage whose name all other orgs use, too', lineageOf('worker') / (lineageOf('nobody') + 0.05), '×', 20);

  const budgetsOf = (orgs: number): BudgetTracker => {
    const budgets = new BudgetTracker(undefined, 0);
    times(orgs, (nth) => budgets.handleOf({ orgId: `o${nth}`, teamId: 't', agentId: 'worker' }, true));
    return budgets;
  };
  const statusMs = (orgs: number): number => {
    const budgets = budgetsOf(orgs);
    return quickestMs(() => budgets.status({ orgId: `o${orgs - 1}`, limit: 10 }, 0));
  };
  check('budgets of one org beside 100,000 / alone', statusMs(MANY) / (statusMs(1) + 0.05), '×', 20);

  const unregistered = (groups: number): AgentRegistry => {
    const registry = new AgentRegistry();
    times(groups, (nth) => {
      registry.keep(registry.lookUp({ orgId: `o${nth}`, teamId: 't', agentId: 'worker' })).ops = 1;
      registry.keep(registry.lookUp({ orgId: 'acme', teamId: `t${nth}`, agentId: 'worker' })).ops = 1;
    });
    return registry;
  };
  const [many, few] = [unregistered(MANY), unregistered(1)];
  const treeMs = (registry: AgentRegistry) =>
    quickestMs(() => tree(registry, { orgId: undefined, perPage: 10, cursor: undefined }));
  check('a tree beside 200,000 groups without agents', treeMs(many) / (treeMs(few) + 0.05), '×', 20);
}

function apiKeys(): void {
  const keyOf = (nth: number, orgId: string, expiresAtMs: number | null): ApiKey => ({
    id: `k${nth}`,
    name: 'ci',
    digest: `digest of ${nth}` as SecretDigest,
    hint: 'svc_k…',
    scopes: ['read'],
    orgId,
    createdAtMs: nth,
    createdBy: 'key:k0',
    expiresAtMs,
    revokedAtMs: null,
    lastUsedAtMs: null,
  });
  const index = new ApiKeyIndex();
  times(200_000, (nth) => index.set(keyOf(nth, nth < 2 ? 'acme' : 'globex', nth % 2 === 0 ? nth : null)));
  check(
    '1,000 pages of an org with 2 of 200,000 keys',
    processorMsOf(() => times(1_000, () => index.page(10, undefined, 'acme'))),
    'ms',
    1_000,
  );
  check(
    '1,000 counts for an org with 100,000 ended keys',
    processorMsOf(() => times(1_000, () => index.countOf('globex', 100_000))),
    'ms',
    1_000,
  );
}

/** No message of a stranger costs more than this before its credential is known. */
const STRANGERS_MS = 50;

function strangers(): void {
  for (const { name, work } of hostileMessages())
    check(`${name}, of a stranger`, Math.min(...[0, 1, 2].map(() => processorMsOf(work))), 'ms', STRANGERS_MS);
  let kept: unknown;
  const keep = (): void => {
    kept = pieces();
  };
  check('memory of 64 KiB of gRPC in pieces of a byte', keptMbOf(keep), 'MB', 1);
  if (kept === undefined) throw new Error('nothing was kept');
}

/** Outgrown buffers are freed beside this thread, and counted until the next collection. */
async function bytesInUse(): Promise<number> {
  collectGarbage();
  await sleep(100);
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** The counts of limits take some 200 bytes a key, with a span 206 where nine in ten places are taken. */
const LIMIT_KEYS = 1_000_000;

async function limitStates(): Promise<void> {
  for (const span of [{}, { every: '1h' }]) {
    const limits = [{ id: 'few', per: 'session', calls: 10, ...span }];
    const { document } = parsePolicyDocument({ name: 'p', scope: 'global', limits }, 'bench');
    const options = { maxStates: LIMIT_KEYS, sessionTtlMs: 86_400_000, firstOf: (key: AgentKey) => key };
    const tracker = new LimitTracker(options);
    tracker.reconfigure(document === undefined ? [] : compileLimits(document));
    const agent = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
    const before = await bytesInUse();
    for (let nth = 0; nth < LIMIT_KEYS * 0.9; nth += 1) {
      const opId = `${'4bf92f3577b34da6'}${String(nth).padStart(16, '0')}:s` as OpId;
      const check = { agent, key: agentKeyOf(agent), opId, action: 'a', resource: 'r', costMicroUsd: 0 };
      if (tracker.firstReached(check, Date.UTC(2026, 0)) === undefined) tracker.count(nth, 0, Date.UTC(2026, 0));
    }
    tracker.drainChanges();
    const bytes = (await bytesInUse()) - before;
    const name = `memory of ${tracker.size.toLocaleString('en')} keys of a limit${'every' in span ? ' with a span' : ''}`;
    check(name, bytes / 1e6, 'MB', (tracker.size * 210) / 1e6);
  }
}

/** A time-out of the mailer must hold although nothing but the garbage collector looks at its timer. */
async function mailTimeout(): Promise<void> {
  const relay = createServer((socket) => {
    socket.on('error', () => undefined).write('220 relay\r\n');
    socket.once('data', () => {
      const dripping = setInterval(() => socket.write('250-SIZE\r\n'), 20);
      socket.once('close', () => clearInterval(dripping));
    });
  });
  await once(relay.listen(0, '127.0.0.1'), 'listening');
  const collecting = setInterval(collectGarbage, 50);
  const startedMs = performance.now();
  let complain = (): void => undefined;
  const complained = new Promise<void>((resolve) => {
    complain = resolve;
  });
  const mailer = createMailer(
    {
      host: '127.0.0.1',
      port: (relay.address() as AddressInfo).port,
      credentials: undefined,
      from: 'no-reply@gateway.test',
      timeoutMs: 300,
      deliveryTimeoutMs: 500,
    },
    { info: () => undefined, warn: complain },
  );
  await Promise.race([complained, new Promise((resolve) => setTimeout(resolve, 10_000))]);
  check('a relay that drips, with garbage collections', performance.now() - startedMs, 'ms', 5_000);
  clearInterval(collecting);
  await mailer.close(1_000);
  relay.close();
}

heading('Do the parts that anybody can load keep to their limits of time and memory?');
conditions();
policies();
redaction();
strangers();
await limitStates();
apiKeys();
deepPages();
await mailTimeout();

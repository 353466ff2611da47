/**
 * Every parser of what comes from outside, with valid examples to start from. `run` answers whether the input was
 * taken; that it throws is a defect, as a parser's fault is a value.
 */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { networkOf, plainAddress } from '../../src/core/base/client-address.ts';
import { agentKeyOf, isName, isOpHalf, parseAgentKey, parseOpId } from '../../src/core/base/ids.ts';
import { placeOfCursor } from '../../src/core/base/page.ts';
import { msOfRfc3339, rfc3339 } from '../../src/core/base/time.ts';
import { parseBudgetCursor } from '../../src/core/budget/status.ts';
import { type CheckSubject, ConditionVariables, compileCondition } from '../../src/core/condition/condition.ts';
import { parseDuration, parseTimestamp } from '../../src/core/condition/times.ts';
import { parseHaltScope } from '../../src/core/halts/halt.ts';
import { parseEmail } from '../../src/core/identity/email.ts';
import { parsePolicyCases } from '../../src/core/policy/cases.ts';
import { parsePolicyDocument } from '../../src/core/policy/document.ts';
import { compileGlob } from '../../src/core/policy/glob.ts';
import { readBatch, readEvaluation } from '../../src/doors/authzen/evaluation.ts';
import { claudeCode } from '../../src/doors/coding-agents/claude-code.ts';
import { codex } from '../../src/doors/coding-agents/codex.ts';
import { copilot } from '../../src/doors/coding-agents/copilot.ts';
import { cursor } from '../../src/doors/coding-agents/cursor.ts';
import { gemini } from '../../src/doors/coding-agents/gemini.ts';
import { subjectsOfPatch } from '../../src/doors/coding-agents/patch.ts';
import { addressBehind } from '../../src/doors/engine/client-address.ts';
import { readHead } from '../../src/doors/grpc/head.ts';
import { joinMessages, MessageReader } from '../../src/doors/grpc/messages.ts';
import { binaryBatch, jsonBatch } from '../../src/doors/proto/batch.ts';
import { binaryCodec } from '../../src/doors/proto/binary.ts';
import { messageIn as fieldsIn, fieldsOf, pairsIn } from '../../src/doors/proto/fields.ts';
import { jsonCodec } from '../../src/doors/proto/json.ts';
import { readStructJson } from '../../src/doors/proto/json-values.ts';
import type { MessageName } from '../../src/doors/proto/messages.ts';
import { attempt } from '../../src/doors/proto/schema.ts';
import { checkCommandOf, completionOf, registrationOf, usageOf } from '../../src/doors/rpc/requests.ts';
import { readStreamQuery } from '../../src/doors/ws/stream.ts';
import { messageIn } from '../../src/mcp/json-rpc.ts';
import { pinsIn } from '../../src/mcp/pins.ts';
import { loadPolicyTexts } from '../../src/policy-files/policy-file.ts';
import { readYaml } from '../../src/policy-files/policy-yaml.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { decodeToMain, encodeToMain } from '../../src/threads/codec.ts';
import { signToken, verifyToken } from '../../src/threads/crypto/token-work.ts';
import { CursorSeal } from '../../src/threads/main/cursor-seal.ts';
import { CRAWLER, checkOf } from '../support/governor.ts';
import type { Json, Mutator } from './mutate.ts';

export type Target = {
  readonly name: string;
  /** How many of a thousand inputs are for it. */
  readonly share: number;
  run(mutator: Mutator): boolean;
};

const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const TOKEN = 'crawler-token-0123456789-0123456789-0123';
const ADMIN = { subject: 'key:admin', scopes: ['admin'], orgId: null } as const;

const text = (
  name: string,
  share: number,
  examples: readonly string[],
  take: (input: string) => unknown,
  words: readonly string[] = [],
): Target => ({
  name,
  share,
  run: (mutator) => {
    const taken = take(mutator.text(examples, words));
    return taken !== undefined && taken !== false;
  },
});

/** Doors take no larger bodies without saying so. */
const MOST_CHARACTERS = 100_000;

/** Values as bodies have them, through their text and back. */
const tree = (
  name: string,
  share: number,
  examples: readonly Json[],
  take: (input: unknown) => { ok: boolean },
): Target => ({
  name,
  share,
  run: (mutator) => {
    const body = JSON.stringify(mutator.tree(examples));
    return body.length <= MOST_CHARACTERS && take(JSON.parse(body)).ok;
  },
});

const bytes = (
  name: string,
  share: number,
  examples: readonly Buffer[],
  take: (input: Buffer) => { ok: boolean },
): Target => ({
  name,
  share,
  run: (mutator) => take(mutator.bytes(examples)).ok,
});

// Messages of gRPC and Connect.

const CHECK = {
  agent: AGENT,
  credentialToken: TOKEN,
  traceId: 'trace',
  spanId: 'span',
  action: 'tool.call',
  resource: 'web_search',
  attributes: { path: '/etc/passwd', size: 12.5, list: [1, 'two', null, true], nested: { deep: { er: 1 } } },
  estimatedCostUsd: 0.01,
  dryRun: true,
} as const;
const MESSAGES: Partial<Readonly<Record<MessageName, Json>>> = {
  CheckActionRequest: CHECK,
  BatchCheckActionsRequest: { requests: [CHECK, { ...CHECK, spanId: 'other' }] },
  RegisterAgentRequest: { agent: AGENT, credentialToken: TOKEN, parent: { ...AGENT, agentId: 'parent' } },
  CompleteOpRequest: {
    agent: AGENT,
    credentialToken: TOKEN,
    opId: 't:s',
    outcome: 'OUTCOME_FAILURE',
    error: 'no',
  },
  RecordUsageRequest: { agent: AGENT, credentialToken: TOKEN, costUsd: 1.5, opId: 't:s', usageId: 'u' },
  AckOpControlRequest: { agent: AGENT, credentialToken: TOKEN, opId: 't:s', sequence: '12' },
  WaitApprovalRequest: { agent: AGENT, credentialToken: TOKEN, approvalId: 'a' },
};

/** Parsers behind the codec: each field is judged by itself. */
const FOLLOWED: Partial<Readonly<Record<MessageName, (message: never) => { ok: boolean }>>> = {
  CheckActionRequest: (message) => checkCommandOf(message, undefined),
  RegisterAgentRequest: (message) => registrationOf(message, ADMIN),
  CompleteOpRequest: (message) => completionOf(message, undefined),
  RecordUsageRequest: (message) => usageOf(message, undefined),
};

const messages = (Object.entries(MESSAGES) as [MessageName, Json][]).flatMap(([name, example]): Target[] => {
  const [json, binary] = [jsonCodec(name), binaryCodec(name)];
  const decoded = json.decode(Buffer.from(JSON.stringify(example)));
  if (!decoded.ok) throw new Error(`the example of ${name} is not valid: ${JSON.stringify(decoded.fault)}`);
  const follow = (result: { ok: boolean; value?: unknown }): { ok: boolean } =>
    result.ok ? (FOLLOWED[name]?.(result.value as never) ?? result) : result;
  const encoded = binary.encode(decoded.value as never);
  return [
    tree(`Connect JSON, ${name}`, 25, [example], (value) => follow(json.decode(Buffer.from(JSON.stringify(value))))),
    text(
      `Connect JSON as text, ${name}`,
      10,
      [JSON.stringify(example)],
      (input) => follow(json.decode(Buffer.from(input))).ok,
    ),
    bytes(`protobuf, ${name}`, 25, [encoded], (input) => follow(binary.decode(input))),
  ];
});
const batchJson = JSON.stringify(MESSAGES.BatchCheckActionsRequest);
const checkBytes = binaryCodec('CheckActionRequest').encode(
  (jsonCodec('CheckActionRequest').decode(Buffer.from(JSON.stringify(CHECK))) as unknown as { value: never }).value,
);
const batchBytes = Buffer.concat([Buffer.from([0x0a, ...varint(checkBytes.length)]), checkBytes]);

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >> 7)];
}

const readItems = (batch: ReturnType<ReturnType<typeof jsonBatch>>): { ok: boolean } => {
  if (!batch.ok) return batch;
  return batch.value.slices.map((read) => read()).find((read) => !read.ok) ?? batch;
};

// Tokens, policies, hooks.

const keys = generateKeyPairSync('ed25519', {
  publicKeyEncoding: { type: 'spki', format: 'pem' },
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
});
const FRAME = { issuer: 'svc-gateway', audience: 'svc-gateway' };
const JWT = signToken('k1', keys.privateKey, {
  iss: FRAME.issuer,
  aud: FRAME.audience,
  sub: 'account:a',
  iat: 1_700_000_000,
  exp: 4_000_000_000,
  jti: 'j',
  scope: 'read write',
});
const seal = new CursorSeal();
const SEALED = ['list-ops', 'list-agents'].map((listing) => seal.seal(listing, '42'));

const STARTER = readFileSync(join(PACKAGE_ROOT, 'examples/policies/starter.yaml'), 'utf8');
const CONDITIONS = [
  'attributes.size > 10 && action.startsWith("tool.")',
  'has(attributes.path) && attributes.path.matches("^/(etc|var)/.*\\\\.conf$")',
  '["a", "b"].exists(x, x == resource) || !(agent.org_id in ["acme"])',
  'duration("1h30m") + timestamp("2026-11-26T04:00:00Z") > timestamp("2026-11-26T05:00:00Z")',
  'caller != null ? caller.agent_id == "x" : estimated_cost_usd < 0.5',
  'size(attributes.list) >= 3 && attributes.list.all(i, i != 4) && resource.contains("web")',
  'attributes.nested.deep.er % 2 == 1 || int(attributes.size) / 3 == -4 || double("1e3") > 1.0',
];
const CEL_WORDS = [
  '&&',
  '||',
  '==',
  'in',
  '.exists(x, ',
  '.all(',
  '[0]',
  '9223372036854775807',
  '"\\u0000"',
  '?',
  ':',
  'null',
  '(((',
  'has(',
  '.matches("(a*)*b")',
  'r"\\',
  '1u',
  '0x',
  '.size()',
  '.map(x, x)',
  '{"a": 1}',
];
const subject: CheckSubject = {
  agent: CRAWLER,
  action: 'tool.call',
  resource: 'web_search',
  attributes: CHECK.attributes,
  caller: undefined,
  estimatedCostMicroUsd: 10_000,
} as CheckSubject;
const variables = new ConditionVariables();

const RULE = {
  id: 'r',
  actions: ['tool.*'],
  resources: ['*'],
  effect: 'allow',
  when: 'attributes.size > 1',
  reason: 'because',
  obligations: [{ type: 'redact', paths: ['a.b'] }],
};
const DOCUMENT: Json = {
  name: 'p',
  scope: 'team:acme/search',
  rules: [
    RULE,
    {
      id: 'q',
      effect: 'require_approval',
      approval: { min: 2, expires: '1h', valid: 'once', approvers: ['role:admin'] },
    },
  ],
  budget: { daily_limit_usd: 1, timezone: 'Europe/Vienna' },
};
const HOOKS: readonly (readonly [typeof claudeCode, readonly Json[]])[] = [
  [
    claudeCode,
    [
      {
        session_id: 's',
        cwd: '/repo',
        hook_event_name: 'PreToolUse',
        tool_use_id: 'id',
        tool_name: 'Bash',
        tool_input: { command: 'ls -l' },
      },
      {
        session_id: 's',
        cwd: '/repo',
        hook_event_name: 'PostToolUse',
        tool_use_id: 'id',
        tool_name: 'MultiEdit',
        tool_input: { file_path: 'a', edits: [] },
      },
    ],
  ],
  [
    codex,
    [
      {
        session_id: 's',
        cwd: '/repo',
        hook_event_name: 'PreToolUse',
        tool_use_id: 'id',
        tool_name: 'apply_patch',
        tool_input: { command: '*** Begin Patch\n*** Update File: a.txt\n@@\n-a\n+b\n*** End Patch' },
      },
    ],
  ],
  [
    cursor,
    [
      {
        conversation_id: 's',
        generation_id: 'g',
        workspace_roots: ['/repo'],
        hook_event_name: 'preToolUse',
        tool_use_id: 'id',
        tool_name: 'Shell',
        tool_input: { command: 'ls' },
      },
      {
        conversation_id: 's',
        generation_id: 'g',
        workspace_roots: ['/repo'],
        hook_event_name: 'beforeShellExecution',
        command: 'ls',
        cwd: '/repo',
      },
    ],
  ],
  [copilot, [{ cwd: '/repo', sessionId: 's', toolName: 'bash', toolArgs: '{"command":"ls"}' }]],
  [
    gemini,
    [
      {
        session_id: 's',
        cwd: '/repo',
        hook_event_name: 'BeforeTool',
        tool_name: 'write_file',
        tool_input: { file_path: 'x', content: 'y' },
      },
    ],
  ],
];
const PATCH =
  '*** Begin Patch\n*** Add File: a/b.txt\n+hello\n*** Update File: c.txt\n*** Move to: d.txt\n@@\n-x\n+y\n*** Delete File: e\n*** End Patch';

const EVALUATION: Json = {
  subject: { type: 'agent', id: 'acme/search/crawler', properties: { a: 1 } },
  action: { name: 'tool.call', properties: { b: [1] } },
  resource: { type: 'tool', id: 'web', properties: {} },
  context: { trace_id: 't', span_id: 's' },
};

// Protocols of others.

const field = (number: number, content: Buffer | string): Buffer => {
  const body = Buffer.from(content);
  return Buffer.concat([Buffer.from([...varint((number << 3) | 2), ...varint(body.length)]), body]);
};
const pair = (name: string, value: string): Buffer => Buffer.concat([field(1, name), field(2, value)]);
const http = Buffer.concat([
  field(2, 'GET'),
  field(3, pair('authorization', `Bearer ${TOKEN}`)),
  field(3, pair('x-request-id', 'r')),
  field(4, '/path?query=1'),
  field(5, 'example.org'),
]);
const ENVOY = field(1, field(4, field(2, http)));
const MCP = Buffer.concat([
  field(1, 'server'),
  field(2, 'tools/call'),
  field(4, '{"name":"search","arguments":{"q":"x"}}'),
  field(5, pair('authorization', `Bearer ${TOKEN}`)),
]);
/** Many fields of nothing, within the limits and beyond them. */
const FLOODS = ['1a00', '2a00', '0a00', '6a00', '1a020a00', '7800', '7b7c'].flatMap((hex) =>
  [150, 250].map((times) => Buffer.from(hex.repeat(times), 'hex')),
);
const readForeign = (input: Buffer): { ok: boolean } =>
  attempt(() => {
    const fields = fieldsOf(input, 1, 4, 5);
    for (const number of [1, 4, 5]) {
      const inner = fieldsIn(fieldsIn(fields, number, 4), 4, 3);
      pairsIn(inner, 3);
      pairsIn(fields, number);
    }
    return fields;
  });

/** However the stream is cut, the messages are the same. */
function readFrames(mutator: Mutator): boolean {
  const stream = mutator.bytes([
    joinMessages([checkBytes, Buffer.alloc(0), Buffer.from('x')]),
    joinMessages([batchBytes]),
  ]);
  const readAll = (cut: () => number): readonly string[] => {
    const reader = new MessageReader();
    const read: string[] = [];
    for (let at = 0; at < stream.length; ) {
      const length = cut();
      reader.add(stream.subarray(at, at + length));
      at += length;
      for (let next = reader.next(); next !== undefined; next = reader.next()) read.push(next.toString('hex'));
    }
    return read;
  };
  const [whole, cut] = [readAll(() => stream.length), readAll(() => 1 + mutator.below(7))];
  if (whole.join() !== cut.join()) throw new Error(`cut otherwise, other messages: ${stream.toString('hex')}`);
  return whole.length > 0;
}

/** As JSON writes it. */
const LONE_SURROGATE = /\\ud[89a-f]/;

/** Between threads nothing but the gateway writes: what the doors let in must come back as it was. */
function crossThreads(mutator: Mutator): boolean {
  const given = JSON.parse(JSON.stringify(mutator.tree([CHECK.attributes as unknown as Json])));
  const attributes = attempt(() => readStructJson(given, 'attributes'));
  if (!attributes.ok) return false;
  const message = {
    type: 'command',
    id: mutator.below(2 ** 31),
    command: checkOf(CRAWLER, mutator.text(['t:s']), {
      action: mutator.text(['tool.call']),
      resource: mutator.text(['web_search']),
      attributes: attributes.value,
      estimatedCostMicroUsd: mutator.below(1e9),
    }),
  } as const;
  const shown = JSON.stringify(message);
  if (LONE_SURROGATE.test(shown)) return false; // no door lets it in
  const [back] = decodeToMain(encodeToMain([message]));
  if (JSON.stringify(back) !== shown) throw new Error(`came back otherwise: ${shown}`);
  return true;
}

const addressOf = addressBehind(['10.0.0.0/8', '::1/128']);
const heads = (mutator: Mutator): boolean => {
  const forwarded = mutator.text(['203.0.113.7, 10.1.2.3', 'for="[2001:db8::1]:4711";proto=https', '[::1]', 'unknown']);
  networkOf(plainAddress(addressOf('10.0.0.1', [forwarded])));
  const contentType = mutator.text(['application/grpc', 'application/grpc+proto', 'application/json']);
  const timeout = mutator.text(['5S', '100m', '99999999H']);
  const read = readHead(
    {
      ':method': 'POST',
      'content-type': contentType,
      'grpc-timeout': timeout,
      te: 'trailers',
      authorization: mutator.text([`Bearer ${TOKEN}`]),
    },
    [],
  );
  return !('code' in read);
};

/** A value that was read is written as it was. */
const time = (input: string): boolean => {
  const ms = msOfRfc3339(input);
  if (ms !== undefined && msOfRfc3339(rfc3339(ms)) !== ms) throw new Error(`${input} is read as ${ms}`);
  return ms !== undefined;
};
const agentKey = (input: string): boolean => {
  const agent = parseAgentKey(input);
  if (agent !== undefined && agentKeyOf(agent) !== input) throw new Error(`${input} is written otherwise`);
  return agent !== undefined;
};

export const TARGETS: readonly Target[] = [
  ...messages,
  text('batches, JSON', 10, [batchJson], (input) => readItems(jsonBatch(10, 50)(Buffer.from(input))).ok),
  bytes('batches, protobuf', 10, [batchBytes], (input) => readItems(binaryBatch(10, 50)(input))),
  { name: 'gRPC framing', share: 40, run: readFrames },
  { name: 'HTTP and gRPC heads', share: 30, run: heads },
  { name: 'messages between threads', share: 20, run: crossThreads },
  text(
    'policy files',
    3,
    [STARTER, 'name: p\nscope: global\nrules: []\n'],
    (input) => loadPolicyTexts([{ file: 'f', text: input }]).ok,
  ),
  text(
    'YAML',
    8,
    ['a: [1, {b: c}]\n---\nd: |\n  e\n', '&x\n? y\n: *x\n'],
    (input) => readYaml(input).problems.length === 0,
  ),
  tree('policy documents', 40, [DOCUMENT], (value) => ({ ok: parsePolicyDocument(value, 'd').problems.length === 0 })),
  tree(
    'policy test cases',
    15,
    [{ cases: [{ name: 'c', agent: 'acme/search/crawler', action: 'a', resource: 'r', expect: 'allow' }] }],
    parsePolicyCases,
  ),
  text(
    'conditions (CEL)',
    120,
    CONDITIONS,
    (input) => {
      const compiled = compileCondition(input);
      if (compiled.ok) compiled.value.evaluate(variables.fill(subject));
      return compiled.ok;
    },
    CEL_WORDS,
  ),
  text('access tokens', 10, [JWT], (input) => verifyToken(input, keys.publicKey, FRAME), ['.', 'eyJhbGciOiJub25lIn0']),
  text('cursors', 30, [...SEALED, '0.1.2', '3.1.1.1', '17'], (input) => {
    const opened = seal.open('list-ops', input) ?? seal.open('list-agents', input);
    return [opened, parseBudgetCursor(input), placeOfCursor(input)].some((each) => each !== undefined);
  }),
  ...HOOKS.map(([tool, examples]) => tree(`hooks of ${tool.name}`, 20, examples, (value) => tool.read(Object(value)))),
  text('patches', 20, [PATCH], (input) => subjectsOfPatch(input, '/repo').ok, ['*** ', 'Move to: ', '\n']),
  tree('AuthZEN evaluations', 25, [EVALUATION], readEvaluation),
  tree(
    'AuthZEN batches',
    15,
    [
      {
        ...(EVALUATION as object),
        evaluations: [EVALUATION, {}],
        options: { evaluations_semantic: 'deny_on_first_deny' },
      },
    ],
    (value) => readBatch(value, 100),
  ),
  bytes('ext_authz', 25, [ENVOY, ...FLOODS.map((flood) => field(1, field(4, field(2, flood))))], readForeign),
  bytes('ExtMcp', 25, [MCP, ...FLOODS], readForeign),
  tree(
    'MCP messages',
    25,
    [
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: { name: 'x', arguments: {}, _meta: { progressToken: 1 } },
      },
    ],
    (value) => ({ ok: messageIn(value) !== undefined }),
  ),
  text(
    'MCP pins',
    10,
    ['{"version":1,"servers":{"s":{"t":{"digest":"sha256:00","pinnedAt":"2026-11-26T00:00:00Z"}}}}'],
    pinsIn,
  ),
  text(
    'queries of streams',
    20,
    ['types=ops_change,audit&snapshot=true&lineage=false&org_id=acme'],
    (input) => readStreamQuery(new URLSearchParams(input)).ok,
    ['&', '=', '%00', 'org_id='],
  ),
  text('times', 40, ['2026-11-26T04:00:00.123Z', '2024-02-29T23:59:59+14:00'], time),
  text(
    'times and durations of conditions',
    40,
    ['2026-11-26T04:00:00.123456789Z', '1h30m5.5s', '-2562047h'],
    (input) => typeof parseTimestamp(input) === 'object' && typeof parseDuration(input) === 'object',
  ),
  text('agents and operations', 40, ['acme/search/crawler', '/t/a', 'trace:span'], (input) =>
    [agentKey(input), parseOpId(input) !== undefined, isName(input), isOpHalf(input)].some(Boolean),
  ),
  text('e-mail addresses', 15, ['user.name+tag@example.org', '"quoted"@[192.0.2.1]'], parseEmail),
  text('scopes', 20, ['global', 'org:acme', 'team:acme/search', 'lineage:acme/search/crawler'], parseHaltScope),
  {
    name: 'patterns',
    share: 40,
    run: (mutator) =>
      compileGlob(mutator.text(['tool.*', '**?*a*b*', 'file://*/x?.txt'])).matches(
        mutator.text(['tool.call', 'a'.repeat(400)]),
      ),
  },
];

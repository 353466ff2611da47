/** Mistakes that a caller can make in the calls of agents, whichever protocol they come by. */
import { describe, expect, test } from 'vitest';
import type { Result } from '../../../src/core/base/result.ts';
import { explain, type Fault } from '../../../src/core/fault.ts';
import type { Principal } from '../../../src/core/identity/roles.ts';
import { emptyCheck } from '../../../src/doors/proto/messages.ts';
import {
  acknowledgementOf,
  checkCommandOf,
  completionOf,
  controlOf,
  identityOf,
  registrationOf,
  usageOf,
} from '../../../src/doors/rpc/requests.ts';

const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler' };
const WRITER: Principal = { subject: 'key:w', scopes: ['write'], orgId: null };
const TOKEN = 't'.repeat(32);

const NAME_RULE =
  'must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".."';
const COST_RULE = 'must be a number from 0 to 1000000';

const own = { agent: AGENT, credentialToken: TOKEN };
const noTokens = {
  model: '',
  provider: '',
  inputTokens: undefined,
  outputTokens: undefined,
  cacheReadTokens: undefined,
  cacheWriteTokens: undefined,
};
const tokens = { costUsd: undefined, model: 'gpt-4o', inputTokens: 10, outputTokens: 1 };
const CALLS = {
  check: (over: object = {}) =>
    checkCommandOf(
      {
        ...emptyCheck(),
        ...own,
        traceId: 't',
        spanId: 's',
        action: 'tool.call',
        ...over,
      },
      undefined,
    ),
  register: (over: object = {}) => registrationOf({ ...own, parent: undefined, ...over }, WRITER),
  deregister: (over: object = {}) => identityOf({ ...own, ...over }.agent),
  complete: (over: object = {}) =>
    completionOf(
      { ...own, ...noTokens, opId: 't:s', costUsd: undefined, outcome: 'unspecified', error: '', opHome: '', ...over },
      undefined,
    ),
  usage: (over: object = {}) =>
    usageOf({ ...own, ...noTokens, costUsd: 1, opId: undefined, usageId: undefined, opHome: '', ...over }, undefined),
  control: (over: object = {}) => controlOf({ ...own, resumeAfter: undefined, ...over }, undefined),
  acknowledge: (over: object = {}) =>
    acknowledgementOf({ ...own, opId: 't:s', sequence: 1, opHome: '', ...over }, undefined),
};
type Call = keyof typeof CALLS;
const EVERY = Object.keys(CALLS) as Call[];

const outcome = (result: Result<unknown, Fault>): string =>
  result.ok ? 'taken' : `${result.fault.kind} ${explain(result.fault)}`;

describe('hints', () => {
  test('on obligations and homes are limited', () => {
    expect({
      many: outcome(CALLS.check({ supportedObligations: Array.from({ length: 33 }, () => 'redact') })),
      long: outcome(CALLS.check({ supportedObligations: ['redact', 'x'.repeat(65)] })),
      home: (['check', 'complete', 'usage', 'acknowledge'] as const).map((call) =>
        outcome(CALLS[call]({ opHome: 'x'.repeat(65) })),
      ),
      fine: outcome(CALLS.check({ supportedObligations: ['redact'], opHome: 'h' })),
    }).toEqual({
      many: 'invalid_argument supported_obligations: must have at most 32 items',
      long: 'invalid_argument supported_obligations[1]: must be 1 to 64 bytes',
      home: Array.from({ length: 4 }, () => 'invalid_argument op_home: must be at most 64 bytes'),
      fine: 'taken',
    });
  });
});

describe('the outcome of an operation', () => {
  test('is success or failure, and only a failure has an error, of at most 1 KiB', () => {
    expect({
      failed: outcome(CALLS.complete({ outcome: 'failure', error: 'x'.repeat(1024) })),
      long: outcome(CALLS.complete({ outcome: 'failure', error: 'ä'.repeat(513) })),
      ofSuccess: outcome(CALLS.complete({ outcome: 'success', error: 'x' })),
    }).toEqual({
      failed: 'taken',
      long: 'invalid_argument error: must be at most 1024 bytes',
      ofSuccess: 'invalid_argument error: is only for OUTCOME_FAILURE',
    });
  });
});

describe.each(EVERY)('%s', (call) => {
  test('accepts an agent of an org and one of none', () => {
    expect([AGENT, { ...AGENT, orgId: '' }].map((agent) => outcome(CALLS[call]({ agent })))).toEqual([
      'taken',
      'taken',
    ]);
  });

  test.each([
    [undefined, 'agent: is required'],
    [{ ...AGENT, orgId: '-' }, `agent.org_id: ${NAME_RULE} or "-"`],
    [{ ...AGENT, orgId: 'a/b' }, `agent.org_id: ${NAME_RULE} or "-"`],
    [{ ...AGENT, teamId: '' }, `agent.team_id: ${NAME_RULE}`],
    [{ ...AGENT, agentId: '..' }, `agent.agent_id: ${NAME_RULE}`],
    // They look like `admin` and `café`, whose approvals and logs they would share for the eye.
    ...['admin\u3164', 'admin\u2800', 'admin\ufe0f', 'admin\u034f', 'admin\u115f', 'cafe\u0301'].map(
      (agentId): [object, string] => [{ ...AGENT, agentId }, `agent.agent_id: ${NAME_RULE}`],
    ),
  ])('refuses %j as its agent', (agent, problem) => {
    expect(outcome(CALLS[call]({ agent }))).toBe(`invalid_argument ${problem}`);
  });
});

describe('requests', () => {
  test.each<[Call, object, string]>([
    ['check', { credentialToken: 'x'.repeat(1025) }, 'credential_token: must be at most 1024 bytes'],
    ['check', { action: 'x'.repeat(257) }, 'action: must be at most 256 bytes'],
    ...[' forbidden.x', 'forbidden.x\u3000'].map((action): [Call, object, string] => [
      'check',
      { action },
      'action: must not begin or end with whitespace',
    ]),
    ...['forbidden\u200b.x', 'forbidden\u0000.x', '\u202eforbidden.x', 'forbidden\u2800.x', '\u009b2J'].map(
      (action): [Call, object, string] => [
        'check',
        { action },
        'action: must not contain control or invisible characters',
      ],
    ),
    ...['x\n/etc/passwd', '\u001b[2J', '\u009b2J'].map((resource): [Call, object, string] => [
      'check',
      { resource },
      'resource: must not contain control characters',
    ]),
    [
      'check',
      { action: 'process.exec', resource: 'ls\r\u001b[2J' },
      'resource: must not contain control characters other than line feeds and tabs',
    ],
    ['check', { resource: 'x'.repeat(2049) }, 'resource: must be at most 2048 bytes'],
    ['check', { correlationId: 'x'.repeat(257) }, 'correlation_id: must be at most 256 bytes'],
    ['check', { caller: { ...AGENT, orgId: '-' } }, `caller.org_id: ${NAME_RULE} or "-"`],
    ['check', { estimatedCostUsd: Infinity }, `estimated_cost_usd: ${COST_RULE}`],
    [
      'register',
      { credentialToken: 'x'.repeat(31) },
      'credential_token: must be 32 to 1024 visible ASCII characters; omit it to have one generated',
    ],
    ['register', { parent: { ...AGENT, orgId: 'globex' } }, 'parent.org_id: must be the org of the agent'],
    ['register', { parent: { ...AGENT, teamId: 'a b' } }, `parent.team_id: ${NAME_RULE}`],
    ['complete', { credentialToken: 'x'.repeat(1025) }, 'credential_token: must be at most 1024 bytes'],
    [
      'complete',
      { opId: 'x' },
      'op_id: must be <trace_id>:<span_id>, each 1 to 256 bytes without whitespace, control or invisible characters, or ":"',
    ],
    ['complete', { costUsd: -1 }, `cost_usd: ${COST_RULE}`],
    ['complete', { costUsd: NaN }, `cost_usd: ${COST_RULE}`],
    ['complete', { costUsd: 1_000_001 }, `cost_usd: ${COST_RULE}`],
    ['usage', { credentialToken: 'x'.repeat(1025) }, 'credential_token: must be at most 1024 bytes'],
    ['usage', { costUsd: undefined }, 'cost_usd: is required, or model with its tokens'],
    ['usage', { ...tokens, costUsd: 1 }, 'cost_usd: is either given or found by model; send only one of them'],
    ['usage', { ...tokens, model: '' }, 'model: is required with tokens or a provider'],
    ['usage', { ...tokens, model: 'm'.repeat(257) }, 'model: must be at most 256 bytes'],
    ['usage', { ...tokens, inputTokens: undefined }, 'input_tokens: is required'],
    ['usage', { ...tokens, outputTokens: undefined }, 'output_tokens: is required'],
    ['complete', { ...tokens, outputTokens: 1e9 + 1 }, 'output_tokens: must be a whole number from 0 to 1000000000'],
    [
      'complete',
      { ...tokens, cacheReadTokens: 6, cacheWriteTokens: 5 },
      'input_tokens: include those that were read from a cache or written to it',
    ],
    ['usage', { costUsd: NaN }, `cost_usd: ${COST_RULE}`],
    [
      'usage',
      { opId: 'x' },
      'op_id: must be <trace_id>:<span_id>, each 1 to 256 bytes without whitespace, control or invisible characters, or ":"',
    ],
    ['usage', { usageId: '' }, 'usage_id: must be 1 to 256 bytes'],
    ['usage', { usageId: 'ü'.repeat(129) }, 'usage_id: must be 1 to 256 bytes'],
    ['control', { credentialToken: 'x'.repeat(1025) }, 'credential_token: must be at most 1024 bytes'],
    ['acknowledge', { credentialToken: 'x'.repeat(1025) }, 'credential_token: must be at most 1024 bytes'],
    [
      'acknowledge',
      { opId: 'x' },
      'op_id: must be <trace_id>:<span_id>, each 1 to 256 bytes without whitespace, control or invisible characters, or ":"',
    ],
    ['acknowledge', { sequence: 0 }, 'sequence: is required'],
  ])('%s with %j is refused by the name of the field', (call, over, problem) => {
    expect(outcome(CALLS[call](over))).toBe(`invalid_argument ${problem}`);
  });

  test.each<[Call, object]>([
    [
      'check',
      {
        credentialToken: 'x'.repeat(1024),
        action: 'ü'.repeat(128),
        resource: 'x'.repeat(2048),
        correlationId: 'x'.repeat(256),
        estimatedCostUsd: 1_000_000,
      },
    ],
    ['register', { credentialToken: 'x'.repeat(32), parent: { ...AGENT, agentId: 'lead' } }],
    ['register', { credentialToken: 'x'.repeat(1024) }],
    ['complete', { credentialToken: 'x'.repeat(1024), costUsd: 1_000_000 }],
    ['complete', { costUsd: 0 }],
    ['usage', { costUsd: 1_000_000, opId: 't:s', usageId: 'ü'.repeat(128) }],
  ])('%s is accepted up to its limits', (call, over) => {
    expect(outcome(CALLS[call](over))).toBe('taken');
  });
});

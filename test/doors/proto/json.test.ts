import fc from 'fast-check';
import { install } from 'protobufjs/ext/protojson.js';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { binaryCodec, emptyMessage } from '../../../src/doors/proto/binary.ts';
import { jsonCodec } from '../../../src/doors/proto/json.ts';
import type { CheckActionRequest, MessageName, Messages } from '../../../src/doors/proto/messages.ts';
import { messageShape, methodShapes, protoRoot } from '../../../src/doors/proto/schema.ts';
import { runs } from '../../support/runs.ts';
import { messageOf } from './arbitrary.ts';

install();

const NAMES = [
  ...new Set(methodShapes.flatMap(({ request, response }) => [request.name, response.name])),
] as MessageName[];

describe('json', () => {
  test.each(['9007199254740992', '9007199254740993', '-9007199254740993', '9007199254740993.0', '1e21'])(
    'the whole number %s in attributes is refused: it may have been another',
    (number) => {
      const { decode } = jsonCodec('CheckActionRequest');
      expect(decode(Buffer.from(`{"attributes":{"a":[{"n":${number}}]}}`))).toEqual({
        ok: false,
        fault: {
          kind: 'invalid_argument',
          field: 'attributes',
          problem: 'has a whole number beyond 2^53-1, which is not exact; send it as a string',
        },
      });
      expect(decode(Buffer.from('{"attributes":{"a":[9007199254740991, 0.5, "9007199254740993"]}}')).ok).toBe(true);
    },
  );

  test.each(NAMES)('%s written as JSON reads the same in another implementation and back', (name) => {
    const codec = jsonCodec(name);
    const binary = binaryCodec(name);
    const reference = protoRoot.lookupType(`svc.governance.v1.${name}`);
    fc.assert(
      fc.property(messageOf(messageShape(name)), (value) => {
        const message = value as Messages[typeof name] as never;
        const text = codec.encode(message);
        expect(codec.decode(Buffer.from(text))).toEqual({ ok: true, value: message });
        const foreign = reference.decode(binary.encode(message));
        expect(binary.decode(reference.encode(reference.fromJsonString(text)).finish())).toEqual({
          ok: true,
          value: message,
        });
        expect(codec.decode(Buffer.from(reference.toJsonString(foreign)))).toEqual({ ok: true, value: message });
      }),
      { numRuns: runs(20) },
    );
  });

  test.each(NAMES)('treats null fields of %s as absent, in the message and in its agents', (name) => {
    const shape = messageShape(name);
    const nulls = Object.fromEntries(shape.fields.map((field) => [field.name, null]));
    expect(jsonCodec(name).decode(Buffer.from(JSON.stringify(nulls)))).toEqual({
      ok: true,
      value: emptyMessage(shape),
    });
    if (!shape.byName.has('agent')) return;
    const agent = Object.fromEntries(messageShape('AgentId').fields.map((field) => [field.name, null]));
    expect(jsonCodec(name).decode(Buffer.from(JSON.stringify({ agent })))).toEqual({
      ok: true,
      value: { ...emptyMessage(shape), agent: { orgId: '', teamId: '', agentId: '' } },
    });
  });

  test.each([
    { outcome: { toString: 1 } },
    { outcome: ['OUTCOME_SUCCESS'] },
    { outcome: true },
    { outcome: 'outcome_success' },
    { outcome: 99 },
  ])('a value of an enum is its name or number, not %j', (message) => {
    expect(jsonCodec('CompleteOpRequest').decode(Buffer.from(JSON.stringify(message)))).toEqual({
      ok: false,
      fault: {
        kind: 'invalid_argument',
        field: 'outcome',
        problem: 'must be one of OUTCOME_UNSPECIFIED, OUTCOME_SUCCESS, OUTCOME_FAILURE',
      },
    });
  });

  const { decode } = jsonCodec('CheckActionRequest');
  const empty = emptyMessage(messageShape('CheckActionRequest')) as CheckActionRequest;
  const read = (text: string) => decode(Buffer.from(text));

  test('both spellings of a name are read, numbers may be strings, null is absent', () => {
    const message = {
      ...empty,
      agent: { orgId: 'acme', teamId: 'search', agentId: 'a' },
      traceId: 't',
      estimatedCostUsd: 0.5,
      dryRun: true,
    };
    expect(
      read(
        '{"agent":{"orgId":"acme","teamId":"search","agentId":"a"},"traceId":"t","estimatedCostUsd":0.5,"dryRun":true}',
      ),
    ).toEqual({ ok: true, value: message });
    expect(
      read(
        '{"agent":{"org_id":"acme","team_id":"search","agent_id":"a"},"trace_id":"t","estimated_cost_usd":"5e-1","dry_run":true}',
      ),
    ).toEqual({ ok: true, value: message });
    expect(
      read('{"agent":null,"traceId":null,"attributes":null,"estimatedCostUsd":null,"dryRun":null,"caller":null}'),
    ).toEqual({ ok: true, value: empty });
    expect(read('{"attributes":{"a":null,"b":[1,{"c":"ü"}]}}')).toEqual({
      ok: true,
      value: { ...empty, attributes: { a: null, b: [1, { c: 'ü' }] } },
    });
  });

  test.each([
    ['', 'body', 'is not valid JSON'],
    ['{', 'body', 'is not valid JSON, at character 1'],
    ['{"a":1} x', 'body', 'is not valid JSON, at character 8'],
    ['null', 'body', 'must be an object'],
    ['[]', 'body', 'must be an object'],
    ['"x"', 'body', 'must be an object'],
    ['{"nope":1}', 'nope', 'is not a field of CheckActionRequest'],
    ['{"__proto__":{}}', '__proto__', 'is not a field of CheckActionRequest'],
    ['{"constructor":{}}', 'constructor', 'is not a field of CheckActionRequest'],
    ['{"agent":{"nope":1}}', 'agent.nope', 'is not a field of AgentId'],
    ['{"agent":"acme"}', 'agent', 'must be an object'],
    ['{"agent":{"orgId":7}}', 'agent.org_id', 'must be a string'],
    ['{"agent":{"orgId":"a","org_id":"b"}}', 'agent.org_id', 'is given under both of its names'],
    ['{"credentialToken":"a","credential_token":"b"}', 'credential_token', 'is given under both of its names'],
    ['{"traceId":"a","trace_id":"b"}', 'trace_id', 'is given under both of its names'],
    ['{"spanId":"a","span_id":"b"}', 'span_id', 'is given under both of its names'],
    ['{"estimatedCostUsd":1,"estimated_cost_usd":2}', 'estimated_cost_usd', 'is given under both of its names'],
    ['{"dryRun":true,"dry_run":false}', 'dry_run', 'is given under both of its names'],
    ['{"correlationId":"a","correlation_id":"b"}', 'correlation_id', 'is given under both of its names'],
    ['{"traceId":7}', 'trace_id', 'must be a string'],
    ['{"dryRun":"true"}', 'dry_run', 'must be true or false'],
    ['{"dryRun":1}', 'dry_run', 'must be true or false'],
    ['{"estimatedCostUsd":"a lot"}', 'estimated_cost_usd', 'must be a number'],
    ['{"estimatedCostUsd":"0x10"}', 'estimated_cost_usd', 'must be a number'],
    ['{"estimatedCostUsd":true}', 'estimated_cost_usd', 'must be a number'],
    ['{"attributes":[]}', 'attributes', 'must be an object'],
    ['{"attributes":{"a":1e999}}', 'attributes', 'has a number that is not finite'],
    ['{"attributes":{"a":{"__proto__":1}}}', 'attributes', 'has a key named __proto__'],
    ['{"traceId":"\\ud800"}', 'body', 'has a string with an unpaired surrogate'],
    ['{"attributes":{"a":[{"\\udc00":1}]}}', 'body', 'has a string with an unpaired surrogate'],
  ])('%s is refused and the field named', (text, field, problem) => {
    expect(read(text)).toEqual({ ok: false, fault: { kind: 'invalid_argument', field, problem } });
  });

  test('an error never repeats more of the body than a field name', () => {
    const secret = read('{"credentialToken":"svcagent_secret"x}');
    expect(JSON.stringify(secret)).not.toContain('secret');
    expect(read(`{"${'x'.repeat(5000)}":1}`)).toMatchObject({ fault: { field: 'x'.repeat(64) } });
    expect(decode(Buffer.from([0x7b, 0x22, 0xc3, 0x28, 0x22, 0x3a, 0x31, 0x7d]))).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'body', problem: 'is not valid UTF-8' },
    });
  });

  test('an escaped surrogate pair is one character and accepted', () => {
    expect(read('{"traceId":"\\ud83d\\ude00"}')).toEqual({ ok: true, value: { ...empty, traceId: '😀' } });
  });

  test('JSON that is 10,000 deep or has 5,000 keys is refused anywhere', () => {
    const deep = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
    expect(read(`{"attributes":${deep(32)}}`)).toMatchObject({ ok: true });
    expect(read(`{"attributes":${deep(33)}}`)).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'attributes', problem: 'is nested more than 32 levels deep' },
    });
    expect(read(`{"attributes":${deep(10_000)}}`)).toMatchObject({
      ok: false,
      fault: { problem: 'is nested more than 32 levels deep' },
    });
    expect(read(`{"attributes":{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}}`)).toMatchObject({
      ok: false,
      fault: { problem: 'is nested more than 32 levels deep' },
    });
    expect(read(`{"action":${deep(10_000)}}`)).toMatchObject({
      ok: false,
      fault: { field: 'action', problem: 'must be a string' },
    });
    expect(read(`{"action":${deep(10_000).replace('1', '"\\u0041"')}}`)).toMatchObject({
      ok: false,
      fault: { field: 'action' },
    });
    const keys = JSON.stringify(Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`k${index}`, index])));
    expect(read(`{"attributes":${keys}}`)).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'attributes', problem: 'has more than 1000 keys' },
    });
    expect(read(`{"attributes":{"a":[${'0,'.repeat(10_000)}0]}}`)).toMatchObject({
      fault: { problem: 'has more than 10000 list items' },
    });
  });

  const TOO_MANY_VALUES = {
    ok: false,
    fault: { kind: 'invalid_argument', field: 'body', problem: 'has more values than the limits on attributes allow' },
  };

  test.each([
    ['items', `{"attributes":{"a":[${'0,'.repeat(30_000)}0]}}`],
    ['lists in each other', '['.repeat(30_000)],
    ['objects side by side', `[${'{}'.repeat(30_000)}]`],
    ['keys', `{"attributes":{${Array.from({ length: 30_000 }, (_, index) => `"${index}":0`).join()}}}`],
  ])('more %s than a check may have are refused before parsing, which takes long', (_what, text) => {
    const parse = vi.spyOn(JSON, 'parse');
    onTestFinished(() => parse.mockRestore());
    expect(read(text)).toEqual(TOO_MANY_VALUES);
    expect(parse).not.toHaveBeenCalled();
  });

  test('accepts all that attributes may hold, also texts of commas and brackets', () => {
    const keys = Array.from({ length: 999 }, (_, index) => `"k${index}":[]`);
    const most = `{"agent":{"orgId":"o","teamId":"t","agentId":"a"},"attributes":{${keys.join()},"list":[${'{},'.repeat(9_999)}{}]}}`;
    expect(read(most)).toMatchObject({ ok: true });
    for (const text of [',[{'.repeat(30_000), '\\",'.repeat(30_000), '\\\\'.repeat(30_000)])
      expect(read(`{"action":"${text}"}`)).toMatchObject({ ok: true });
    expect(read(`{"action":"${','.repeat(30_000)}`)).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'body', problem: expect.stringMatching(/^is not valid JSON/) },
    });
  });

  test('a batch of usual size holds as many values as fit into it', () => {
    const requests = Array.from({ length: 9 }, () => `{"attributes":{"a":[${'0,'.repeat(9_999)}0]}}`);
    expect(
      jsonCodec('BatchCheckActionsRequest').decode(Buffer.from(`{"requests":[${requests.join()}]}`)),
    ).toMatchObject({
      ok: true,
    });
  });

  test('an item of a batch is named by its position', () => {
    const batch = jsonCodec('BatchCheckActionsRequest');
    expect(batch.decode(Buffer.from('{"requests":[{"traceId":"t"},{"agent":{"orgId":1}}]}'))).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'requests[1].agent.org_id', problem: 'must be a string' },
    });
    expect(batch.decode(Buffer.from('{"requests":[null]}'))).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'requests[0]', problem: 'must not be null' },
    });
    expect(batch.decode(Buffer.from('{"requests":{}}'))).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'requests', problem: 'must be a list' },
    });
  });

  test('agent requests are read as strictly as checks', () => {
    const acknowledgement = (text: string) => jsonCodec('AckOpControlRequest').decode(Buffer.from(text));
    expect(acknowledgement('{"nope":1}')).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'nope', problem: 'is not a field of AckOpControlRequest' },
    });
    expect(acknowledgement('{"opId":"t:s","op_id":"t:t"}')).toEqual({
      ok: false,
      fault: { kind: 'invalid_argument', field: 'op_id', problem: 'is given under both of its names' },
    });
    for (const zero of ['0', '"0"', 'null'])
      expect(acknowledgement(`{"op_id":"t:s","sequence":${zero}}`)).toMatchObject({
        ok: true,
        value: { opId: 't:s', sequence: 0 },
      });
  });

  test.each([
    ['{"sequence":-1}'],
    ['{"sequence":1.5}'],
    ['{"sequence":"9007199254740993"}'],
    ['{"sequence":"0x1"}'],
    ['{"sequence":[]}'],
  ])('%s is not a sequence number', (text) => {
    expect(jsonCodec('AckOpControlRequest').decode(Buffer.from(text))).toEqual({
      ok: false,
      fault: {
        kind: 'invalid_argument',
        field: 'sequence',
        problem: 'must be a whole number from 0 to 9007199254740991',
      },
    });
  });

  test('a denied or pending answer says why, until when, and by which approval', () => {
    const answer = {
      ...(emptyMessage(messageShape('CheckActionResponse')) as Messages['CheckActionResponse']),
      decision: 'pending',
      cause: 'operation_state',
      tier: 'team',
      period: 'daily',
      resetsAt: Date.UTC(2026, 10, 26, 23, 0, 0, 5),
      approvalId: 'a-1',
      obligations: [{ id: 'o', type: 'redact', properties: { paths: ['a.b'] } }],
      opHome: 'h1',
      remedy: 'write below /tmp',
    } as const;
    const { encode, decode } = jsonCodec('CheckActionResponse');
    expect(JSON.parse(encode(answer))).toEqual({
      decision: 'DECISION_PENDING',
      cause: 'DECISION_CAUSE_OPERATION_STATE',
      tier: 'BUDGET_TIER_TEAM',
      period: 'BUDGET_PERIOD_DAILY',
      resetsAt: '2026-11-26T23:00:00.005Z',
      approvalId: 'a-1',
      obligations: [{ id: 'o', type: 'redact', properties: { paths: ['a.b'] } }],
      opHome: 'h1',
      remedy: 'write below /tmp',
    });
    expect(decode(Buffer.from(encode(answer)))).toEqual({ ok: true, value: answer });
    const { encode: pack, decode: unpack } = binaryCodec('CheckActionResponse');
    expect(unpack(pack(answer))).toEqual({ ok: true, value: answer });
  });

  test.each(['yesterday', '1969-12-31T23:59:59Z', 7, '2026-13-01T00:00:00Z'])('%j is no time', (resetsAt) => {
    expect(jsonCodec('CheckActionResponse').decode(Buffer.from(JSON.stringify({ resetsAt })))).toEqual({
      ok: false,
      fault: {
        kind: 'invalid_argument',
        field: 'resets_at',
        problem: 'must be a time from 1970 to 9999, as in RFC 3339',
      },
    });
  });

  test('an answer has lowerCamelCase names, enum names, string int64 and a decision', () => {
    const { encode } = jsonCodec('CheckActionResponse');
    expect(
      encode({
        decision: 'deny',
        reason: 'say "no"\n',
        policy: 'p',
        ruleId: 'r',
        opId: 't:s',
        opState: 'terminated',
        auditId: 12,
        correlationId: 'ü',
        cause: 'unspecified',
        tier: 'unspecified',
        period: 'unspecified',
        resetsAt: undefined,
        approvalId: '',
        obligations: [],
        opHome: '',
        remedy: '',
      }),
    ).toBe(
      '{"decision":"DECISION_DENY","reason":"say \\"no\\"\\n","policy":"p","ruleId":"r","opId":"t:s","opState":"OP_STATE_TERMINATED","auditId":"12","correlationId":"ü"}',
    );
    expect(
      encode({
        decision: 'unspecified',
        reason: '',
        policy: '',
        ruleId: '',
        opId: '',
        opState: 'unspecified',
        auditId: 0,
        correlationId: '',
        cause: 'unspecified',
        tier: 'unspecified',
        period: 'unspecified',
        resetsAt: undefined,
        approvalId: '',
        obligations: [],
        opHome: '',
        remedy: '',
      }),
    ).toBe('{"decision":"DECISION_UNSPECIFIED"}');
    expect(
      jsonCodec('RecordUsageResponse').encode({
        status: 'limit_exceeded',
        tier: 'org',
        period: 'monthly',
        costUsd: undefined,
      }),
    ).toBe('{"status":"BUDGET_STATUS_LIMIT_EXCEEDED","tier":"BUDGET_TIER_ORG","period":"BUDGET_PERIOD_MONTHLY"}');
    expect(jsonCodec('DeregisterAgentResponse').encode({})).toBe('{}');
    const none = {
      reason: '',
      policy: '',
      ruleId: '',
      opId: '',
      opState: 'unspecified',
      auditId: 0,
      correlationId: '',
      cause: 'unspecified',
      tier: 'unspecified',
      period: 'unspecified',
      resetsAt: undefined,
      approvalId: '',
      obligations: [] as never[],
      opHome: '',
      remedy: '',
    } as const;
    expect(
      jsonCodec('BatchCheckActionsResponse').encode({
        responses: [
          { ...none, decision: 'allow' },
          { ...none, decision: 'unspecified', error: { code: 'overloaded', message: 'm', retryAfterSecs: 3 } },
        ],
      }),
    ).toBe(
      '{"responses":[{"decision":"DECISION_ALLOW"},{"decision":"DECISION_UNSPECIFIED","error":{"code":"overloaded","message":"m","retryAfterSecs":3}}]}',
    );
  });
});

import type { Metadata } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import type { OpId } from '../../../src/core/base/ids.ts';
import { fail } from '../../../src/core/base/result.ts';
import { binaryCodec } from '../../../src/doors/proto/binary.ts';
import type { CheckActionRequest, Messages } from '../../../src/doors/proto/messages.ts';
import { READ_KEY, TOKEN, until, WRITE_KEY } from '../../support/fake-ports.ts';
import { AGENT, bearer, check, checkAction, crawler, POLICY, refusal, scene, unary, withScene } from './harness.ts';

withScene();

describe('methods', () => {
  test('a batch is answered in order, and a malformed item fails it untouched', async () => {
    const batch = (requests: CheckActionRequest[]) =>
      unary(`${POLICY}/BatchCheckActions`, 'BatchCheckActionsRequest', 'BatchCheckActionsResponse', { requests });
    const requests = Array.from({ length: 1000 }, (_, index) =>
      check({ spanId: `s${index}`, correlationId: String(index), action: index % 2 === 0 ? 'tool.call' : 'other' }),
    );
    const { responses } = await batch(requests);
    expect(responses.map(({ correlationId }) => Number(correlationId))).toEqual(requests.map((_, index) => index));
    expect(responses.slice(0, 2)).toMatchObject([
      { decision: 'allow', opId: 'trace:s0' },
      { decision: 'deny', opId: 'trace:s1' },
    ]);
    scene.gateway.asked.length = 0;
    expect(await refusal(batch([check(), check({ traceId: '' })]))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      details:
        'requests[1].trace_id: must be 1 to 256 bytes without whitespace, control or invisible characters, or ":"',
    });
    expect(await refusal(batch([]))).toMatchObject({ details: 'requests: must have 1 to 1000 items' });
    expect(await refusal(batch([...requests, check()]))).toMatchObject({
      details: 'requests: must have 1 to 1000 items',
    });
    expect(scene.gateway.asked).toEqual([]);
  });

  test('a batch may have four times the bytes of a message, and a check those of one', async () => {
    const batch = (sizes: number[]) =>
      unary(`${POLICY}/BatchCheckActions`, 'BatchCheckActionsRequest', 'BatchCheckActionsResponse', {
        requests: sizes.map((size, index) => check({ spanId: `s${index}`, attributes: { text: 'x'.repeat(size) } })),
      });
    expect((await batch([1_000_000, 1_000_000, 1_000_000, 1_000_000])).responses).toHaveLength(4);
    scene.gateway.asked.length = 0;
    expect(await refusal(batch([1, 1_100_000]))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      details: 'requests[1]: must be at most 1048576 bytes',
    });
    expect(await refusal(batch(Array.from({ length: 5 }, () => 1_000_000)))).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
    });
    expect(scene.gateway.asked).toEqual([]);
  });

  test('registering needs the write scope; a token is generated or supplied', async () => {
    const register = (request: Partial<Messages['RegisterAgentRequest']>, metadata?: Metadata) =>
      unary(
        `${AGENT}/RegisterAgent`,
        'RegisterAgentRequest',
        'RegisterAgentResponse',
        { agent: crawler, credentialToken: '', parent: undefined, ...request },
        metadata,
      );
    expect(await register({}, bearer(WRITE_KEY))).toEqual({
      agent: crawler,
      credentialToken: expect.stringMatching(/^svcagent_[\w-]{43}$/) as string,
      rotated: false,
    });
    expect(
      await register({ credentialToken: TOKEN, parent: { ...crawler, agentId: 'boss' } }, bearer(WRITE_KEY)),
    ).toMatchObject({ credentialToken: '' });
    expect(scene.gateway.asked[1]).toMatchObject({
      type: 'register-agent',
      principal: { subject: 'key:w' },
      parent: { agentId: 'boss' },
    });
    expect(await refusal(register({}))).toMatchObject({ code: 'UNAUTHENTICATED' });
    expect(await refusal(register({}, bearer(READ_KEY)))).toMatchObject({ code: 'PERMISSION_DENIED' });
    expect(await refusal(register({ credentialToken: 'short' }, bearer(WRITE_KEY)))).toMatchObject({
      details: 'credential_token: must be 32 to 1024 visible ASCII characters; omit it to have one generated',
    });
    expect(await refusal(register({ parent: { ...crawler, orgId: 'evil' } }, bearer(WRITE_KEY)))).toMatchObject({
      details: 'parent.org_id: must be the org of the agent',
    });
    const deregister = (agent: Messages['DeregisterAgentRequest']['agent']) =>
      unary(
        `${AGENT}/DeregisterAgent`,
        'DeregisterAgentRequest',
        'DeregisterAgentResponse',
        { agent },
        bearer(WRITE_KEY),
      );
    expect(await refusal(deregister({ ...crawler, agentId: 'nobody' }))).toMatchObject({ code: 'NOT_FOUND' });
    expect(await refusal(deregister(undefined))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      details: 'agent: is required',
    });
  });

  test('completing an operation records its cost under its own name', async () => {
    expect(
      await unary(`${AGENT}/CompleteOp`, 'CompleteOpRequest', 'CompleteOpResponse', {
        agent: crawler,
        credentialToken: TOKEN,
        opId: 't:s',
        costUsd: 0.5,
      }),
    ).toEqual({ opId: 't:s', opState: 'completing' });
    expect(scene.gateway.asked).toMatchObject([
      { type: 'record-usage', agent: crawler, costMicroUsd: 500_000, opId: 't:s', usageId: 'complete:t:s' },
      { type: 'complete-op', opId: 't:s' },
    ]);
    expect(
      await refusal(
        unary(`${AGENT}/CompleteOp`, 'CompleteOpRequest', 'CompleteOpResponse', {
          agent: crawler,
          credentialToken: TOKEN,
          opId: 'x',
          costUsd: undefined,
        }),
      ),
    ).toMatchObject({
      details:
        'op_id: must be <trace_id>:<span_id>, each 1 to 256 bytes without whitespace, control or invisible characters, or ":"',
    });
  });

  test('an operation whose cost could not be recorded is not completed, for a retry', async () => {
    scene.gateway.answer = ({ type }) =>
      type === 'record-usage'
        ? { reply: fail({ kind: 'store_unreachable', retryAfterSecs: 1 }), auditId: undefined }
        : undefined;
    const completed = unary(`${AGENT}/CompleteOp`, 'CompleteOpRequest', 'CompleteOpResponse', {
      agent: crawler,
      credentialToken: TOKEN,
      opId: 't:s',
      costUsd: 0.5,
    });
    expect(await refusal(completed)).toMatchObject({ code: 'UNAVAILABLE', word: 'store_unreachable' });
    expect(scene.gateway.asked.map(({ type }) => type)).toEqual(['record-usage']);
  });

  test('a refused completion has recorded its cost: no retry is needed', async () => {
    const refusals = [
      { kind: 'invalid_transition', opId: 't:s' as OpId, from: 'paused', trigger: 'complete' },
      { kind: 'not_found', what: 'operation t:s' },
    ] as const;
    for (const fault of refusals) {
      scene.gateway.asked.length = 0;
      scene.gateway.answer = ({ type }) =>
        type === 'complete-op' ? { reply: fail(fault), auditId: undefined } : undefined;
      const completed = unary(`${AGENT}/CompleteOp`, 'CompleteOpRequest', 'CompleteOpResponse', {
        agent: crawler,
        credentialToken: TOKEN,
        opId: 't:s',
        costUsd: 0.5,
      });
      expect(await refusal(completed)).toMatchObject({ word: fault.kind });
      expect(scene.gateway.asked).toMatchObject([
        { type: 'record-usage', costMicroUsd: 500_000, usageId: 'complete:t:s' },
        { type: 'complete-op' },
      ]);
    }
  });

  test('a method that the gateway does not implement is UNIMPLEMENTED', async () => {
    const waiting = unary(`${POLICY}/Nothing`, 'CheckActionRequest', 'CheckActionResponse', check());
    expect(await refusal(waiting)).toMatchObject({ code: 'UNIMPLEMENTED' });
  });

  test('usage is answered with the first limit it exceeds', async () => {
    const record = (costUsd: number | undefined) =>
      unary(`${AGENT}/RecordUsage`, 'RecordUsageRequest', 'RecordUsageResponse', {
        agent: crawler,
        credentialToken: TOKEN,
        costUsd,
        opId: undefined,
        usageId: undefined,
      });
    expect(await record(1)).toEqual({ status: 'ok', tier: 'unspecified', period: 'unspecified' });
    expect(await record(6)).toEqual({ status: 'limit_exceeded', tier: 'team', period: 'daily' });
    expect(await refusal(record(undefined))).toMatchObject({
      details: 'cost_usd: is required, or model with its tokens',
    });
    expect(await refusal(record(-1))).toMatchObject({ details: 'cost_usd: must be a number from 0 to 1000000' });
  });

  test('a large batch stops when its call is cancelled', async () => {
    const call = scene.client.makeUnaryRequest(
      `${POLICY}/BatchCheckActions`,
      (bytes: Buffer) => bytes,
      (bytes) => bytes,
      binaryCodec('BatchCheckActionsRequest').encode({
        requests: Array.from({ length: 300 }, (_, index) =>
          check({ spanId: `s${index}`, resource: 'x'.repeat(1_500) }),
        ),
      }),
      () => undefined,
    );
    const settle: (() => void)[] = [];
    const { answer } = scene.gateway;
    scene.gateway.answer = () =>
      new Promise((resolve) => {
        settle.push(() => resolve(undefined as never));
      });
    await until(() => scene.gateway.asked.length > 0);
    const asked = scene.gateway.asked.length;
    call.cancel();
    scene.gateway.answer = answer;
    // on the same connection: the server has learned of it by then
    for (let later = 0; later < 2; later += 1) await checkAction(check());
    for (const settleOne of settle) settleOne();
    await until(() => scene.gateway.largeBatches.inUse === 0);
    expect(scene.gateway.asked).toHaveLength(asked + 2);
  });
});

import { describe, expect, test } from 'vitest';
import { fail } from '../../../src/core/base/result.ts';
import type { ConnectReply } from '../../../src/doors/connect/connect.ts';
import { binaryCodec } from '../../../src/doors/proto/binary.ts';
import { until, WRITE_KEY } from '../../support/fake-ports.ts';
import {
  BATCH,
  bodyOf,
  CHECK,
  call,
  gateway,
  headOf,
  largeBatch,
  methods,
  partsOf,
  request,
  withMethods,
} from './harness.ts';

withMethods();

describe('batches', () => {
  const orgsAsked = (): readonly string[] =>
    gateway.asked.flatMap((command) => (command.type === 'check' ? [command.agent.orgId] : []));

  test('a large batch sends one slice at a time, so that other checks come between', async () => {
    let answer: (() => void)[] = [];
    gateway.answer = () =>
      new Promise((resolve) => {
        answer.push(() => resolve(undefined as never));
      });
    const reply = call(BATCH, largeBatch('noisy'));
    const slices: number[] = [];
    for (let asked = 0; asked < 100; asked += slices.at(-1)!) {
      await until(() => gateway.asked.length > asked);
      slices.push(gateway.asked.length - asked);
      const waiting = answer;
      answer = [];
      for (const settle of waiting) settle();
    }
    expect(slices).toEqual([...Array.from({ length: 16 }, () => 6), 4]);
    expect(await reply).toMatchObject({ status: 200 });
  });

  test("a large protobuf batch reads as sent, although its body's memory is reused", async () => {
    const item = {
      ...request,
      resource: 'x'.repeat(1000),
      attributes: undefined,
      estimatedCostUsd: 0,
      caller: undefined,
      dryRun: false,
      correlationId: '',
      supportedObligations: [],
      opHome: '',
    };
    const body = binaryCodec('BatchCheckActionsRequest').encode({
      requests: Array.from({ length: 300 }, (_, index) => ({ ...item, spanId: `s${index}` })),
    });
    const reply = new Promise<ConnectReply>((resolve) => {
      methods.get(BATCH)!.answer(headOf({ 'content-type': 'application/proto' }), body, resolve);
    });
    body.fill(0);
    const { status, content } = partsOf(await reply);
    expect(status).toBe(200);
    const answers = binaryCodec('BatchCheckActionsResponse').decode(content as Buffer);
    expect(answers.ok && answers.value.responses.map(({ opId }) => opId)).toEqual(
      Array.from({ length: 300 }, (_, index) => `trace:s${index}`),
    );
  });

  test('a check or a small batch after a large batch goes before it', async () => {
    const large = call(BATCH, largeBatch('noisy'));
    const small = call(
      BATCH,
      JSON.stringify({ requests: [{ ...request, agent: { ...request.agent, orgId: 'calm' } }] }),
    );
    const single = call(CHECK, JSON.stringify({ ...request, agent: { ...request.agent, orgId: 'calm' } }));
    await Promise.all([large, small, single]);
    expect(orgsAsked().slice(0, 3)).toEqual(['calm', 'calm', 'noisy']);
  });

  test('the large batches of one org leave a turn to those of another', async () => {
    const replies = [
      ...['noisy', 'noisy', 'noisy', 'noisy', 'noisy', 'noisy'].map((orgId) => call(BATCH, largeBatch(orgId))),
      call(BATCH, largeBatch('calm')),
    ];
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200, 200]);
    expect(orgsAsked().indexOf('calm')).toBeLessThanOrEqual(300);
  });

  test('a large batch is validated whole before its first check', async () => {
    expect(bodyOf(await call(BATCH, largeBatch('acme', { traceId: '' })))).toMatchObject({
      status: 400,
      message: expect.stringContaining('requests[99].trace_id: ') as string,
    });
    expect(bodyOf(await call(BATCH, largeBatch('acme', { nope: 1 })))).toMatchObject({
      status: 400,
      message: 'requests[99].nope: is not a field of CheckActionRequest',
    });
    expect(bodyOf(await call(BATCH, largeBatch('acme').replace('"traceId"', '"nope"')))).toMatchObject({
      status: 400,
      message: 'requests[0].nope: is not a field of CheckActionRequest',
    });
    expect(gateway.asked).toEqual([]);
  });

  test('a large batch stops when its client has gone, and finished checks stand', async () => {
    const send = (client: { readonly cancelled: boolean }) =>
      new Promise<ConnectReply>((resolve) => {
        const head = headOf({ 'content-type': 'application/json' }, { client });
        methods.get(BATCH)!.answer(head, Buffer.from(largeBatch('acme')), resolve);
      });
    await send({ cancelled: true });
    expect(gateway.asked).toEqual([]);

    const client = { cancelled: false };
    gateway.answer = () => {
      client.cancelled = true;
      return undefined;
    };
    await send(client);
    expect(gateway.asked).toHaveLength(6);
    expect(gateway.largeBatches.inUse).toBe(0);
  });

  test('large batches beyond the limit are refused at once, first those of one org', async () => {
    gateway.answer = () => new Promise(() => undefined);
    for (let nth = 0; nth < 16; nth += 1) void call(BATCH, largeBatch('noisy'));
    expect(bodyOf(await call(BATCH, largeBatch('noisy')))).toMatchObject({
      status: 429,
      code: 'resource_exhausted',
      message: expect.stringContaining('the number of large batches') as string,
    });
    expect(
      await Promise.race([
        call(BATCH, largeBatch('calm')),
        new Promise((resolve) => setImmediate(() => resolve('waits'))),
      ]),
    ).toBe('waits');
  });

  test("large batches without a valid credential take few places, none of an org's", async () => {
    gateway.answer = () => new Promise(() => undefined);
    const now = (batch: string, headers?: Record<string, string>) =>
      Promise.race([call(BATCH, batch, headers), new Promise((resolve) => setImmediate(() => resolve('waits')))]);
    for (let nth = 0; nth < 4; nth += 1)
      expect(await now(largeBatch('acme', {}, nth % 2 === 0 ? '' : 'agt_of-nobody'))).toBe('waits');
    expect(bodyOf(await call(BATCH, largeBatch('acme', {}, '')))).toMatchObject({
      status: 429,
      code: 'resource_exhausted',
      message: expect.stringContaining('the number of large batches') as string,
    });
    for (let nth = 0; nth < 8; nth += 1) expect(await now(largeBatch('acme'))).toBe('waits');
    for (let nth = 0; nth < 8; nth += 1)
      expect(await now(largeBatch('acme', {}, ''), { authorization: `Bearer ${WRITE_KEY}` })).toBe('waits');
    expect(bodyOf(await call(BATCH, largeBatch('acme')))).toMatchObject({ status: 429 });
  });

  test('a large batch refused for its bearer or first check waits for no place', async () => {
    gateway.answer = () => new Promise(() => undefined);
    for (let nth = 0; nth < 4; nth += 1) void call(BATCH, largeBatch('acme', {}, ''));
    expect(bodyOf(await call(BATCH, largeBatch('acme', {}, '')))).toMatchObject({ status: 429 });
    expect(bodyOf(await call(BATCH, largeBatch('acme', {}, ''), { authorization: 'Bearer wrong' }))).toMatchObject({
      status: 401,
    });
    expect(
      bodyOf(await call(BATCH, largeBatch('acme', {}, '').replace('"traceId":"trace"', '"traceId":""'))),
    ).toMatchObject({ status: 400, message: expect.stringContaining('requests[0].trace_id: ') as string });
    expect(gateway.largeBatches.inUse).toBe(4);
  });

  test('a batch of many checks sends few at a time while the gateway is busy', async () => {
    const batch = (spans: string): string =>
      JSON.stringify({
        requests: Array.from({ length: 300 }, (_, index) => ({ ...request, spanId: `${spans}${index}` })),
      });
    const answer: (() => void)[] = [];
    gateway.answer = () =>
      new Promise((resolve) => {
        answer.push(() => resolve(undefined as never));
      });
    const settle = (): void => {
      for (const each of answer.splice(0)) each();
    };
    const idle = call(BATCH, batch('idle'));
    await until(() => gateway.asked.length === 300);
    settle();
    expect(await idle).toMatchObject({ status: 200 });

    gateway.pending = 1_000;
    const busy = call(BATCH, batch('busy'));
    for (const asked of [128, 256, 300]) {
      await until(() => answer.length > 0);
      expect(gateway.asked.length - 300).toBe(asked);
      settle();
    }
    const { content, ...reply } = await busy;
    expect(reply).toMatchObject({ status: 200 });
    expect(
      (JSON.parse(content.toString()) as { responses: { opId: string }[] }).responses.map(({ opId }) => opId),
    ).toEqual(Array.from({ length: 300 }, (_, index) => `trace:busy${index}`));
  });

  test('a batch meeting a limit midway reports it per item and keeps other answers', async () => {
    const batch = async (...spans: string[]) => {
      const requests = spans.map((spanId) => ({ ...request, spanId, correlationId: `of ${spanId}` }));
      const { content, ...reply } = await call(BATCH, JSON.stringify({ requests }));
      return { ...reply, body: JSON.parse(content.toString()) as unknown };
    };
    gateway.answer = (command) =>
      command.type === 'check' && command.opId !== 'trace:s1'
        ? { reply: fail({ kind: 'rate_limited', retryAfterSecs: 7, limit: 60 }), auditId: undefined }
        : undefined;
    const error = {
      code: 'rate_limited',
      message: 'the rate limit of 60 requests per minute is exceeded; try again in 7 seconds',
      retryAfterSecs: 7,
    };
    expect(await batch('s1', 's2', 's3')).toMatchObject({
      status: 200,
      body: {
        responses: [
          { decision: 'DECISION_ALLOW', opId: 'trace:s1', auditId: '7', correlationId: 'of s1' },
          { decision: 'DECISION_UNSPECIFIED', correlationId: 'of s2', error },
          { decision: 'DECISION_UNSPECIFIED', correlationId: 'of s3', error },
        ],
      },
    });
    expect(await batch('s2', 's1')).toMatchObject({
      status: 200,
      body: {
        responses: [
          { correlationId: 'of s2', error },
          { decision: 'DECISION_ALLOW', opId: 'trace:s1' },
        ],
      },
    });
    expect(await batch('s2', 's3')).toMatchObject({
      status: 429,
      body: { code: 'resource_exhausted', message: error.message },
    });
  });
});

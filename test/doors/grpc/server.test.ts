import { execFile } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { describe, expect, test } from 'vitest';
import { fail } from '../../../src/core/base/result.ts';
import { createGrpcDoor } from '../../../src/doors/grpc/door.ts';
import { grpcError } from '../../../src/doors/grpc/status.ts';
import { listenForGrpc } from '../../../src/doors/shared/listener.ts';
import { READ_KEY, TOKEN, until, WRITE_KEY } from '../../support/fake-ports.ts';
import {
  AGENT,
  bearer,
  check,
  checkAction,
  crawler,
  openChecks,
  openControl,
  POLICY,
  refusal,
  scene,
  unary,
  withScene,
} from './harness.ts';

withScene();

describe('server', () => {
  test('a check is answered with decision, reason and audit log position', async () => {
    expect(
      await checkAction(check({ correlationId: 'c-1', estimatedCostUsd: 0.25, attributes: { size: 12, tags: ['a'] } })),
    ).toEqual({
      decision: 'allow',
      reason: 'web tools only',
      policy: 'search-team',
      ruleId: 'web-only',
      opId: 'trace:span',
      opState: 'running',
      auditId: 7,
      correlationId: 'c-1',
      cause: 'unspecified',
      tier: 'unspecified',
      period: 'unspecified',
      resetsAt: undefined,
      approvalId: '',
      remedy: '',
      obligations: [],
      opHome: '',
    });
    expect(scene.gateway.asked).toEqual([
      {
        type: 'check',
        agent: crawler,
        credential: 'J1I7Bo4n-PTHj7WoXqFlhx6fEt_wUrBivB5oHKDaec4',
        principal: undefined,
        opId: 'trace:span',
        action: 'tool.call',
        resource: 'web_search',
        attributes: { size: 12, tags: ['a'] },
        estimatedCostMicroUsd: 250_000,
        caller: undefined,
        dryRun: false,
      },
    ]);
  });

  test('an agent without a token is vouched for by a bearer with write scope only', async () => {
    await checkAction(check({ credentialToken: '' }), bearer(WRITE_KEY));
    expect(scene.gateway.asked[0]).toMatchObject({ credential: undefined, principal: { subject: 'key:w' } });
    expect(await refusal(checkAction(check({ credentialToken: '' }), bearer(READ_KEY)))).toEqual({
      code: 'PERMISSION_DENIED',
      details: 'this requires the write scope; the credential has read',
      word: 'insufficient_scope',
      retryAfter: undefined,
    });
    expect(await refusal(checkAction(check({ credentialToken: '' }), bearer('wrong')))).toMatchObject({
      code: 'UNAUTHENTICATED',
    });
    // With a token the bearer is not looked at; without either, the governor denies.
    await checkAction(check(), bearer('wrong'));
    await checkAction(check({ credentialToken: '' }));
    expect(scene.gateway.asked.slice(1)).toMatchObject([
      { principal: undefined },
      { credential: undefined, principal: undefined },
    ]);
  });

  test('rejects a request with two credentials', async () => {
    for (const pair of [
      [WRITE_KEY, 'wrong'],
      ['wrong', WRITE_KEY],
      [WRITE_KEY, WRITE_KEY],
    ]) {
      const metadata = new Metadata();
      metadata.set('authorization', pair.map((key) => `Bearer ${key}`).join(', '));
      expect(await refusal(checkAction(check({ credentialToken: '' }), metadata))).toMatchObject({
        code: 'UNAUTHENTICATED',
        details: expect.stringContaining('must have the form Bearer <credential>'),
      });
    }
    expect(scene.gateway.asked).toEqual([]);
  });

  test.each([
    ['no agent', { agent: undefined }, 'agent: is required'],
    [
      'an empty team',
      { agent: { ...crawler, teamId: '' } },
      'agent.team_id: must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".."',
    ],
    [
      'an empty trace',
      { traceId: '' },
      'trace_id: must be 1 to 256 bytes without whitespace, control or invisible characters, or ":"',
    ],
    [
      'a colon in the span',
      { spanId: 'a:b' },
      'span_id: must be 1 to 256 bytes without whitespace, control or invisible characters, or ":"',
    ],
    [
      'a control character',
      { spanId: 'a\u0007' },
      'span_id: must be 1 to 256 bytes without whitespace, control or invisible characters, or ":"',
    ],
    [
      'a zero-width space',
      { spanId: 'a\u200b' },
      'span_id: must be 1 to 256 bytes without whitespace, control or invisible characters, or ":"',
    ],
    [
      'a trace of 257 bytes',
      { traceId: 'x'.repeat(257) },
      'trace_id: must be 1 to 256 bytes without whitespace, control or invisible characters, or ":"',
    ],
    ['no action', { action: '' }, 'action: is required'],
    ['an action of 258 bytes in 129 characters', { action: 'ä'.repeat(129) }, 'action: must be at most 256 bytes'],
    ['a huge resource', { resource: 'x'.repeat(2049) }, 'resource: must be at most 2048 bytes'],
    ['a huge token', { credentialToken: 'x'.repeat(1025) }, 'credential_token: must be at most 1024 bytes'],
    ['a negative cost', { estimatedCostUsd: -1 }, 'estimated_cost_usd: must be a number from 0 to 1000000'],
    ['a cost that is no number', { estimatedCostUsd: NaN }, 'estimated_cost_usd: must be a number from 0 to 1000000'],
    ['an absurd cost', { estimatedCostUsd: 1_000_001 }, 'estimated_cost_usd: must be a number from 0 to 1000000'],
    [
      'a caller with a slash',
      { caller: { ...crawler, agentId: 'a/b' } },
      'caller.agent_id: must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".."',
    ],
  ])('a check with %s is refused before anything is asked', async (_what, fields, details) => {
    expect(await refusal(checkAction(check(fields)))).toEqual({
      code: 'INVALID_ARGUMENT',
      details,
      word: 'invalid_argument',
      retryAfter: undefined,
    });
    expect(scene.gateway.asked).toEqual([]);
  });

  test('a defect in a check is logged, its caller gets `internal`, others their answers', async () => {
    const defect = new Error('a defect');
    const { link } = scene.gateway;
    Object.assign(scene.gateway, {
      link: {
        ...link,
        ask: () => {
          throw defect;
        },
      },
    });
    const { call, answers, ended } = openChecks();
    call.write(check({ correlationId: 'one' }));
    expect(await refusal(checkAction(check()))).toMatchObject({ code: 'INTERNAL', word: 'internal' });
    await until(() => answers.length === 1);
    Object.assign(scene.gateway, { link });
    call.write(check({ correlationId: 'other' }));
    await until(() => answers.length === 2);
    expect(answers.map(({ correlationId, decision, error }) => [correlationId, decision, error?.code])).toEqual([
      ['one', 'unspecified', 'internal'],
      ['other', 'allow', undefined],
    ]);
    // The stream also asks whether its caller is known.
    expect(scene.defects).toEqual([defect, defect, defect]);
    call.end();
    expect(await ended).toMatchObject({ code: 'OK' });
  });

  test("undecodable or oversized messages are refused as the caller's fault", async () => {
    expect(await refusal(checkAction(Buffer.from([0x0a, 0x7f, 0x01])))).toMatchObject({
      code: 'INVALID_ARGUMENT',
      details: 'message: is truncated or has a wrong length',
    });
    expect(await refusal(checkAction(check({ resource: 'x'.repeat(2 * 1024 * 1024) })))).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
      word: 'payload_too_large',
    });
    expect(await refusal(checkAction(check({ resource: 'x'.repeat(5 * 1024 * 1024) })))).toMatchObject({
      code: 'RESOURCE_EXHAUSTED',
    });
    await checkAction(check());
  });

  test('an overloaded gateway gives a retry time, and a lost audit log a denial', async () => {
    scene.gateway.answer = () => ({
      reply: fail({ kind: 'overloaded', retryAfterSecs: 3, what: 'the gateway' }),
      auditId: undefined,
    });
    expect(await refusal(checkAction(check()))).toEqual({
      code: 'RESOURCE_EXHAUSTED',
      details: 'the gateway is at its limit; try again in 3 seconds',
      word: 'overloaded',
      retryAfter: '3',
    });
    scene.gateway.answer = () => ({ reply: fail({ kind: 'audit_unavailable' }), auditId: undefined });
    expect(await refusal(checkAction(check()))).toMatchObject({ code: 'UNAVAILABLE', word: 'audit_unavailable' });
  });

  test('a defect behind the door is reported as internal, its message logged only', async () => {
    scene.gateway.answer = () => {
      throw new Error('secret detail');
    };
    const details = 'internal error; see the log of the gateway';
    expect(await refusal(checkAction(check()))).toMatchObject({ code: 'INTERNAL', details });
    expect(await openControl().ended).toEqual({ code: 'INTERNAL', details });
    const { call, answers, ended } = openChecks();
    call.write(check({ correlationId: 'c' }));
    call.end();
    expect(await ended).toMatchObject({ code: 'OK' });
    expect(answers).toMatchObject([
      { decision: 'unspecified', correlationId: 'c', error: { code: 'internal', message: details } },
    ]);
    expect(scene.defects).toEqual(Array.from({ length: 3 }, () => new Error('secret detail')));
  });

  test('a deadline ends an unanswered call, and its late answer is dropped', async () => {
    let release = (): void => undefined;
    scene.gateway.answer = () =>
      new Promise((resolve) => {
        release = () => resolve({ reply: fail({ kind: 'internal' }), auditId: undefined });
      });
    expect(await refusal(checkAction(check(), undefined, { deadline: Date.now() + 50 }))).toMatchObject({
      code: 'DEADLINE_EXCEEDED',
    });
    release();
    scene.gateway.answer = undefined;
    expect(await checkAction(check())).toMatchObject({ decision: 'allow' });
    expect(scene.defects).toEqual([]);
  });

  function bufCurl(method: string, data: string, ...flags: string[]): Promise<{ out: string; error: string }> {
    const buf = join(import.meta.dirname, '../../../node_modules/.bin/buf');
    return new Promise((resolve) => {
      execFile(
        buf,
        [
          'curl',
          '--protocol',
          'grpc',
          '--http2-prior-knowledge',
          ...flags,
          '-d',
          data,
          `http://${scene.address}${method}`,
        ],
        (_failed, out, error) => resolve({ out, error }),
      );
    });
  }

  test('a generic client works by reflection alone', async () => {
    const request = JSON.stringify({
      agent: crawler,
      credential_token: TOKEN,
      trace_id: 'trace',
      span_id: 'span',
      action: 'tool.call',
      attributes: { size: 12, deep: [{ a: null }] },
    });
    const { out, error } = await bufCurl(`${POLICY}/CheckAction`, request);
    expect(error).toBe('');
    expect(JSON.parse(out)).toEqual({
      decision: 'DECISION_ALLOW',
      reason: 'web tools only',
      policy: 'search-team',
      ruleId: 'web-only',
      opId: 'trace:span',
      opState: 'OP_STATE_RUNNING',
      auditId: '7',
    });
    expect(scene.gateway.asked).toMatchObject([{ attributes: { size: 12, deep: [{ a: null }] } }]);
    const refused = await bufCurl(`${POLICY}/CheckAction`, '{}');
    expect(JSON.parse(refused.error)).toMatchObject({ code: 'invalid_argument', message: 'agent: is required' });
  });

  test.each([
    '',
    'svc.governance.v1.PolicyService',
    'svc.governance.v1.AgentService',
    'svc.governance.v1.ApprovalService',
  ])('the health service reports "%s" as serving, and is found by reflection too', async (service) => {
    const { out, error } = await bufCurl('/grpc.health.v1.Health/Check', JSON.stringify({ service }));
    expect(error).toBe('');
    expect(JSON.parse(out)).toEqual({ status: 'SERVING' });
  });

  /** Watches the health of a service; the statuses so far. */
  function watchHealth(service: string): { readonly statuses: string[]; readonly stop: () => void } {
    const request = Buffer.concat([Buffer.from([0x0a, service.length]), Buffer.from(service)]);
    const statuses: string[] = [];
    const call = scene.client.makeServerStreamRequest(
      '/grpc.health.v1.Health/Watch',
      (bytes: Buffer) => bytes,
      (bytes) => ['unknown', 'serving', 'not serving'][bytes[1] ?? 0]!,
      request,
    );
    call.on('data', (status: string) => statuses.push(status));
    call.on('error', () => undefined); // that it was stopped
    return { statuses, stop: () => call.cancel() };
  }

  /** A message whose only field, number 1, is a text: what is asked of the health service. */
  const healthRequest = (service: string): Buffer => {
    const text = Buffer.from(service);
    const length: number[] = [];
    for (let rest = text.length; ; rest >>>= 7) {
      length.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
      if (rest <= 0x7f) return Buffer.concat([Buffer.from([0x0a, ...length]), text]);
    }
  };
  const same = (bytes: Buffer): Buffer => bytes;
  const health = (service: string) =>
    new Promise<Buffer | undefined>((resolve, reject) => {
      scene.client.makeUnaryRequest(
        '/grpc.health.v1.Health/Check',
        same,
        same,
        healthRequest(service),
        (error, value) => (error === null ? resolve(value) : reject(error)),
      );
    });

  test('a refusal quotes only the beginning of a long name', async () => {
    expect(await health('')).toEqual(Buffer.from([0x08, 0x01]));
    expect(await health(POLICY.slice(1))).toEqual(Buffer.from([0x08, 0x01]));
    expect(await refusal(health('nope'))).toMatchObject({
      code: 'NOT_FOUND',
      details: 'Health status unknown for service nope',
    });
    expect(await refusal(health('n'.repeat(4_000)))).toMatchObject({
      code: 'NOT_FOUND',
      details: `Health status unknown for service ${'n'.repeat(64)}`,
    });
    expect(await refusal(health('n'.repeat(5_000)))).toMatchObject({ code: 'RESOURCE_EXHAUSTED' });
    const key = Buffer.from('k'.repeat(100_000));
    const entry = Buffer.concat([Buffer.from([0x0a, 0xa0, 0x8d, 0x06]), key]); // of attributes: a key, and no value
    const attributes = Buffer.concat([Buffer.from([0x3a, 0xa8, 0x8d, 0x06, 0x0a, 0xa4, 0x8d, 0x06]), entry]);
    expect(
      await refusal(unary(`${POLICY}/CheckAction`, 'CheckActionRequest', 'CheckActionResponse', attributes)),
    ).toMatchObject({
      code: 'INVALID_ARGUMENT',
      details: `attributes.${'k'.repeat(64)}: has no value`,
    });
    expect((await checkAction(check())).decision).toBe('allow');
  });

  test('no gRPC refusal is longer than a thousand characters', () => {
    const { details } = grpcError({ kind: 'not_found', what: 'x'.repeat(100_000) });
    expect(details).toHaveLength(1000);
  });

  test('an unknown health service never serves, and its name is not kept', async () => {
    const watch = (service: string) =>
      new Promise<Buffer>((resolve) => {
        const call = scene.client.makeServerStreamRequest(
          '/grpc.health.v1.Health/Watch',
          same,
          same,
          healthRequest(service),
        );
        call.on('error', () => undefined); // cancelled
        call.once('data', (status: Buffer) => {
          resolve(status);
          call.cancel();
        });
      });
    expect(await watch('nope')).toEqual(Buffer.from([0x08, 0x03]));
    expect(await watch(AGENT.slice(1))).toEqual(Buffer.from([0x08, 0x01]));
  });

  test('draining answers what is in flight, closes streams and then connections', async () => {
    const draining = createGrpcDoor({
      ports: scene.gateway,
      control: scene.control,
      limits: { timeoutMs: 30_000, maxBytes: 128 * 1024 * 1024, maxStreams: 10_000 },
      onDefect: (error) => scene.defects.push(error),
    });
    const other = await listenForGrpc({
      host: '127.0.0.1',
      port: 0,
      isShared: false,
      maxConnections: 1_000,
      onConnection: draining.serve,
      onError: (error) => scene.defects.push(error),
    });
    const kept = scene.client;
    scene.client = new Client(`127.0.0.1:${other.port}`, credentials.createInsecure());
    try {
      let release = (): void => undefined;
      const signals = openControl();
      await until(() => signals.signals.length === 2);
      const watches = ['', 'svc.governance.v1.PolicyService', 'svc.governance.v1.AgentService'].map(watchHealth);
      await until(() => watches.every(({ statuses }) => statuses.length === 1));
      const stream = openChecks();
      stream.call.write(check({ correlationId: 'last' }));
      await until(() => stream.answers.length === 1);
      scene.gateway.answer = () =>
        new Promise((resolve) => {
          release = () => resolve(undefined as never);
        });
      const inFlight = checkAction(check());
      await until(() => scene.gateway.asked.filter(({ type }) => type === 'check').length === 2);
      draining.drain(5_000);
      const closed = other.close();
      expect(await signals.ended).toEqual({ code: 'UNAVAILABLE', details: 'the gateway is shutting down; reconnect' });
      expect(await stream.ended).toMatchObject({ code: 'UNAVAILABLE' });
      await until(() => watches.every(({ statuses }) => statuses.length === 2));
      expect(watches.map(({ statuses }) => statuses)).toEqual(watches.map(() => ['serving', 'not serving']));
      for (const { stop } of watches) stop();
      release();
      expect(await inFlight).toMatchObject({ decision: 'allow' });
      await closed;
      expect(draining.calls()).toBe(3);
    } finally {
      scene.client.close();
      scene.client = kept;
    }
  });

  test('connections without HTTP/2, or broken off at once, are harmless', async () => {
    const sockets: Socket[] = [];
    for (let index = 0; index < 200; index++) {
      const socket = connect(Number(scene.address.split(':')[1]), '127.0.0.1');
      socket.resume();
      socket.on('error', () => undefined);
      socket.on('connect', () => (index % 2 === 0 ? socket.destroy() : socket.write('GET / HTTP/1.1\r\n\r\n')));
      sockets.push(socket);
    }
    await until(() => sockets.every((socket) => socket.destroyed || socket.readableEnded));
    expect(await checkAction(check())).toMatchObject({ decision: 'allow' });
    expect(scene.defects).toEqual([]);
  });
});

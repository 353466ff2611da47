import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { ok } from '../../../src/core/base/result.ts';
import { binaryCodec } from '../../../src/doors/proto/binary.ts';
import { until, WRITE_KEY } from '../../support/fake-ports.ts';
import { bearer, check, checkAction, openChecks, openControl, scene, withScene } from './harness.ts';

withScene();

describe('check stream', () => {
  test('checks are pipelined with correlation ids, and half-close drains them', async () => {
    const { call, answers, ended } = openChecks();
    for (let index = 0; index < 5000; index++) call.write(check({ spanId: `s${index}`, correlationId: `c${index}` }));
    call.end();
    expect(await ended).toEqual({ code: 'OK', details: '' });
    expect(new Set(answers.map(({ correlationId }) => correlationId)).size).toBe(5000);
    expect(answers[0]).toEqual({
      decision: 'allow',
      reason: 'web tools only',
      policy: 'search-team',
      ruleId: 'web-only',
      opId: 'trace:s0',
      opState: 'running',
      auditId: 7,
      correlationId: 'c0',
      cause: 'unspecified',
      tier: 'unspecified',
      period: 'unspecified',
      resetsAt: undefined,
      approvalId: '',
      remedy: '',
      obligations: [],
      opHome: '',
      error: undefined,
    });
  });

  test('an invalid check of a stream is reported in its answer, and others go on', async () => {
    const { call, answers, ended } = openChecks();
    call.write(check({ correlationId: 'bad', traceId: '' }));
    call.write(
      Buffer.concat([
        binaryCodec('CheckActionRequest').encode(check({ correlationId: 'worse' })),
        Buffer.from([0x3a, 0x05, 0x0a, 0x03, 0x0a, 0x01, 0x61]),
      ]),
    );
    call.write(check({ correlationId: 'huge', resource: 'x'.repeat(1024 * 1024) }));
    call.write(check({ correlationId: 'good' }));
    call.end();
    expect(await ended).toMatchObject({ code: 'OK' });
    expect(
      answers
        .map(({ correlationId, decision, error }) => [correlationId, decision, error?.code, error?.message])
        .sort(),
    ).toEqual([
      [
        'bad',
        'unspecified',
        'invalid_argument',
        'trace_id: must be 1 to 256 bytes without whitespace, control or invisible characters, or ":"',
      ],
      ['good', 'allow', undefined, undefined],
      ['huge', 'unspecified', 'payload_too_large', 'the body is larger than 1048576 bytes'],
      ['worse', 'unspecified', 'invalid_argument', 'attributes.a: has no value'],
    ]);
  });

  test('an undecodable frame ends the stream after the pending answers', async () => {
    const { call, answers, ended } = openChecks();
    call.write(check({ correlationId: 'good' }));
    call.write(Buffer.from([0x0a, 0x7f]));
    expect(await ended).toEqual({ code: 'INVALID_ARGUMENT', details: 'message: is truncated or has a wrong length' });
    expect(answers).toMatchObject([{ correlationId: 'good', decision: 'allow' }]);
  });

  test('a stream whose bearer is no longer valid is closed', async () => {
    const { call, ended } = openChecks(bearer('revoked'));
    call.write(check({ credentialToken: '' }));
    expect(await ended).toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  test('revoking a bearer closes the streams of checks it has opened, idle or not', async () => {
    const { call, answers, ended } = openChecks(bearer(WRITE_KEY));
    const other = openChecks();
    call.write(check({ credentialToken: '', correlationId: 'before' }));
    other.call.write(check());
    await until(() => answers.length === 1 && other.answers.length === 1);
    scene.server.recheckBearers();
    await checkAction(check());
    const { authenticate } = scene.gateway;
    scene.gateway = { ...scene.gateway, authenticate: async () => authenticate('revoked') };
    scene.server.recheckBearers();
    expect(await ended).toEqual({ code: 'UNAUTHENTICATED', details: 'the key is unknown or revoked' });
    other.call.end();
    expect(await other.ended).toMatchObject({ code: 'OK' });
  });

  /** Waits for the signal on the control stream that was opened last. */
  async function signalIsHeard({ call, signals }: ReturnType<typeof openControl>): Promise<void> {
    await checkAction(check());
    const { stream } = scene.gateway.asked.findLast(({ type }) => type === 'open-control') as {
      readonly stream: number;
    };
    scene.control.deliver(stream, { opId: 't:1' as never, signal: 'resume', sequence: 4 });
    await until(() => signals.length === 3);
    call.cancel();
  }

  test('a bearer that cannot be verified at the moment closes no stream', async () => {
    const { call, answers, ended } = openChecks(bearer(WRITE_KEY));
    const control = openControl({ credentialToken: '' }, bearer(WRITE_KEY));
    call.write(check({ credentialToken: '', correlationId: 'before' }));
    await until(() => answers.length === 1 && control.signals.length === 2);
    const { authenticate } = scene.gateway;
    let asked = 0;
    scene.gateway = {
      ...scene.gateway,
      authenticate: async () => {
        asked += 1;
        return { ok: false, fault: { kind: 'overloaded', retryAfterSecs: 1, what: 'the verification of keys' } };
      },
    };
    scene.server.recheckBearers();
    await until(() => asked === 2);
    scene.gateway = { ...scene.gateway, authenticate };
    await signalIsHeard(control);
    call.write(check({ credentialToken: '', correlationId: 'after' }));
    call.end();
    expect(await ended).toMatchObject({ code: 'OK' });
    expect(answers).toMatchObject([
      { correlationId: 'before', decision: 'allow' },
      { correlationId: 'after', decision: 'allow' },
    ]);
  });

  test('an invalid bearer closes no stream whose agents present own credentials', async () => {
    const { call, answers, ended } = openChecks(bearer('of a proxy'));
    const control = openControl({}, bearer('of a proxy'));
    call.write(check({ correlationId: 'before' }));
    await until(() => answers.length === 1 && control.signals.length === 2);
    scene.server.recheckBearers();
    await signalIsHeard(control);
    call.write(check({ correlationId: 'after' }));
    call.end();
    expect(await ended).toMatchObject({ code: 'OK' });
    expect(answers).toMatchObject([
      { correlationId: 'before', decision: 'allow' },
      { correlationId: 'after', decision: 'allow' },
    ]);
  });

  /** A stream of so many checks, each of which waits until it is released. */
  function openUnanswered(count: number) {
    const waiting: (() => void)[] = [];
    scene.gateway.answer = () =>
      new Promise((resolve) => {
        waiting.push(() => resolve(undefined as never));
      });
    const { call, answers, ended } = openChecks();
    for (let index = 0; index < count; index++) call.write(check({ spanId: `s${index}`, correlationId: `c${index}` }));
    call.end();
    return { waiting, answers, ended };
  }

  test('a stream is not read while too many checks wait, and then continues', async () => {
    const { waiting, answers, ended } = openUnanswered(3000);
    await until(() => waiting.length >= 1024);
    await sleep(100);
    expect(waiting.length).toBe(1024);
    scene.gateway.answer = undefined;
    for (const release of waiting) release();
    expect(await ended).toMatchObject({ code: 'OK' });
    expect(answers.length).toBe(3000);
  });

  test('a stalled stream continues once half of its checks are answered', async () => {
    const { waiting, answers, ended } = openUnanswered(1100);
    await until(() => waiting.length >= 1024);
    // A few at a time, so that no write has to wait for another.
    for (let released = 0; released < 512; released += 8) {
      for (const release of waiting.slice(released, released + 8)) release();
      await until(() => answers.length === released + 8);
    }
    await until(() => waiting.length === 1100);
    for (const release of waiting) release();
    scene.gateway.answer = undefined;
    expect(await ended).toMatchObject({ code: 'OK' });
    expect(answers.length).toBe(1100);
  });

  test('a client that takes no answers gets no further checks decided until it does', async () => {
    scene.gateway.answer = () => ({
      reply: ok({
        decision: 'deny',
        reason: 'x'.repeat(2_000),
        policy: undefined,
        ruleId: undefined,
        cause: undefined,
        exceeded: undefined,
        opState: undefined,
      } as const),
      auditId: 1,
    });
    const { call, answers, ended } = openChecks();
    call.pause();
    for (let index = 0; index < 5_000; index++) call.write(check({ spanId: `s${index}` }));
    call.end();
    await until(() => scene.gateway.asked.length > 0);
    for (let before = -1; before !== scene.gateway.asked.length; ) {
      before = scene.gateway.asked.length;
      await sleep(200);
    }
    expect(scene.gateway.asked.length).toBeGreaterThan(0);
    expect(scene.gateway.asked.length).toBeLessThan(2_500);
    call.resume();
    expect(await ended).toMatchObject({ code: 'OK' });
    expect(answers.length).toBe(5_000);
  });

  test('a client that breaks off leaves nothing behind, and late answers are dropped', async () => {
    let release = (): void => undefined;
    scene.gateway.answer = () =>
      new Promise((resolve) => {
        release = () => resolve(undefined as never);
      });
    const { call, ended } = openChecks();
    call.write(check());
    await until(() => scene.gateway.asked.length === 1);
    call.cancel();
    expect(await ended).toMatchObject({ code: 'CANCELLED' });
    release();
    scene.gateway.answer = undefined;
    await checkAction(check());
    expect(scene.defects).toEqual([]);
  });
});

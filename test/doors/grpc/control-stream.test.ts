import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { fail, ok } from '../../../src/core/base/result.ts';
import { TOKEN, until, WRITE_KEY } from '../../support/fake-ports.ts';
import {
  AGENT,
  bearer,
  check,
  checkAction,
  crawler,
  openControl,
  refusal,
  scene,
  unary,
  withScene,
} from './harness.ts';

withScene();

describe('control stream', () => {
  test('a control stream sends pending signals, then each one once, until it closes', async () => {
    scene.gateway.answer = (command) => {
      // Given while the stream is being opened: part of the pending ones already.
      if (command.type === 'open-control')
        scene.control.deliver(command.stream, { opId: 't:2' as never, signal: 'terminate', sequence: 3 });
      return undefined;
    };
    const { signals, ended } = openControl();
    await until(() => signals.length === 2);
    scene.control.deliver((scene.gateway.asked[0] as { stream: number }).stream, {
      opId: 't:1' as never,
      signal: 'resume',
      sequence: 4,
    });
    await until(() => signals.length === 3);
    expect(signals).toEqual([
      { opId: 't:1', signal: 'pause', sequence: 1 },
      { opId: 't:2', signal: 'terminate', sequence: 3 },
      { opId: 't:1', signal: 'resume', sequence: 4 },
    ]);
    scene.control.revokeSubject('key:w');
    scene.control.revokeAgent('acme/search/other' as never);
    expect(scene.control.size).toBe(1);
    scene.control.revokeAgent('acme/search/crawler' as never);
    expect(await ended).toEqual({
      code: 'UNAUTHENTICATED',
      details: 'the credential token of the agent is no longer valid',
    });
    expect(scene.control.size).toBe(0);
    expect(scene.closedStreams).toEqual([(scene.gateway.asked[0] as { stream: number }).stream]);
  });

  test('a control stream resumes after the last delivered signal; cancelled ones go', async () => {
    const { call, signals } = openControl({ resumeAfter: 1 });
    await until(() => signals.length === 1);
    expect(signals).toEqual([{ opId: 't:2', signal: 'terminate', sequence: 3 }]);
    call.cancel();
    await until(() => scene.control.size === 0);
  });

  test('an agent learns that its control stream is open before any signal', async () => {
    scene.gateway.answer = () => ({ reply: ok({ pending: [] }), auditId: undefined });
    const { call } = openControl();
    await new Promise((resolve) => call.once('metadata', resolve));
    call.cancel();
  });

  test('a control stream cancelled during verification is not opened', async () => {
    let verify: (() => void) | undefined;
    const { authenticate } = scene.gateway;
    Object.assign(scene.gateway, {
      authenticate: (key: string) =>
        new Promise((resolve) => {
          verify = () => resolve(authenticate(key));
        }),
    });
    const { call } = openControl({ credentialToken: '' }, bearer(WRITE_KEY));
    await until(() => verify !== undefined);
    call.cancel();
    await checkAction(check()); // comes behind it
    verify!();
    await checkAction(check());
    expect({ controlCount: scene.control.size, asked: scene.gateway.asked.map(({ type }) => type) }).toEqual({
      controlCount: 0,
      asked: ['check', 'check'],
    });
  });

  test('a refused control stream says so and subscribes to nothing', async () => {
    scene.gateway.answer = () => ({
      reply: fail({ kind: 'unauthenticated', detail: 'the credential token is not registered' }),
      auditId: undefined,
    });
    expect(await openControl().ended).toEqual({
      code: 'UNAUTHENTICATED',
      details: 'the credential token is not registered',
    });
    expect(scene.control.size).toBe(0);
    expect(await openControl({ agent: undefined }).ended).toEqual({
      code: 'INVALID_ARGUMENT',
      details: 'agent: is required',
    });
  });

  test('a bearer that is revoked while its control stream is being opened gets no signal', async () => {
    scene.gateway.answer = ({ type }) => {
      if (type === 'open-control')
        Object.assign(scene.gateway, {
          authenticate: async () => fail({ kind: 'unauthenticated', detail: 'the credential was revoked' }),
        });
      return undefined;
    };
    const { signals, ended } = openControl({ credentialToken: '' }, bearer(WRITE_KEY));
    expect(await ended).toEqual({ code: 'UNAUTHENTICATED', details: 'the credential was revoked' });
    expect(signals).toEqual([]);
    expect(scene.control.size).toBe(0);
  });

  test('an agent with over a thousand unread signals is disconnected, also on opening', async () => {
    const opened = (): number => (scene.gateway.asked[0] as { stream: number }).stream;
    const signal = (sequence: number): void =>
      scene.control.deliver(opened(), { opId: 't:1' as never, signal: 'pause', sequence });
    const unread = {
      code: 'RESOURCE_EXHAUSTED',
      details: 'the number of unread signals is at its limit; try again in 1 second',
    };

    const deaf = openControl();
    deaf.call.pause();
    await until(() => scene.gateway.asked.length === 1);
    for (let sequence = 4; scene.control.size > 0; sequence += 1) {
      expect(sequence).toBeLessThan(50_000);
      signal(sequence);
      if (sequence % 100 === 0) await sleep(1); // each is written in its own time
    }
    deaf.call.resume();
    expect(await deaf.ended).toEqual(unread);

    scene.gateway.asked.length = 0;
    let open = (): void => undefined;
    scene.gateway.answer = () =>
      new Promise((resolve) => {
        open = () => resolve(undefined as never);
      });
    const early = openControl();
    await until(() => scene.gateway.asked.length === 1);
    for (let sequence = 4; sequence < 4 + 1_024; sequence += 1) signal(sequence);
    expect(scene.control.size).toBe(1);
    signal(4 + 1_024);
    expect(scene.control.size).toBe(0);
    open();
    expect(await early.ended).toEqual(unread);
  });

  test('a signal is acknowledged by its number', async () => {
    const acknowledge = (sequence: number) =>
      unary(`${AGENT}/AckOpControl`, 'AckOpControlRequest', 'AckOpControlResponse', {
        agent: crawler,
        credentialToken: TOKEN,
        opId: 't:1',
        sequence,
      });
    expect(await acknowledge(4)).toEqual({});
    expect(scene.gateway.asked).toMatchObject([{ type: 'ack-signal', opId: 't:1', sequence: 4, agent: crawler }]);
    expect(await refusal(acknowledge(0))).toMatchObject({ details: 'sequence: is required' });
  });

  /** buf's own client: another implementation of gRPC, protobuf and reflection. */
});

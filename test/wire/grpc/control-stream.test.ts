import { expect, test } from 'vitest';
import { fail } from '../../../src/core/result.ts';
import { TOKEN, until, WRITE_KEY } from '../fake-ports.ts';
import { AGENT, bearer, crawler, openControl, refusal, scene, unary } from './harness.ts';

test('a control stream sends what is pending, then every signal once, until it is closed', async () => {
  scene.gateway.answer = (command) => {
    // Given while the stream is being opened: part of the pending ones already.
    if (command.type === 'open-control') scene.control.deliver(command.stream, { opId: 't:2' as never, signal: 'terminate', sequence: 3 });
    return undefined;
  };
  const { signals, ended } = openControl();
  await until(() => signals.length === 2);
  scene.control.deliver((scene.gateway.asked[0] as { stream: number }).stream, { opId: 't:1' as never, signal: 'resume', sequence: 4 });
  await until(() => signals.length === 3);
  expect(signals).toEqual([
    { opId: 't:1', signal: 'pause', sequence: 1 }, { opId: 't:2', signal: 'terminate', sequence: 3 }, { opId: 't:1', signal: 'resume', sequence: 4 },
  ]);
  scene.control.revokeSubject('key:w');
  scene.control.revokeAgent('acme/search/other' as never);
  expect(scene.control.size).toBe(1);
  scene.control.revokeAgent('acme/search/crawler' as never);
  expect(await ended).toEqual({ code: 'UNAUTHENTICATED', details: 'the credential token of the agent is no longer valid' });
  expect(scene.control.size).toBe(0);
  expect(scene.closedStreams).toEqual([(scene.gateway.asked[0] as { stream: number }).stream]);
});

test('a control stream goes on after the last signal that was delivered, and a cancelled one is forgotten', async () => {
  const { call, signals } = openControl({ resumeAfter: 1 });
  await until(() => signals.length === 1);
  expect(signals).toEqual([{ opId: 't:2', signal: 'terminate', sequence: 3 }]);
  call.cancel();
  await until(() => scene.control.size === 0);
});

test('a control stream that is refused says so, and listens to nothing', async () => {
  scene.gateway.answer = () => ({ reply: fail({ kind: 'unauthenticated', detail: 'the credential token is not registered' }), auditId: undefined });
  expect(await openControl().ended).toEqual({ code: 'UNAUTHENTICATED', details: 'the credential token is not registered' });
  expect(scene.control.size).toBe(0);
  expect(await openControl({ agent: undefined }).ended).toEqual({ code: 'INVALID_ARGUMENT', details: 'agent: is required' });
});

test('a bearer that is revoked while its control stream is being opened gets no signal', async () => {
  scene.gateway.answer = ({ type }) => {
    if (type === 'open-control') Object.assign(scene.gateway, { authenticate: async () => fail({ kind: 'unauthenticated', detail: 'the credential was revoked' }) });
    return undefined;
  };
  const { signals, ended } = openControl({ credentialToken: '' }, bearer(WRITE_KEY));
  expect(await ended).toEqual({ code: 'UNAUTHENTICATED', details: 'the credential was revoked' });
  expect(signals).toEqual([]);
  expect(scene.control.size).toBe(0);
});

test('a signal is acknowledged by its number', async () => {
  const acknowledge = (sequence: number) => unary(`${AGENT}/AckOpControl`, 'AckOpControlRequest', 'AckOpControlResponse', { agent: crawler, credentialToken: TOKEN, opId: 't:1', sequence });
  expect(await acknowledge(4)).toEqual({});
  expect(scene.gateway.asked).toMatchObject([{ type: 'ack-signal', opId: 't:1', sequence: 4, agent: crawler }]);
  expect(await refusal(acknowledge(0))).toMatchObject({ details: 'sequence: is required' });
});

/** buf's own client: another implementation of gRPC, protobuf and reflection. */

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { messageShape, methodShapes } from '../../../src/wire/proto/schema.ts';

const root = join(import.meta.dirname, '../../..');
const buf = (...words: string[]): Buffer => execFileSync(join(root, 'node_modules/.bin/buf'), words, { cwd: root, maxBuffer: 1024 * 1024 });

test('what reflection serves is made of the .proto files as they are', () => {
  expect(buf('build', '--as-file-descriptor-set', '-o', '-').equals(readFileSync(join(root, 'proto/descriptors.binpb')))).toBe(true);
  expect(buf('build', 'node_modules/grpc-health-check/proto', '--as-file-descriptor-set', '-o', '-').equals(readFileSync(join(root, 'proto/health.binpb')))).toBe(true);
});

test('the .proto files are lint-clean and formatted', () => {
  expect(buf('lint').toString()).toBe('');
  expect(buf('format', '--diff').toString()).toBe('');
});

test('the interface has the methods of the contract', () => {
  expect(methodShapes.map(({ path, requestStream, responseStream }) => `${path}${requestStream ? ' <stream' : ''}${responseStream ? ' >stream' : ''}`)).toEqual([
    '/svc.governance.v1.PolicyService/CheckAction',
    '/svc.governance.v1.PolicyService/BatchCheckActions',
    '/svc.governance.v1.PolicyService/StreamCheckActions <stream >stream',
    '/svc.governance.v1.AgentService/RegisterAgent',
    '/svc.governance.v1.AgentService/DeregisterAgent',
    '/svc.governance.v1.AgentService/CompleteOp',
    '/svc.governance.v1.AgentService/RecordUsage',
    '/svc.governance.v1.AgentService/OpControlStream >stream',
    '/svc.governance.v1.AgentService/AckOpControl',
  ]);
});

test('a field is known by both spellings, its number, and the words of its enum', () => {
  const { byNumber, byName } = messageShape('CheckActionResponse');
  expect(byNumber.get(6)).toBe(byName.get('op_state'));
  expect(byName.get('opState')).toMatchObject({
    kind: 'enum', number: 6, hasPresence: false,
    shape: { values: [
      { name: 'OP_STATE_UNSPECIFIED', number: 0, word: 'unspecified' }, { name: 'OP_STATE_PENDING', number: 1, word: 'pending' },
      { name: 'OP_STATE_RUNNING', number: 2, word: 'running' }, { name: 'OP_STATE_PAUSED', number: 3, word: 'paused' },
      { name: 'OP_STATE_COMPLETING', number: 4, word: 'completing' }, { name: 'OP_STATE_TERMINATED', number: 5, word: 'terminated' },
    ] },
  });
});

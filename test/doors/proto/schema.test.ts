import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { messageShape, methodShapes } from '../../../src/doors/proto/schema.ts';

const root = join(import.meta.dirname, '../../..');

/** Its complaints are part of its output. */
function buf(...words: string[]): Buffer {
  const { status, stdout, stderr } = spawnSync(join(root, 'node_modules/.bin/buf'), words, {
    cwd: root,
    maxBuffer: 1024 * 1024,
  });
  if (status !== 0 && stdout.length === 0) throw new Error(`buf ${words.join(' ')}: ${stderr.toString()}`);
  return stdout;
}

describe('schema', () => {
  test('reflection serves the .proto files as they are', () => {
    const made = buf('build', '--as-file-descriptor-set', '-o', '-');
    expect(made.equals(readFileSync(join(root, 'proto/descriptors.binpb'))), 'run `npm run proto`').toBe(true);
  });

  test('the .proto files are lint-clean and formatted', () => {
    expect(buf('lint').toString()).toBe('');
    expect(buf('format', '--diff').toString(), 'run `npx buf format -w`').toBe('');
  });

  test('the interface has the documented methods', () => {
    expect(
      methodShapes.map(
        ({ path, requestStream, responseStream }) =>
          `${path}${requestStream ? ' <stream' : ''}${responseStream ? ' >stream' : ''}`,
      ),
    ).toEqual([
      '/svc.governance.v1.PolicyService/CheckAction',
      '/svc.governance.v1.PolicyService/BatchCheckActions',
      '/svc.governance.v1.PolicyService/StreamCheckActions <stream >stream',
      '/svc.governance.v1.AgentService/RegisterAgent',
      '/svc.governance.v1.AgentService/DeregisterAgent',
      '/svc.governance.v1.AgentService/CompleteOp',
      '/svc.governance.v1.AgentService/RecordUsage',
      '/svc.governance.v1.AgentService/OpControlStream >stream',
      '/svc.governance.v1.AgentService/AckOpControl',
      '/svc.governance.v1.ApprovalService/WaitApproval',
      '/svc.governance.v1.ApprovalService/CancelApproval',
    ]);
  });

  const source = readFileSync(join(root, 'src/doors/proto/messages.ts'), 'utf8');

  const declared = readdirSync(join(root, 'proto/svc/governance/v1')).flatMap((file) =>
    [...readFileSync(join(root, 'proto/svc/governance/v1', file), 'utf8').matchAll(/^message (\w+)/gm)].map(
      ([, name]) => name!,
    ),
  );

  test('every message of the schema has a type, and nothing else has', () => {
    expect([...source.matchAll(/^ {2}(\w+): \1;$/gm)].map(([, name]) => name).sort()).toEqual(declared.sort());
  });

  test('the message types have the fields of the schema, by the same names', () => {
    const typed = [...source.matchAll(/^export type (\w+) = \{([^}]*)\};$/gm)]
      .filter(([, name]) => declared.includes(name!))
      .map(
        ([, name, fields]) => [name!, [...fields!.matchAll(/readonly (\w+)\??:/g)].map(([, field]) => field)] as const,
      );
    expect(typed.length).toBeGreaterThan(12); // the others are made of these, or empty
    for (const [name, fields] of typed)
      expect({ name, fields }).toEqual({ name, fields: messageShape(name).fields.map((field) => field.name) });
  });

  test('a field is known by both spellings, its number, and the words of its enum', () => {
    const { byNumber, byName } = messageShape('CheckActionResponse');
    expect(byNumber.get(6)).toBe(byName.get('op_state'));
    expect(byName.get('opState')).toMatchObject({
      kind: 'enum',
      number: 6,
      hasPresence: false,
      shape: {
        values: [
          { name: 'OP_STATE_UNSPECIFIED', number: 0, word: 'unspecified' },
          { name: 'OP_STATE_PENDING', number: 1, word: 'pending' },
          { name: 'OP_STATE_RUNNING', number: 2, word: 'running' },
          { name: 'OP_STATE_PAUSED', number: 3, word: 'paused' },
          { name: 'OP_STATE_COMPLETING', number: 4, word: 'completing' },
          { name: 'OP_STATE_TERMINATED', number: 5, word: 'terminated' },
        ],
      },
    });
  });
});

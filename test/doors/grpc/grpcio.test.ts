/** grpcio as the client, where Python has it (`pip install grpcio`; PYTHON names another python3). */
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { binaryCodec } from '../../../src/doors/proto/binary.ts';
import { check, scene, withScene } from './harness.ts';

withScene();

const PYTHON = process.env.PYTHON ?? 'python3';
const isThere = spawnSync(PYTHON, ['-c', 'import grpc']).status === 0;
if (!isThere) console.log(`grpcio is not installed: ${PYTHON} cannot import grpc`);

describe('grpcio', () => {
  test.runIf(isThere)('gets answers and refusals as other clients do', async () => {
    const message = Buffer.from(binaryCodec('CheckActionRequest').encode(check({ correlationId: 'c' })));
    const program = join(import.meta.dirname, '../../support/grpcio-client.py');
    const { stdout } = await promisify(execFile)(PYTHON, [program, scene.address, message.toString('base64')]);
    const got = JSON.parse(stdout) as Record<string, unknown> & { check: string; stream: string[] };
    const decoded = (text: string) => binaryCodec('CheckActionResponse').decode(Buffer.from(text, 'base64'));
    expect(decoded(got.check)).toMatchObject({ ok: true, value: { decision: 'allow', correlationId: 'c' } });
    expect(got.stream).toHaveLength(100);
    expect(new Set(got.stream)).toEqual(new Set([got.check]));
    expect({ ...got, check: undefined, stream: undefined }).toEqual({
      watch: Buffer.from([0x08, 0x01]).toString('base64'),
      malformed: ['INVALID_ARGUMENT', 'message: is truncated or has a wrong length', 'invalid_argument'],
      tooLarge: ['RESOURCE_EXHAUSTED', 'the body is larger than 1048576 bytes', 'payload_too_large'],
      compressed: [
        'UNIMPLEMENTED',
        'messages compressed with "gzip" are not supported; send messages uncompressed',
        null,
      ],
      unknown: ['UNIMPLEMENTED', 'there is no method /svc.governance.v1.PolicyService/Nothing', null],
    });
  });
});

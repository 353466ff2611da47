/**
 * The public conformance suite against the gateway's own gRPC server. It is a program in Go:
 *
 *     go install connectrpc.com/conformance/cmd/connectconformance@v1.0.7
 *
 * It is looked for in the PATH and in the variable CONNECTCONFORMANCE. Without it, nothing is tested.
 */
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { serveConformance } from '../../support/conformance-server.ts';

const PROGRAM = process.env.CONNECTCONFORMANCE ?? 'connectconformance';
const FOLDER = join(import.meta.dirname, '../../support/conformance');

const isThere = spawnSync(PROGRAM, ['--version']).status === 0;
if (!isThere) console.log('the conformance suite is not installed: connectconformance is not in the PATH');

describe('conformance', () => {
  test.runIf(isThere)('the gRPC server passes the suite, but for the exceptions written down', async () => {
    const errors: unknown[] = [];
    const server = await serveConformance((error) => errors.push(error));
    const words = ['--mode', 'server', '--conf', join(FOLDER, 'config.yaml')];
    const exceptions = ['--known-failing', `@${join(FOLDER, 'known-failing.txt')}`];
    const command = ['--', process.execPath, join(FOLDER, 'relay.mjs'), String(server.port)];
    const { status, output } = await new Promise<{ status: unknown; output: string }>((resolve) => {
      execFile(PROGRAM, [...words, ...exceptions, ...command], { maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
        resolve({ status: error === null ? 0 : error.code, output: stdout + stderr }),
      );
    });
    server.close();
    expect(errors).toEqual([]);
    expect(status, output).toBe(0);
    expect(Number(/Total cases: (\d+)/.exec(output)?.[1])).toBeGreaterThan(100);
  });
});

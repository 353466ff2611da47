/** Calls over gRPC by h2load, which is not the bottleneck. */
import { execFileSync, spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, credentials } from '@grpc/grpc-js';
import { assert } from '../../src/core/base/result.ts';
import { scratchFolder } from './ending.ts';

export const hasH2load = spawnSync('h2load', ['--version']).status === 0;

const CONNECTIONS = 4;

export type Calls = {
  readonly address: string;
  /** With its service. */
  readonly method: string;
  /** The messages of each call. */
  readonly messages: readonly Buffer[];
  readonly calls: number;
  /** Calls at once on one connection. */
  readonly atOnce: number;
};

/** Calls per second, each with the same messages. */
export function loadCalls({ address, method, messages, calls, atOnce }: Calls): number {
  const folder = scratchFolder();
  const body = join(folder, 'body');
  writeFileSync(body, Buffer.concat(messages.map(framed)));
  const words = ['-n', String(calls), '-c', String(CONNECTIONS), '-m', String(atOnce), '-d', body];
  const headers = ['-H', 'content-type: application/grpc', '-H', 'te: trailers'];
  try {
    const output = execFileSync('h2load', [...words, ...headers, `http://${address}/${method}`]).toString();
    assert(output.includes(`${calls} succeeded`), 'every call is answered');
    return Number(/([\d.]+) req\/s/.exec(output)?.[1]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Makes one call, by a client that looks at the status and the answer. */
export function callOnce(address: string, method: string, message: Buffer): Promise<Buffer> {
  const client = new Client(address, credentials.createInsecure());
  const asItIs = (bytes: Buffer): Buffer => bytes;
  return new Promise<Buffer>((resolve, reject) => {
    client.makeUnaryRequest(`/${method}`, asItIs, asItIs, message, (error, answer) =>
      error === null && answer !== undefined ? resolve(answer) : reject(error ?? new Error('no answer')),
    );
  }).finally(() => client.close());
}

function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

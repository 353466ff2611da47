/** Measures the cost of carrying a check to another thread and its answer back, by how many travel together. */

import { fileURLToPath } from 'node:url';
import { isMainThread, type MessagePort, parentPort, Worker } from 'node:worker_threads';
import type { OpId, SecretDigest } from '../src/core/base/ids.ts';
import type { CheckCommand } from '../src/core/commands.ts';
import { decodeToIo, decodeToMain, encodeToIo, encodeToMain } from '../src/threads/codec.ts';
import type { IoToMain, MainToIo } from '../src/threads/protocol.ts';
import { isBrief } from './lib/options.ts';
import { heading, line } from './lib/report.ts';

const command: CheckCommand = {
  type: 'check',
  agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler-17' },
  credential: 'x'.repeat(43) as SecretDigest,
  principal: undefined,
  opId: '4bf92f3577b34da6a3ce929d0e0e4736:00f067aa0ba902b7' as OpId,
  action: 'tool.call',
  resource: 'web_search',
  attributes: undefined,
  estimatedCostMicroUsd: 0,
  caller: undefined,
  dryRun: false,
};
const question = (id: number): IoToMain => ({ type: 'command', id, command });
const answer = (id: number): MainToIo => ({
  type: 'command-reply',
  id,
  auditIndex: id,
  reply: {
    ok: true,
    value: {
      decision: 'allow',
      reason: 'allowed by rule harmless-tools of policy starter',
      policy: 'starter',
      ruleId: 'harmless-tools',
      cause: undefined,
      exceeded: undefined,
      opState: 'running',
    },
  },
});

if (isMainThread) await measure();
else serve(parentPort!);

/** The other end: decodes, answers every question, encodes; or sends the bytes back as they came, for the baseline. */
function serve(port: MessagePort): void {
  port.on('message', ({ bytes, isEcho }: { bytes: Uint8Array<ArrayBuffer>; isEcho: boolean }) => {
    const reply = isEcho
      ? bytes
      : encodeToIo(decodeToMain(bytes).map((message) => answer('id' in message ? message.id : 0)));
    port.postMessage(reply, [reply.buffer as ArrayBuffer]);
  });
}

async function measure(): Promise<void> {
  heading('Messages between threads');
  const worker = new Worker(fileURLToPath(import.meta.url));
  const roundTrip = (bytes: Uint8Array<ArrayBuffer>, isEcho: boolean): Promise<Uint8Array> =>
    new Promise((resolve) => {
      worker.once('message', resolve);
      worker.postMessage({ bytes, isEcho }, [bytes.buffer]);
    });
  for (const size of [1, 16, 64, 256]) {
    const rounds = isBrief ? 20 : Math.round(20_000 / Math.sqrt(size));
    const batch = Array.from({ length: size }, (_, id) => question(id));
    const bytesOf = encodeToMain(batch).length;
    const microseconds = async (work: () => unknown): Promise<number> => {
      for (let warm = 0; warm < rounds / 4; warm += 1) await work();
      const startedMs = performance.now();
      for (let round = 0; round < rounds; round += 1) await work();
      return ((performance.now() - startedMs) / rounds / size) * 1000;
    };
    const codec = await microseconds(() => decodeToMain(encodeToMain(batch)));
    const echo = await microseconds(() => roundTrip(new Uint8Array(bytesOf), true));
    const whole = await microseconds(async () => decodeToIo(await roundTrip(encodeToMain(batch), false)));
    console.log(`  ${size} together`);
    line('encode and decode', codec, 'µs each');
    line('there and back as bare bytes', echo, 'µs each');
    line('there and back, asked and answered', whole, 'µs each');
    line('asked and answered / bare bytes', whole / echo, '×');
  }
  await worker.terminate();
}

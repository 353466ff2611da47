/**
 * How much of a bare grpc-js server's rate is left for CheckAction over gRPC, with everything the gateway does? Both are programs
 * of their own, loaded in turns by the same client: unary by h2load, which has to be installed, streams by grpc-js itself.
 */
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, credentials } from '@grpc/grpc-js';
import { assert } from '../src/core/result.ts';
import { binaryCodec } from '../src/wire/proto/binary.ts';
import type { CheckActionRequest, StreamCheckActionsResponse } from '../src/wire/proto/messages.ts';
import { scratchFolder } from './lib/ending.ts';
import { isBrief } from './lib/options.ts';
import { heading, line, median, ratio } from './lib/report.ts';
import { AGENT, startBare, startGateway, TOKEN } from './lib/subject.ts';

const ROUNDS = isBrief ? 1 : 5;
const UNARY_CALLS = isBrief ? 1_000 : 20_000;
const STREAM_CHECKS = isBrief ? 1_000 : 20_000;
/** Checks of a stream that wait for their answer at a time. */
const WINDOW = 512;
const UNARY_GOAL = 0.8;
const STREAM_GOAL = 0.6;

const check = (spanId: string): CheckActionRequest => ({
  agent: AGENT, credentialToken: TOKEN, traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId, action: 'tool.call', resource: 'web_search',
  attributes: undefined, estimatedCostUsd: 0.002, caller: undefined, dryRun: false, correlationId: spanId,
});

/** Calls per second, or undefined without h2load. */
function loadUnary(address: string): number | undefined {
  const message = binaryCodec('CheckActionRequest').encode(check('unary'));
  const frame = Buffer.alloc(5);
  frame.writeUInt32BE(message.length, 1);
  const folder = scratchFolder();
  const body = join(folder, 'body');
  writeFileSync(body, Buffer.concat([frame, message]));
  const words = ['-n', String(UNARY_CALLS), '-c', '4', '-m', '16', '-d', body, '-H', 'content-type: application/grpc', '-H', 'te: trailers'];
  try {
    const output = execFileSync('h2load', [...words, `http://${address}/svc.governance.v1.PolicyService/CheckAction`]).toString();
    assert(output.includes(`${UNARY_CALLS} succeeded`), 'every call is answered');
    return Number(/([\d.]+) req\/s/.exec(output)?.[1]);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Checks per second on one stream, each of an operation of its own. */
function loadStream(address: string, run: number): Promise<number> {
  const client = new Client(address, credentials.createInsecure());
  const { encode } = binaryCodec('StreamCheckActionsRequest');
  const { decode } = binaryCodec('StreamCheckActionsResponse');
  const call = client.makeBidiStreamRequest('/svc.governance.v1.PolicyService/StreamCheckActions', encode, (bytes) => {
    const answer = decode(bytes);
    assert(answer.ok, 'the gateway answers with a message');
    return answer.value;
  });
  let sent = 0;
  let answered = 0;
  const send = (): void => {
    while (sent < STREAM_CHECKS && sent - answered < WINDOW) {
      sent += 1;
      call.write(check(`s${run}-${sent}`));
    }
    if (sent === STREAM_CHECKS) call.end();
  };
  const startedNs = process.hrtime.bigint();
  return new Promise((resolve, reject) => {
    call.on('data', (answer: StreamCheckActionsResponse) => {
      if (answer.decision !== 'allow') return reject(new Error(`${answer.reason} ${answer.error?.message ?? ''}`));
      answered += 1;
      if (answered % 32 === 0) send();
    });
    call.on('error', reject);
    call.on('end', () => {
      client.close();
      resolve(answered / (Number(process.hrtime.bigint() - startedNs) / 1e9));
    });
    send();
  });
}

type Rates = { readonly gateway: number; readonly bare: number };

/** Compared round by round: the machine's own speed changes from one to the next. */
function report(what: string, rounds: readonly Rates[], goal: number): void {
  line(`${what}, bare`, median(rounds.map(({ bare }) => bare)), 'checks/s');
  line(`${what}, gateway`, median(rounds.map(({ gateway }) => gateway)), 'checks/s');
  ratio(`${what}, gateway / bare`, median(rounds.map(({ gateway, bare }) => gateway / bare)), 1, goal);
}

heading('CheckAction over gRPC against bare grpc-js');
const gateway = await startGateway();
const bare = await startBare('bare-grpc.js');
const unary: Rates[] = [];
const streams: Rates[] = [];
for (let round = 0; round <= ROUNDS; round += 1) {
  const ofGateway = { unary: loadUnary(gateway.grpc), stream: await loadStream(gateway.grpc, round) };
  const ofBare = { unary: loadUnary(bare.grpc), stream: await loadStream(bare.grpc, round) };
  if (round === 0) continue; // warming up
  if (ofGateway.unary !== undefined && ofBare.unary !== undefined) unary.push({ gateway: ofGateway.unary, bare: ofBare.unary });
  streams.push({ gateway: ofGateway.stream, bare: ofBare.stream });
}
await gateway.stop();
await bare.stop();
if (unary.length === 0) console.log('  unary is not measured: h2load is not installed');
else report('unary', unary, UNARY_GOAL);
report('stream', streams, STREAM_GOAL);
console.log('  the client of streams is grpc-js too and shares the cores: it is the bottleneck where both rates are alike');

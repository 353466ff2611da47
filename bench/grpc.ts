/**
 * How close the gateway comes over gRPC, policy, registry and audit log included, to a bare grpc-js server that answers the same
 * messages at once. Both are programs of their own, loaded in turns by the same client.
 * Run after a build: node dist/bench/grpc.js. Unary needs h2load on the PATH; streams are loaded by grpc-js itself.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { assert } from '../src/core/result.ts';
import { binaryCodec } from '../src/wire/proto/binary.ts';
import type { CheckActionRequest, StreamCheckActionsResponse } from '../src/wire/proto/messages.ts';
import { isBrief, median } from './lib/report.ts';

const ROUNDS = isBrief ? 1 : 5;
const UNARY_CALLS = isBrief ? 1_000 : 20_000;
const STREAM_CHECKS = isBrief ? 1_000 : 20_000;
/** Checks of a stream that wait for their answer at a time. */
const WINDOW = 512;
const UNARY_TARGET = 0.8;
const STREAM_TARGET = 0.6;

const API_KEY = 'bench-key-0123456789abcdef0123456789abcdef';
const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler-7' };
const here = import.meta.dirname;
const folder = mkdtempSync(join(tmpdir(), 'svc-bench-'));

type Target = { readonly name: string; readonly address: string; readonly process: ChildProcess };

/** Starts a program and waits for the line that tells where it listens. */
function start(name: string, words: readonly string[], env: Record<string, string>, listening: RegExp): Promise<Target> {
  const child = spawn(process.execPath, words, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] });
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      const port = listening.exec(output)?.[1];
      if (port !== undefined) resolve({ name, address: `127.0.0.1:${port}`, process: child });
    });
    child.on('exit', (code) => reject(new Error(`${name} ended with ${code}: ${output}`)));
  });
}

const startBare = (): Promise<Target> => start('bare grpc-js', [join(here, 'lib', `bare-grpc${extname(import.meta.filename)}`)], {}, /^(\d+)\n/);

const startGateway = (): Promise<Target> => start('svc-gateway', [join(here, '../src/cli/main.js'), 'serve'], {
  SVC_HTTP_ADDR: '127.0.0.1:0', SVC_GRPC_ADDR: '127.0.0.1:0', SVC_DATA_DIR: join(folder, 'data'), SVC_BOOTSTRAP_API_KEY: API_KEY, SVC_LOG_LEVEL: 'warn',
}, /gRPC\s+127\.0\.0\.1:(\d+)\n/);

function register(address: string): Promise<string> {
  const request = binaryCodec('RegisterAgentRequest');
  const response = binaryCodec('RegisterAgentResponse');
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${API_KEY}`);
  const client = new Client(address, credentials.createInsecure());
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest('/svc.governance.v1.AgentService/RegisterAgent', request.encode, (bytes) => response.decode(bytes), { agent: AGENT, credentialToken: '', parent: undefined }, metadata, (error, answer) => {
      client.close();
      if (error !== null) return reject(error);
      assert(answer?.ok, 'the gateway answers with a message');
      resolve(answer.value.credentialToken);
    });
  });
}

const check = (credentialToken: string, spanId: string): CheckActionRequest => ({
  agent: AGENT, credentialToken, traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId, action: 'tool.call', resource: 'web_search',
  attributes: undefined, estimatedCostUsd: 0.002, caller: undefined, dryRun: false, correlationId: spanId,
});

/** Calls per second, or undefined without h2load. */
function loadUnary(address: string, credentialToken: string): number | undefined {
  const message = binaryCodec('CheckActionRequest').encode(check(credentialToken, 'unary'));
  const frame = Buffer.alloc(5);
  frame.writeUInt32BE(message.length, 1);
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
  }
}

/** Checks per second on one stream, each of an operation of its own. */
function loadStream(address: string, credentialToken: string, run: number): Promise<number> {
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
      call.write(check(credentialToken, `s${run}-${sent}`));
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

const ended = (child: ChildProcess): Promise<unknown> =>
  child.exitCode !== null || child.signalCode !== null ? Promise.resolve() : new Promise((resolve) => { child.once('exit', resolve); });

/** Compared round by round: the machine's own speed changes from one to the next. */
function report(what: string, gateway: readonly number[], bare: readonly number[], target: number): void {
  const ratio = median(gateway.map((rate, round) => rate / bare[round]!));
  console.log(`${what.padEnd(8)} svc-gateway ${median(gateway).toFixed(0).padStart(6)}/s   bare grpc-js ${median(bare).toFixed(0).padStart(6)}/s   ratio ${ratio.toFixed(2)} (target ${target})`);
}

const commit = (): string => {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: here, stdio: ['ignore', 'pipe', 'ignore'] }).toString().trim();
  } catch {
    return 'no commit';
  }
};
console.log(`${cpus()[0]?.model ?? 'unknown machine'} × ${cpus().length}, Node.js ${process.versions.node}, ${commit()}`);

const targets: Target[] = [];
try {
  const gateway = await startGateway();
  targets.push(gateway);
  const bare = await startBare();
  targets.push(bare);
  const token = await register(gateway.address);
  const unary: Record<string, number[]> = { [gateway.name]: [], [bare.name]: [] };
  const stream: Record<string, number[]> = { [gateway.name]: [], [bare.name]: [] };
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const { name, address } of targets) {
      const unaryRate = loadUnary(address, token);
      const streamRate = await loadStream(address, token, round);
      if (round === 0) continue; // warming up
      if (unaryRate !== undefined) unary[name]?.push(unaryRate);
      stream[name]?.push(streamRate);
    }
  }
  if (unary[gateway.name]?.length === 0) console.log('unary    not measured: h2load is not on the PATH');
  else report('unary', unary[gateway.name] ?? [], unary[bare.name] ?? [], UNARY_TARGET);
  report('stream', stream[gateway.name] ?? [], stream[bare.name] ?? [], STREAM_TARGET);
  console.log('stream   the client of streams is grpc-js too and shares the cores: it is the bottleneck where both figures are alike');
} finally {
  for (const target of targets) {
    target.process.removeAllListeners('exit');
    target.process.kill('SIGTERM');
  }
  await Promise.all(targets.map(({ process: child }) => ended(child)));
  rmSync(folder, { recursive: true, force: true });
}

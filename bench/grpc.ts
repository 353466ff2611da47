/**
 * How much of a bare grpc-js server's rate is left for CheckAction over gRPC, with everything the gateway does? Both
 * are programs of their own, loaded in turns by the same client: h2load where it is installed; else only streams are
 * measured, by grpc-js itself.
 */
import { Client, credentials } from '@grpc/grpc-js';
import { assert } from '../src/core/base/result.ts';
import { binaryCodec } from '../src/doors/proto/binary.ts';
import type { CheckActionRequest, StreamCheckActionsResponse } from '../src/doors/proto/messages.ts';
import { hasH2load, loadCalls } from './lib/grpc-load.ts';
import { isBrief } from './lib/options.ts';
import { heading, headline, line } from './lib/report.ts';
import { AGENT, startBare, startGateway, TOKEN } from './lib/subject.ts';

const ROUNDS = isBrief ? 1 : 5;
const UNARY_CALLS = isBrief ? 1_000 : 20_000;
const STREAM_CHECKS = isBrief ? 2_000 : 100_000;
/** In checks. */
const STREAM_LENGTH = 500;
/** Checks on the one stream of grpc-js. */
const ONE_STREAM_CHECKS = isBrief ? 1_000 : 20_000;
/** Checks of a stream that wait for their answer at a time. */
const WINDOW = 512;
const SERVICE = 'svc.governance.v1.PolicyService';
const UNARY_GOAL = 1;
const STREAM_GOAL = 1.5;

const check = (spanId: string): CheckActionRequest => ({
  agent: AGENT,
  credentialToken: TOKEN,
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  spanId,
  action: 'tool.call',
  resource: 'web_search',
  attributes: undefined,
  estimatedCostUsd: 0.002,
  caller: undefined,
  dryRun: false,
  correlationId: spanId,
  supportedObligations: [],
  opHome: '',
});

/** Calls per second of one check each. */
const loadUnary = (address: string): number =>
  loadCalls({
    address,
    method: `${SERVICE}/CheckAction`,
    messages: [binaryCodec('CheckActionRequest').encode(check('unary')) as Buffer],
    calls: UNARY_CALLS,
    atOnce: 16,
  });

/** Checks per second on four streams at a time. */
function loadStreams(address: string): number {
  const { encode } = binaryCodec('StreamCheckActionsRequest');
  const messages = Array.from({ length: STREAM_LENGTH }, (_, index) => encode(check(`stream-${index}`)) as Buffer);
  return (
    STREAM_LENGTH *
    loadCalls({
      address,
      method: `${SERVICE}/StreamCheckActions`,
      messages,
      calls: STREAM_CHECKS / STREAM_LENGTH,
      atOnce: 1,
    })
  );
}

/** Checks per second on one stream of grpc-js, each of an operation of its own. Looks at the answers, too. */
function loadOneStream(address: string, run: number): Promise<number> {
  const client = new Client(address, credentials.createInsecure());
  const { encode } = binaryCodec('StreamCheckActionsRequest');
  const { decode } = binaryCodec('StreamCheckActionsResponse');
  const call = client.makeBidiStreamRequest(`/${SERVICE}/StreamCheckActions`, encode, (bytes) => {
    const answer = decode(bytes);
    assert(answer.ok, 'the gateway answers with a message');
    return answer.value;
  });
  let sent = 0;
  let answered = 0;
  const send = (): void => {
    while (sent < ONE_STREAM_CHECKS && sent - answered < WINDOW) {
      sent += 1;
      call.write(check(`s${run}-${sent}`));
    }
    if (sent === ONE_STREAM_CHECKS) call.end();
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
  const of = (who: keyof Rates): readonly number[] => rounds.map((round) => round[who]);
  line(`${what}, bare`, of('bare'), 'checks/s');
  line(`${what}, gateway`, of('gateway'), 'checks/s');
  const share = rounds.map(({ gateway, bare }) => gateway / bare);
  headline(`gRPC ${what}: rate / of a bare grpc-js server`, share, '×', `goal: at least ${goal}`);
}

heading(`CheckAction over gRPC against bare grpc-js (${hasH2load ? 'h2load' : 'grpc-js'})`);
const gateway = await startGateway();
const bare = await startBare('bare-grpc.js');
const unary: Rates[] = [];
const streams: Rates[] = [];
for (let round = 0; round <= ROUNDS; round += 1) {
  if (round > 0 && hasH2load) {
    unary.push({ gateway: loadUnary(gateway.grpc), bare: loadUnary(bare.grpc) });
    streams.push({ gateway: loadStreams(gateway.grpc), bare: loadStreams(bare.grpc) });
    continue;
  }
  const rates = { gateway: await loadOneStream(gateway.grpc, round), bare: await loadOneStream(bare.grpc, round) };
  if (round > 0)
    streams.push(rates); // before that, it warms up
  else if (hasH2load) for (const { grpc } of [gateway, bare]) [loadUnary(grpc), loadStreams(grpc)];
}
await gateway.stop();
await bare.stop();
if (hasH2load) report('unary', unary, UNARY_GOAL);
report('stream', streams, STREAM_GOAL);
if (!hasH2load)
  console.log(
    '  h2load is not installed: unary is not measured, and grpc-js as the client of streams is slower than what it measures',
  );

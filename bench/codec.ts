/**
 * Measures reading and writing a check, in both codecs, against the usual ones: the codecs that protobufjs generates,
 * and bare JSON.parse and JSON.stringify.
 */
import { binaryCodec } from '../src/doors/proto/binary.ts';
import { jsonCodec } from '../src/doors/proto/json.ts';
import type { CheckActionRequest, CheckActionResponse } from '../src/doors/proto/messages.ts';
import { protoRoot } from '../src/doors/proto/schema.ts';
import { isBrief } from './lib/options.ts';
import { heading, line } from './lib/report.ts';

const ROUNDS = isBrief ? 2_000 : 200_000;
const RUNS = isBrief ? 1 : 5;

const request: CheckActionRequest = {
  agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler-7' },
  credentialToken: 'svcagent_0123456789abcdef0123456789abcdef0123456789a',
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  spanId: '00f067aa0ba902b7',
  action: 'tool.call',
  resource: 'web_search',
  attributes: undefined,
  estimatedCostUsd: 0.002,
  caller: undefined,
  dryRun: false,
  correlationId: 'c-123',
  supportedObligations: [],
  opHome: '',
};
const withAttributes: CheckActionRequest = {
  ...request,
  attributes: { size: 12, host: 'example.com', deep: { a: true } },
};
const response: CheckActionResponse = {
  decision: 'allow',
  reason: 'web tools only',
  policy: 'search-team',
  ruleId: 'web-only',
  opId: `${request.traceId}:${request.spanId}`,
  opState: 'running',
  auditId: 123_456,
  correlationId: 'c-123',
  cause: 'unspecified',
  tier: 'unspecified',
  period: 'unspecified',
  resetsAt: undefined,
  approvalId: '',
  obligations: [],
  opHome: '',
  remedy: '',
};

/** Nanoseconds per call, the best of some runs: on a shared machine the others measure the neighbours. */
function nsOf(call: () => unknown): number {
  let bestNs = Infinity;
  for (let run = 0; run < RUNS; run += 1) {
    const start = process.hrtime.bigint();
    for (let round = 0; round < ROUNDS; round += 1) call();
    bestNs = Math.min(bestNs, Number(process.hrtime.bigint() - start) / ROUNDS);
  }
  return bestNs;
}

function compare(what: string, ours: () => unknown, usual: () => unknown, baseline: string): void {
  const [oursNs, usualNs] = [nsOf(ours), nsOf(usual)];
  line(what, oursNs, 'ns');
  line(`  ${baseline}`, usualNs, 'ns');
  line('  ours / theirs', oursNs / usualNs, '×');
}

heading('Reading and writing a check');

const binary = { request: binaryCodec('CheckActionRequest'), response: binaryCodec('CheckActionResponse') };
const json = { request: jsonCodec('CheckActionRequest'), response: jsonCodec('CheckActionResponse') };
const generated = {
  request: protoRoot.lookupType('svc.governance.v1.CheckActionRequest'),
  response: protoRoot.lookupType('svc.governance.v1.CheckActionResponse'),
};
const generatedResponse = generated.response.create({ ...response, decision: 1, opState: 2 });

const bytes = binary.request.encode(request);
const bytesWithAttributes = binary.request.encode(withAttributes);
compare(
  'binary: read a check',
  () => binary.request.decode(bytes),
  () => generated.request.decode(bytes),
  'protobufjs',
);
compare(
  'binary: read one with attributes',
  () => binary.request.decode(bytesWithAttributes),
  () => generated.request.decode(bytesWithAttributes),
  'protobufjs, Struct left so',
);
compare(
  'binary: write an answer',
  () => binary.response.encode(response),
  () => generated.response.encode(generatedResponse).finish(),
  'protobufjs',
);

const text = Buffer.from(JSON.stringify(request));
const textWithAttributes = Buffer.from(JSON.stringify(withAttributes));
compare(
  'JSON: read a check',
  () => json.request.decode(text),
  () => JSON.parse(text.toString()) as unknown,
  'JSON.parse, unchecked',
);
compare(
  'JSON: read one with attributes',
  () => json.request.decode(textWithAttributes),
  () => JSON.parse(textWithAttributes.toString()) as unknown,
  'JSON.parse, unchecked',
);
compare(
  'JSON: write an answer',
  () => json.response.encode(response),
  () => JSON.stringify(response),
  'JSON.stringify',
);

/** Agents that open a connection for each check, over HTTP and over gRPC in turns. */

import { request } from 'node:http';
import { connect } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { binaryCodec, emptyMessage } from '../../src/doors/proto/binary.ts';
import type { CheckActionRequest } from '../../src/doors/proto/messages.ts';
import { messageShape } from '../../src/doors/proto/schema.ts';
import type { TestGateway } from './gateway.ts';
import { framed } from './grpc-frames.ts';
import { LOAD_AGENT, LOAD_TOKEN } from './load.ts';

const CHECK = '/svc.governance.v1.PolicyService/CheckAction';
const PAUSE_MS = 200;
const PATIENCE_MS = 30_000;

export type Newcomers = {
  readonly answered: { http: number; grpc: number };
  /** The reasons why checks were not allowed, for people. */
  readonly failures: string[];
  /** The longest that one took. */
  readonly longestMs: number;
  stop(): Promise<void>;
};

export function startNewcomers(gateway: TestGateway): Newcomers {
  const answered = { http: 0, grpc: 0 };
  const failures: string[] = [];
  const newcomers = { answered, failures, longestMs: 0, stop: async () => undefined as void };
  let isStopped = false;
  let asked = 0;
  const lane = async (kind: 'http' | 'grpc'): Promise<void> => {
    const check = kind === 'http' ? checkOverHttp : checkOverGrpc;
    while (!isStopped) {
      asked += 1;
      const sentAtMs = performance.now();
      await check(gateway, `newcomer-${asked}`).then(
        () => {
          answered[kind] += 1;
        },
        (error: NodeJS.ErrnoException) =>
          failures.push(`${kind}, sent at ${Math.round(sentAtMs)} ms: ${error.code} ${error.message}`),
      );
      newcomers.longestMs = Math.max(newcomers.longestMs, performance.now() - sentAtMs);
      await sleep(PAUSE_MS);
    }
  };
  const lanes = Promise.all([lane('http'), lane('grpc')]);
  newcomers.stop = async () => {
    isStopped = true;
    await lanes;
  };
  return newcomers;
}

const fieldsOf = (traceId: string) => ({
  agent: LOAD_AGENT,
  credentialToken: LOAD_TOKEN,
  traceId,
  spanId: 's',
  action: 'tool.call',
  resource: 'web_search',
});

function checkOverHttp(gateway: TestGateway, traceId: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const asking = request(
      gateway.url + CHECK,
      { method: 'POST', agent: false, headers: { 'content-type': 'application/json' }, timeout: PATIENCE_MS },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (piece: string) => {
          text += piece;
        });
        response.on('end', () => (text.includes('"DECISION_ALLOW"') ? resolve() : reject(new Error(text))));
      },
    );
    asking.on('timeout', () => asking.destroy(new Error('not answered in time')));
    asking.on('error', reject);
    asking.end(JSON.stringify(fieldsOf(traceId)));
  });
}

async function checkOverGrpc(gateway: TestGateway, traceId: string): Promise<void> {
  const message = { ...(emptyMessage(messageShape('CheckActionRequest')) as CheckActionRequest), ...fieldsOf(traceId) };
  const session = connect(`http://${gateway.grpc}`);
  try {
    await new Promise<void>((resolve, reject) => {
      session.on('error', reject);
      session.on('goaway', (code) => reject(new Error(`sent away with ${code}`)));
      session.setTimeout(PATIENCE_MS, () => reject(new Error('not answered in time')));
      const call = session.request({
        ':method': 'POST',
        ':path': CHECK,
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      call.on('error', reject).on('close', () => reject(new Error('closed without an answer')));
      call.on('trailers', (trailers) =>
        trailers['grpc-status'] === '0' ? resolve() : reject(new Error(JSON.stringify(trailers))),
      );
      call.resume();
      call.end(framed(binaryCodec('CheckActionRequest').encode(message) as Buffer));
    });
  } finally {
    session.destroy();
  }
}

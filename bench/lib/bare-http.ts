/**
 * The baseline of the HTTP doors: the library under them alone, which parses the body there is and answers as many
 * bytes.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { findNativeBuild, type Uws } from '../../src/doors/engine/native-builds.ts';

const ANSWER = JSON.stringify({
  decision: 'DECISION_ALLOW',
  reason: 'allowed by rule harmless-tools of policy starter',
  policy: 'starter',
  ruleId: 'harmless-tools',
  opId: '',
  opState: 'OP_STATE_RUNNING',
  auditId: '1',
});

function answerTo(body: Buffer): string {
  const { traceId, spanId } = JSON.parse(body.toString()) as { traceId: string; spanId: string };
  return ANSWER.replace('"opId":""', `"opId":"${traceId}:${spanId}"`);
}

function serveNatively(uws: Uws): void {
  uws
    .App()
    .get('/*', (res) => {
      res.cork(() => {
        res.writeHeader('Content-Type', 'application/json');
        res.end(ANSWER);
      });
    })
    .post('/*', (res) => {
      res.onAborted(() => {});
      res.onData((chunk) => {
        const answer = answerTo(Buffer.from(chunk));
        res.cork(() => {
          res.writeHeader('Content-Type', 'application/json');
          res.end(answer);
        });
      });
    })
    .listen('127.0.0.1', 0, (socket) => {
      if (socket === false) throw new Error('cannot listen');
      console.log(`port ${uws.us_socket_local_port(socket)} of uWebSockets.js`);
    });
}

function serveWithNode(): void {
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () =>
      res
        .writeHead(200, { 'Content-Type': 'application/json' })
        .end(chunks.length === 0 ? ANSWER : answerTo(Buffer.concat(chunks))),
    );
  });
  server.listen(0, '127.0.0.1', () => console.log(`port ${(server.address() as AddressInfo).port} of node:http`));
}

const found = findNativeBuild();
if (found.kind === 'none' || process.argv[2] === 'node') serveWithNode();
else serveNatively(found.library);

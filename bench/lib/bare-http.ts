/** The baseline of the HTTP doors: uWebSockets.js alone, which parses the same body and answers as many bytes. */
import uws from 'uWebSockets.js';

const ANSWER = JSON.stringify({ decision: 'DECISION_ALLOW', reason: 'allowed by rule harmless-tools of policy starter', policy: 'starter', ruleId: 'harmless-tools', opId: '', opState: 'OP_STATE_RUNNING', auditId: '1' });

// The package puts a stand-in in the place of a library that does not load: it is no baseline.
if (!('SSLApp' in uws)) {
  console.error(`no baseline: uWebSockets.js does not load with Node.js ${process.version}; measure with Node.js 20`);
  process.exit(1);
}

uws.App()
  .post('/*', (res) => {
    res.onAborted(() => {});
    res.onData((chunk) => {
      const { traceId, spanId } = JSON.parse(Buffer.from(chunk).toString()) as { traceId: string; spanId: string };
      res.cork(() => {
        res.writeHeader('Content-Type', 'application/json');
        res.end(ANSWER.replace('"opId":""', `"opId":"${traceId}:${spanId}"`));
      });
    });
  })
  .listen('127.0.0.1', 0, (socket) => {
    if (socket === false) throw new Error('cannot listen');
    console.log(`port ${uws.us_socket_local_port(socket)}`);
  });

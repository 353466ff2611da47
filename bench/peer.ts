/**
 * How many checks a second does the gateway decide beside a policy server of another make, asked the same question by
 * the same client, over HTTP with JSON and over gRPC? The peer is Cerbos, a Go server, installed for the run.
 */
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../test/support/free-port.ts';
import { CHECK_PATH } from './lib/answers.ts';
import { endingOf, scratchFolder } from './lib/ending.ts';
import { callOnce, hasH2load, loadCalls } from './lib/grpc-load.ts';
import { httpClient, loadHttp } from './lib/http-load.ts';
import { isBrief } from './lib/options.ts';
import { installPeers } from './lib/peers.ts';
import { field } from './lib/protobuf.ts';
import { heading, headline, line } from './lib/report.ts';
import { CHECK_BODY, CHECK_CALL, startGateway } from './lib/subject.ts';

const VERSION = '0.55.0';
const PACKAGE = `cerbos-${process.platform}-${process.arch}`;
const CONNECTIONS = 64;
const CALLS = isBrief ? 1_000 : 30_000;
const SECONDS = isBrief ? 1 : 6;
const ROUNDS = isBrief ? 1 : 3;

/** The rule of the starter policy that decides the check, in the peer's words. */
const POLICY = `apiVersion: api.cerbos.dev/v1
resourcePolicy:
  version: default
  resource: tool
  rules:
    - actions: ["tool.call"]
      effect: EFFECT_ALLOW
      roles: ["agent"]
      condition:
        match:
          expr: request.resource.id == "web_search"
`;
const QUESTION = JSON.stringify({
  requestId: '<id>',
  principal: { id: 'acme/search/crawler-17', roles: ['agent'] },
  resources: [{ actions: ['tool.call'], resource: { kind: 'tool', id: 'web_search' } }],
});

/** The same as its gRPC service takes it: `cerbos.svc.v1.CheckResourcesRequest`. */
const PRINCIPAL = Buffer.concat([field(1, 'acme/search/crawler-17'), field(3, 'agent')]);
const RESOURCE = Buffer.concat([field(1, 'tool'), field(3, 'web_search')]);
const CALL_OF_PEER = Buffer.concat([
  field(1, 'bench'),
  field(3, PRINCIPAL),
  field(4, Buffer.concat([field(1, 'tool.call'), field(2, RESOURCE)])),
]);

type Peer = { readonly url: string; readonly grpc: string; stop(): Promise<void> };

async function startPeer(binary: string, isAudited: boolean): Promise<Peer> {
  const folder = scratchFolder();
  const [http, grpc] = [await freePort(), await freePort()];
  mkdirSync(join(folder, 'policies'));
  writeFileSync(join(folder, 'policies', 'tool.yaml'), POLICY);
  const audit = {
    enabled: true,
    accessLogsEnabled: false,
    decisionLogsEnabled: true,
    backend: 'file',
    file: { path: join(folder, 'audit.log') },
  };
  writeFileSync(
    join(folder, 'config.yaml'),
    JSON.stringify({
      server: { httpListenAddr: `127.0.0.1:${http}`, grpcListenAddr: `127.0.0.1:${grpc}` },
      storage: { driver: 'disk', disk: { directory: join(folder, 'policies') } },
      telemetry: { disabled: true },
      ...(isAudited ? { audit } : {}),
    }),
  );
  const child = spawn(binary, ['server', `--config=${join(folder, 'config.yaml')}`, '--log-level=error'], {
    stdio: 'ignore',
  });
  const stop = endingOf(child, folder);
  const url = `http://127.0.0.1:${http}`;
  for (const untilMs = Date.now() + 15_000; ; await sleep(50)) {
    if (
      await fetch(`${url}/_cerbos/health`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      break;
    if (child.exitCode !== null || Date.now() > untilMs) throw new Error('the peer does not start');
  }
  return { url, grpc: `127.0.0.1:${grpc}`, stop };
}

const rate = async (url: string, body: string): Promise<number> => {
  const { perSecond, failed } = await loadHttp({
    url,
    headers: { 'content-type': 'application/json' },
    body,
    connections: CONNECTIONS,
    seconds: SECONDS,
  });
  if (failed > 0) throw new Error(`${failed} requests failed`);
  return perSecond;
};

heading(`Checks a second beside a policy server of another make, ${CONNECTIONS} connections (${httpClient})`);
const folder = installPeers(`@cerbos/${PACKAGE}@${VERSION}`);
if (folder !== undefined) await measure(join(folder, 'node_modules', '@cerbos', PACKAGE, PACKAGE));

async function measure(binary: string): Promise<void> {
  const gateway = await startGateway();
  const [silent, audited] = [await startPeer(binary, false), await startPeer(binary, true)];
  const callsOf = (address: string, method: string, message: Buffer): number =>
    loadCalls({ address, method, messages: [message], calls: CALLS, atOnce: CONNECTIONS / 4 });
  const METHOD_OF_PEER = 'cerbos.svc.v1.CerbosService/CheckResources';
  const ask = async () => ({
    gateway: await rate(gateway.url + CHECK_PATH, CHECK_BODY),
    silent: await rate(`${silent.url}/api/check/resources`, QUESTION),
    audited: await rate(`${audited.url}/api/check/resources`, QUESTION),
  });
  const call = () => ({
    gateway: callsOf(gateway.grpc, 'svc.governance.v1.PolicyService/CheckAction', CHECK_CALL),
    silent: callsOf(silent.grpc, METHOD_OF_PEER, CALL_OF_PEER),
    audited: callsOf(audited.grpc, METHOD_OF_PEER, CALL_OF_PEER),
  });
  await ask(); // warm
  const overHttp: Rates[] = [];
  for (let round = 0; round < ROUNDS; round += 1) overHttp.push(await ask());
  report('HTTP', overHttp);
  if (hasH2load) {
    const answer = await callOnce(silent.grpc, METHOD_OF_PEER, CALL_OF_PEER);
    // of the map from actions to effects, where 1 is to allow
    if (!answer.includes('tool.call\x10\x01'))
      throw new Error(`the peer does not allow it: ${answer.toString('latin1')}`);
    await callOnce(gateway.grpc, 'svc.governance.v1.PolicyService/CheckAction', CHECK_CALL);
    call(); // warm
    report('gRPC', Array.from({ length: ROUNDS }, call));
  } else console.log('  h2load is not installed: gRPC is not measured');
  await Promise.all([gateway.stop(), silent.stop(), audited.stop()]);
}

type Rates = { readonly gateway: number; readonly silent: number; readonly audited: number };

function report(protocol: string, rounds: readonly Rates[]): void {
  const of = (who: keyof Rates): readonly number[] => rounds.map((round) => round[who]);
  line(`${protocol}: gateway, registry and audit log on`, of('gateway'), 'checks/s');
  line(`${protocol}: Cerbos ${VERSION}, no audit log`, of('silent'), 'checks/s');
  line(`${protocol}: Cerbos ${VERSION}, decisions logged to a file`, of('audited'), 'checks/s');
  headline(
    `${protocol}: rate / of Cerbos, which logs nothing`,
    rounds.map((round) => round.gateway / round.silent),
    '×',
  );
  line(
    `${protocol}: gateway / Cerbos, decisions logged`,
    rounds.map((round) => round.gateway / round.audited),
    '×',
  );
}

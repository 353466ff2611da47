/**
 * How many checks a second does the gateway decide beside a policy server of another make, asked the same question over
 * HTTP and JSON by the same client? The peer is Cerbos, a Go server; it takes part where its binary is installed:
 * npm install --no-save @cerbos/cerbos-linux-x64@0.55.0
 */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PACKAGE_ROOT } from '../src/app/package-files.ts';
import { freePort } from '../test/support/free-port.ts';
import { endingOf, scratchFolder } from './lib/ending.ts';
import { httpClient, loadHttp } from './lib/http-load.ts';
import { isBrief } from './lib/options.ts';
import { heading, line, median, ratio } from './lib/report.ts';
import { CHECK_BODY, startGateway } from './lib/subject.ts';

const BINARY = join(PACKAGE_ROOT, 'node_modules', '@cerbos', 'cerbos-linux-x64', 'cerbos-linux-x64');
const CONNECTIONS = 64;
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

type Peer = { readonly url: string; stop(): Promise<void> };

async function startPeer(isAudited: boolean): Promise<Peer> {
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
  const child = spawn(BINARY, ['server', `--config=${join(folder, 'config.yaml')}`, '--log-level=error'], {
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
  return { url, stop };
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
if (existsSync(BINARY)) await measure();
else console.log('  left out: npm install --no-save @cerbos/cerbos-linux-x64@0.55.0');

async function measure(): Promise<void> {
  const gateway = await startGateway();
  const [bare, audited] = [await startPeer(false), await startPeer(true)];
  const ask = {
    gateway: () => rate(`${gateway.url}/svc.governance.v1.PolicyService/CheckAction`, CHECK_BODY),
    bare: () => rate(`${bare.url}/api/check/resources`, QUESTION),
    audited: () => rate(`${audited.url}/api/check/resources`, QUESTION),
  };
  const answer = await (
    await fetch(`${bare.url}/api/check/resources`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: QUESTION,
    })
  ).text();
  if (!answer.includes('EFFECT_ALLOW')) throw new Error(`the peer does not allow it: ${answer}`);
  for (const warm of Object.values(ask)) await warm();
  const rounds: { gateway: number; bare: number; audited: number }[] = [];
  for (let round = 0; round < ROUNDS; round += 1)
    rounds.push({ gateway: await ask.gateway(), bare: await ask.bare(), audited: await ask.audited() });
  await Promise.all([gateway.stop(), bare.stop(), audited.stop()]);
  line('gateway, registry and audit log on', median(rounds.map((round) => round.gateway)), 'checks/s');
  line('Cerbos, no audit log', median(rounds.map((round) => round.bare)), 'checks/s');
  line('Cerbos, decisions logged to a file', median(rounds.map((round) => round.audited)), 'checks/s');
  ratio('gateway / Cerbos, no audit log', median(rounds.map((round) => round.gateway / round.bare)), 1);
  ratio('gateway / Cerbos, decisions logged', median(rounds.map((round) => round.gateway / round.audited)), 1);
}

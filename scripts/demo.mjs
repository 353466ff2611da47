// `npm run demo`: a gateway with an embedded PostgreSQL and a lively fleet of 200 agents, on free ports, in a folder
// that is removed at the end. SVC_HTTP_ADDR, SVC_GRPC_ADDR and SVC_DATA_DIR choose others; a folder that is given is
// kept.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startFleet } from './demo/fleet.mjs';

const COMMAND = fileURLToPath(new URL('../dist/src/cli/main.js', import.meta.url));
const POLICIES = fileURLToPath(new URL('./demo/policies', import.meta.url));
const READY = /^ {2}HTTP core .*\n/m;

const folder = mkdtempSync(join(tmpdir(), 'svc-demo-'));
const adminKey = process.env.SVC_BOOTSTRAP_API_KEY ?? `demo-${randomBytes(24).toString('base64url')}`;
let stopFleet = () => undefined;
let isStopping = false;

const gateway = spawn(process.execPath, [COMMAND, 'serve'], {
  env: {
    SVC_HTTP_ADDR: '127.0.0.1:0',
    SVC_GRPC_ADDR: '127.0.0.1:0',
    SVC_DATA_DIR: join(folder, 'data'),
    SVC_DATABASE_URL: 'embedded',
    SVC_POLICY_PATH: POLICIES,
    SVC_BOOTSTRAP_API_KEY: adminKey,
    SVC_RATE_LIMIT_API: '0', // the fleet registers with one key
    SVC_LOG_LEVEL: 'warn',
    ...process.env,
  },
  stdio: ['ignore', 'pipe', 'inherit'],
  // Ctrl-C reaches this script, which stops the fleet first.
  detached: true,
});
const ended = new Promise((resolve) => {
  gateway.once('exit', (code, signal) => resolve(signal ?? code));
});

async function stop(status = 0) {
  if (isStopping) return;
  isStopping = true;
  stopFleet();
  gateway.kill('SIGTERM');
  await ended;
  rmSync(folder, { recursive: true, force: true });
  process.exit(status);
}
process.on('SIGINT', () => void stop());
process.on('SIGTERM', () => void stop());
void ended.then((why) => {
  if (isStopping) return;
  console.error(`the gateway ended (${why})`);
  void stop(1);
});

let output = '';
await new Promise((resolve) => {
  gateway.stdout.on('data', (chunk) => {
    output += chunk;
    if (READY.test(output)) resolve();
  });
});
const url = /HTTP\s+(http:\S+)/.exec(output)?.[1];
console.log('The gateway is ready; 200 agents are being registered …');
try {
  stopFleet = await startFleet({ url, adminKey, onError: (error) => console.error('fleet:', error.message) });
  console.log(`
The demo runs. Open the dashboard and sign in with the key:

  URL  ${url}
  Key  ${adminKey}

Ctrl-C stops it${process.env.SVC_DATA_DIR === undefined ? ' and removes its data' : ''}.
`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  await stop(1);
}

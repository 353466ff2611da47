/**
 * `npm run demo:cluster`: three gateways that act as one, a PostgreSQL of their own, and a TCP balancer before them, in
 * a folder that is removed at the end. Kill a gateway, stop it (`kill -STOP`), start it again: the balancer goes on.
 * `DEMO_PORT` is the balancer's port; without it, the first of 8080, 8180, 8280 … that is free with the three after it.
 */
import { spawn } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startEmbeddedPostgres } from '../dist/src/stores/trial-postgres/trial-postgres.js';

const COMMAND = fileURLToPath(new URL('../dist/src/cli/main.js', import.meta.url));
const GATEWAYS = 3;
/** The balancer's; the gateways have those after it. */
const PORT = await freeBlock(process.env.DEMO_PORT);
const READY = /^ {2}HTTP core .*\n/m;

async function freeBlock(chosen) {
  const first = Number(chosen ?? 8080);
  if (!Number.isInteger(first) || first < 1 || first > 65_535 - GATEWAYS)
    fail(`DEMO_PORT must be a port, not ${chosen}`);
  for (let port = first; port <= 65_535 - GATEWAYS; port += 100) {
    const taken = await firstTaken(port);
    if (taken === undefined) return port;
    if (chosen !== undefined)
      fail(`port ${taken} is taken; choose another DEMO_PORT, which also needs the 3 ports after it`);
  }
  return fail('no four ports in a row are free; choose a DEMO_PORT');
}

async function firstTaken(from) {
  for (let port = from; port <= from + GATEWAYS; port += 1) {
    const server = createServer();
    const isFree = await new Promise((resolve) =>
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)),
    );
    if (!isFree) return port;
    await new Promise((resolve) => server.close(resolve));
  }
  return undefined;
}

function fail(message) {
  console.error(message);
  process.exit(1);
}

const folder = mkdtempSync(join(tmpdir(), 'svc-cluster-'));
const adminKey = `demo-${randomBytes(24).toString('base64url')}`;
const signingKey = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const children = new Map();
let isStopping = false;

const log = { info: () => undefined, warn: (message, fields) => console.error('postgres:', message, fields ?? '') };
const database = await startEmbeddedPostgres({ dataDir: folder }, log);

/** A gateway that ends by itself is started again after a while, as an orchestrator would. */
async function startGateway(number) {
  const name = `gateway-${number}`;
  const child = spawn(process.execPath, [COMMAND, 'serve'], {
    env: {
      ...process.env,
      SVC_CLUSTER: 'on',
      SVC_NODE_NAME: name,
      SVC_DATABASE_URL: database.url,
      SVC_DATA_DIR: join(folder, name),
      SVC_HTTP_ADDR: `127.0.0.1:${PORT + number}`,
      SVC_GRPC_ADDR: '127.0.0.1:0',
      SVC_BOOTSTRAP_API_KEY: adminKey,
      SVC_JWT_PRIVATE_KEY: signingKey,
      SVC_PUBLIC_URL: `http://127.0.0.1:${PORT}`,
      SVC_IO_THREADS: '1',
      SVC_LOG_LEVEL: process.env.SVC_LOG_LEVEL ?? 'warn',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
    // Ctrl-C reaches this script, which stops them in order.
    detached: true,
  });
  children.set(number, child);
  child.once('exit', (code, signal) => {
    children.delete(number);
    if (isStopping) return;
    console.log(`${name} ended (${signal ?? code}); it comes back in 5 s`);
    setTimeout(() => void startGateway(number).catch(() => undefined), 5_000);
  });
  let output = '';
  await new Promise((resolve, reject) => {
    child.once('exit', () => reject(new Error(`${name} did not start:\n${output}`)));
    child.stdout.on('data', (chunk) => {
      output += chunk;
      if (READY.test(output)) resolve();
    });
  });
  console.log(`${name} is ready: http://127.0.0.1:${PORT + number}, process ${child.pid}`);
}

/** By port, the gateways that were ready when they were last asked, and what is connected to each. */
const ready = new Map();

/** The system accepts connections for a process that is stopped, so that it does not answer is found out by asking. */
async function askIfReady(port) {
  const answer = await fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(
    () => ({}),
  );
  if (answer.ok && !ready.has(port)) ready.set(port, new Set());
  if (answer.ok) return;
  for (const far of ready.get(port) ?? []) far.destroy();
  ready.delete(port);
}

const askAll = () => Promise.all(Array.from({ length: GATEWAYS }, (_, at) => askIfReady(PORT + 1 + at)));

async function watchGateways() {
  for (; !isStopping; await sleep(1_000)) await askAll();
}

/** Each connection goes to the next gateway that is ready, and ends when that is no more. */
let next = 0;
const balancer = createServer((near) => {
  near.on('error', () => near.destroy());
  next += 1;
  const [port, connected] = [...ready][next % ready.size] ?? [];
  if (port === undefined) return near.destroy();
  const far = connect(port, '127.0.0.1');
  connected.add(far);
  near.pipe(far).pipe(near);
  far.on('error', () => near.destroy());
  far.once('close', () => {
    connected.delete(far);
    near.destroy();
  });
  near.once('close', () => far.destroy());
});

async function stop() {
  if (isStopping) return;
  isStopping = true;
  balancer.close();
  const ended = Array.from(children.values(), (child) => new Promise((resolve) => child.once('exit', resolve)));
  for (const child of children.values()) {
    child.kill('SIGCONT');
    child.kill('SIGTERM');
  }
  await Promise.all(ended);
  await database.stop(2_000);
  rmSync(folder, { recursive: true, force: true });
  process.exit();
}
process.on('SIGINT', () => void stop());
process.on('SIGTERM', () => void stop());

try {
  await startGateway(1); // the first one makes the tables
  await Promise.all([startGateway(2), startGateway(3)]);
  await askAll();
  void watchGateways();
  await new Promise((resolve, reject) => balancer.once('error', reject).listen(PORT, '127.0.0.1', resolve));
  console.log(`
The cluster is ready at http://127.0.0.1:${PORT}, the balancer. In another terminal:

  export SVC_CLI_API_URL=http://127.0.0.1:${PORT} SVC_CLI_API_KEY=${adminKey}
  npx svc cluster ls
  npx svc agents register acme/search/crawler

Ctrl-C stops it and removes its data.
`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
  await stop();
}

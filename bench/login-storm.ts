/**
 * Does a storm of 500 logins, each an argon2id hash, keep agents waiting for their checks? Against the same checks
 * without it.
 */
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { isBrief } from './lib/options.ts';
import { checkSteadily, pacedClient, type Waits } from './lib/paced-load.ts';
import { heading, headline, line } from './lib/report.ts';
import { ADMIN_KEY, startGateway } from './lib/subject.ts';

const PACE = { rate: 2_000, seconds: isBrief ? 1 : 5, connections: 20 };
const LOGINS = isBrief ? 20 : 500;
const ROUNDS = isBrief ? 1 : 5;
const EMAIL = 'owner@example.com';
const PASSWORD = 'correct horse battery staple';

type Statuses = Readonly<Record<string, number>>;

/** All at once; answers how many were let in, refused for a wrong password, and sent away because too many wait. */
async function storm(url: string): Promise<Statuses> {
  const statuses: Record<string, number> = {};
  await Promise.all(
    Array.from({ length: LOGINS }, async (_, at) => {
      const status = await login(new URL(url), at % 2 === 0 ? EMAIL : `nobody-${at}@example.com`);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }),
  );
  return statuses;
}

/** By hand over a socket: an HTTP client would take more of the processors than what it asks for. */
const login = ({ hostname, port }: URL, email: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const body = JSON.stringify({ email, password: PASSWORD });
    const socket = connect(Number(port), hostname, () => {
      socket.write(
        `POST /api/v1/auth/login HTTP/1.1\r\nHost: ${hostname}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
    });
    socket.once('data', (bytes) => {
      resolve(bytes.toString('latin1', 9, 12));
      socket.destroy();
    });
    socket.once('error', reject);
  });

/** From a thread of its own, which is up before the storm begins. */
async function stormElsewhere(url: string): Promise<() => Promise<Statuses>> {
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: url, argv: process.argv.slice(2) });
  await new Promise((resolve) => {
    worker.once('message', resolve);
  });
  return () =>
    new Promise((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.postMessage('begin');
    });
}

if (isMainThread) await measure();
else {
  parentPort?.once(
    'message',
    () => void storm(workerData as string).then((statuses) => parentPort?.postMessage(statuses)),
  );
  parentPort?.postMessage('up');
}

async function measure(): Promise<void> {
  heading(
    `Checks during a storm of ${LOGINS} logins, ${PACE.rate.toLocaleString('en')} checks a second, embedded PostgreSQL (${pacedClient})`,
  );
  const gateway = await startGateway({ SVC_DATABASE_URL: 'embedded', SVC_RATE_LIMIT_AUTH: '0' });
  const registered = await fetch(`${gateway.url}/api/v1/auth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_KEY}` },
    body: JSON.stringify({ email: EMAIL, password: PASSWORD }),
  });
  if (registered.status !== 201) throw new Error(await registered.text());
  await checkSteadily(gateway.url, PACE); // warm
  await (await stormElsewhere(gateway.url))();
  const rounds: { calm: Waits; stormy: Waits }[] = [];
  let statuses: Statuses = {};
  for (let round = 0; round < ROUNDS; round += 1) {
    const calm = await checkSteadily(gateway.url, PACE);
    const begin = await stormElsewhere(gateway.url);
    const [stormy, outcome] = await Promise.all([checkSteadily(gateway.url, PACE), begin()]);
    statuses = outcome;
    rounds.push({ calm, stormy });
  }
  await gateway.stop();
  for (const name of ['p50', 'p99', 'longest'] as const) {
    line(
      `${name} without`,
      rounds.map(({ calm }) => calm[name]),
      'ms',
    );
    line(
      `${name} during the storm`,
      rounds.map(({ stormy }) => stormy[name]),
      'ms',
    );
  }
  headline(
    `p99 of checks while ${LOGINS} people log in / without`,
    rounds.map(({ calm, stormy }) => stormy.p99 / calm.p99),
    '×',
    'goal: at most 1.5',
  );
  console.log(
    `  answers to the last storm: ${Object.entries(statuses)
      .map(([status, count]) => `${count} × ${status}`)
      .join(', ')}`,
  );
}

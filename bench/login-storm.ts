/** Does a storm of 500 logins, each an argon2id hash, keep agents waiting for their checks? Against the same checks without it. */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { fileURLToPath } from 'node:url';
import autocannon from 'autocannon';
import { heading, isBrief, line, median, ratio } from './lib/report.ts';
import { ADMIN_KEY, CHECK_BODY, startGateway, type Subject } from './lib/subject.ts';

const RATE = 2_000;
const SECONDS = isBrief ? 1 : 5;
const LOGINS = isBrief ? 20 : 500;
const ROUNDS = isBrief ? 1 : 3;
const EMAIL = 'owner@example.com';
const PASSWORD = 'correct horse battery staple';

const p99OfChecks = async (gateway: Subject): Promise<number> => {
  const { latency, non2xx, errors } = await autocannon({
    url: `${gateway.url}/svc.governance.v1.PolicyService/CheckAction`,
    method: 'POST', connections: 20, duration: SECONDS, overallRate: RATE,
    headers: { 'content-type': 'application/json' },
    body: CHECK_BODY.replace('<id>', '1'),
  });
  if (non2xx + errors > 0) throw new Error(`${non2xx + errors} checks failed`);
  return latency.p99;
};

type Statuses = Readonly<Record<string, number>>;

/** All at once; answers how many were let in, refused for a wrong password, and sent away because too many wait. */
async function storm(url: string): Promise<Statuses> {
  const statuses: Record<string, number> = {};
  await Promise.all(Array.from({ length: LOGINS }, async (_, at) => {
    const { status } = await fetch(`${url}/api/v1/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: at % 2 === 0 ? EMAIL : `nobody-${at}@example.com`, password: PASSWORD }),
    });
    statuses[status] = (statuses[status] ?? 0) + 1;
  }));
  return statuses;
}

/** From a thread of its own, so that the storm does not delay the client whose waiting is measured. */
const stormElsewhere = (url: string): Promise<Statuses> => new Promise((resolve, reject) => {
  const worker = new Worker(fileURLToPath(import.meta.url), { workerData: url, argv: process.argv.slice(2) });
  worker.once('message', resolve);
  worker.once('error', reject);
});

if (isMainThread) await measure();
else parentPort?.postMessage(await storm(workerData as string));

async function measure(): Promise<void> {
  heading(`Checks during a storm of ${LOGINS} logins, ${RATE.toLocaleString('en')} checks a second, embedded PostgreSQL`);
  const gateway = await startGateway({ SVC_DATABASE_URL: 'embedded', SVC_RATE_LIMIT_AUTH: '0' });
  const registered = await fetch(`${gateway.url}/api/v1/auth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_KEY}` },
    body: JSON.stringify({ email: EMAIL, password: PASSWORD }),
  });
  if (registered.status !== 201) throw new Error(await registered.text());
  await p99OfChecks(gateway); // warm
  const rounds: { calm: number; stormy: number }[] = [];
  let statuses: Statuses = {};
  for (let round = 0; round < ROUNDS; round += 1) {
    const calm = await p99OfChecks(gateway);
    const [stormy, outcome] = await Promise.all([p99OfChecks(gateway), stormElsewhere(gateway.url)]);
    statuses = outcome;
    rounds.push({ calm, stormy });
  }
  await gateway.stop();
  line('p99 without', median(rounds.map(({ calm }) => calm)), 'ms');
  line('p99 during the storm', median(rounds.map(({ stormy }) => stormy)), 'ms');
  ratio('during / without', median(rounds.map(({ calm, stormy }) => stormy / Math.max(calm, 1))), 1, 1.5);
  console.log(`  answers to the last storm: ${Object.entries(statuses).map(([status, count]) => `${count} × ${status}`).join(', ')}`);
}

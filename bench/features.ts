/**
 * Measures the cost of each feature to a check, while nobody uses it and while somebody does. A gateway for each, in
 * turn beside one that uses none of them. Features that cannot be turned off, such as statistics, are measured alone,
 * in this thread.
 */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { CheckAnswer } from '../src/core/commands.ts';
import { Stats } from '../src/core/stats/stats.ts';
import { endedBy, scratchFolder } from './lib/ending.ts';
import { inRounds, measureEveryday } from './lib/everyday-load.ts';
import { isBrief } from './lib/options.ts';
import { heading, line } from './lib/report.ts';
import { ADMIN_KEY, AGENT, CHECK_BODY, type Subject, startGateway, TOKEN } from './lib/subject.ts';

const ROUNDS = isBrief ? 1 : 3;
const LOAD = { rate: 2_000, seconds: isBrief ? 0.5 : 2 };
const HALTS = 100;
const WAITING = 100;
const COUNTED = isBrief ? 10_000 : 1_000_000;

const RULES = `name: features
scope: global
rules:
  - { id: tools, actions: [tool.call], resources: [web_search], effect: allow }
  - { id: asked, actions: [tool.call], resources: ["asked_*"], effect: require_approval }
`;
const OBLIGED = RULES.replace(
  'effect: allow }',
  'effect: allow, obligations: [{ id: no-cards, type: redact, paths: [note] }] }',
);
const OBLIGED_BODY = CHECK_BODY.replace('"action"', '"supportedObligations":["redact"],"action"');

const folder = scratchFolder();
const policyFile = (name: string, text: string): string => {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
};
const PLAIN = { SVC_POLICY_PATH: policyFile('plain.yaml', RULES), SVC_RATE_LIMIT_API: '0' };

async function send(method: string, { url }: Subject, path: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' };
  const answer = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
}

/** Receives what webhooks send. */
const receiver = createServer((request, response) => {
  request.resume();
  response.end();
});
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
const stopReceiver = endedBy(async () => void receiver.close());
const receiverUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;

/** Each is given a gateway of its own, and begins to use the feature there. */
const FEATURES: Readonly<Record<string, () => Promise<Subject>>> = {
  [`${HALTS} halts of its org in force`]: async () => {
    const gateway = await startGateway(PLAIN);
    for (let nth = 0; nth < HALTS; nth += 1)
      await send('POST', gateway, '/api/v1/halts', {
        scope: `agent:${AGENT.orgId}/${AGENT.teamId}/other-${nth}`,
        reason: 'a benchmark',
      });
    return gateway;
  },
  [`${WAITING} approvals asked for`]: async () => {
    const gateway = await startGateway(PLAIN);
    for (let nth = 0; nth < WAITING; nth += 1)
      await send('POST', gateway, '/svc.governance.v1.PolicyService/CheckAction', {
        agent: AGENT,
        credentialToken: TOKEN,
        traceId: 'asked',
        spanId: String(nth),
        action: 'tool.call',
        resource: `asked_${nth}`,
      });
    return gateway;
  },
  'an obligation in each answer': () =>
    startGateway({ ...PLAIN, SVC_POLICY_PATH: policyFile('obliged.yaml', OBLIGED) }),
  'a webhook': async () => {
    const gateway = await startGateway({ ...PLAIN, SVC_WEBHOOKS_ALLOW_PRIVATE: 'true' });
    await send('POST', gateway, '/api/v1/webhooks', { url: receiverUrl, events: ['budget.exceeded', 'violation'] });
    return gateway;
  },
  'a shadow that decides the same': async () => {
    const gateway = await startGateway(PLAIN);
    await send('PUT', gateway, '/api/v1/policies/shadow', { files: [{ name: 'shadow.yaml', text: RULES }] });
    return gateway;
  },
};

heading(`Processor time of a check at ${LOAD.rate.toLocaleString('en')}/s with each feature in use, and with none`);
const none = await startGateway(PLAIN);
const used = new Map<string, Subject>();
for (const [name, start] of Object.entries(FEATURES)) used.set(name, await start());
const bodyOf = (name: string): string => (name.startsWith('an obligation') ? OBLIGED_BODY : CHECK_BODY);
const measures = new Map([['none of them', () => measureEveryday(none, LOAD)]]);
for (const [name, subject] of used) measures.set(name, () => measureEveryday(subject, { ...LOAD, body: bodyOf(name) }));
for (const measure of measures.values()) await measure(); // warm
const results = await inRounds(ROUNDS, Object.fromEntries(measures));
for (const subject of [none, ...used.values()]) await subject.stop();
await stopReceiver();
const costs = (name: string): readonly number[] => (results[name] ?? []).map(({ cpuUsPerCheck }) => cpuUsPerCheck);
line('none of them', costs('none of them'), 'µs/check');
for (const name of used.keys()) {
  line(name, costs(name), 'µs/check');
  line(
    `${name}: / none of them`,
    costs(name).map((cost, round) => cost / (costs('none of them')[round] ?? Number.NaN)),
    '×',
  );
}

/** Statistics count each check. */
function measureStats(): number {
  const stats = new Stats(Date.now(), [1, 10, 100]);
  const answer: CheckAnswer = {
    decision: 'allow',
    reason: 'allowed',
    policy: 'features',
    ruleId: 'tools',
    cause: undefined,
    exceeded: undefined,
    opState: 'running',
  };
  const startedMs = performance.now();
  for (let nth = 0; nth < COUNTED; nth += 1) stats.countCheck(AGENT, answer, Date.now());
  return ((performance.now() - startedMs) / COUNTED) * 1_000;
}
measureStats(); // warm
line(
  'statistics, of every check',
  Array.from({ length: ROUNDS }, measureStats),
  'µs/check',
  'always on, in one thread',
);

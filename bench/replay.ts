/**
 * How long does a gateway replay a million recorded checks, and what do live checks feel of it? Writes a log of so many
 * entries (or as many as the first argument says), then measures checks that arrive at random, with and without a
 * replay beside them.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openAuditWriter } from '../src/audit-log/writer.ts';
import { encodeDraft } from '../src/core/audit/audit-line.ts';
import type { OpId } from '../src/core/base/ids.ts';
import { scratchFolder } from './lib/ending.ts';
import { inRounds, measureEveryday } from './lib/everyday-load.ts';
import { isBrief, numbers } from './lib/options.ts';
import { heading, line, shown } from './lib/report.ts';
import { ADMIN_KEY, startGateway } from './lib/subject.ts';

const total = numbers[0] ?? (isBrief ? 20_000 : 1_000_000);
const BATCH = 1000;
const ROUNDS = isBrief ? 1 : 3;
const LOAD = { rate: 1_000, seconds: isBrief ? 0.5 : 4 };

heading(`Replaying ${total.toLocaleString('en')} recorded checks at a running gateway`);

const dataDir = join(scratchFolder(), 'data');
const opened = openAuditWriter({ directory: join(dataDir, 'audit'), fsync: 'never', nowMs: () => Date.now() });
if (!opened.ok) throw new Error('the fresh folder is locked');
const { writer } = opened.value;
for (let done = 0; done < total; done += BATCH) {
  const bodies = Array.from({ length: BATCH }, (_, at) => bodyOf(done + at)).join('\n');
  const appended = await writer.append(bodies, BATCH);
  if (!appended.ok) throw new Error(appended.fault.detail);
}
await writer.close();

function bodyOf(nth: number): string {
  const agent = { orgId: `org-${nth % 50}`, teamId: 'search', agentId: `agent-${nth % 1000}` };
  return encodeDraft(
    {
      eventType: 'ActionAllowed',
      lineage: agent,
      actor: `agent:${agent.orgId}/search/${agent.agentId}`,
      opId: `${nth.toString(16).padStart(32, '0')}:00f067aa0ba902b7` as OpId,
      decision: 'allow',
      reason: 'allowed by rule everyday of policy starter',
      policy: 'starter',
      ruleId: 'everyday',
      payload: {
        action: 'tool.call',
        resource: `tool-${nth % 40}`,
        attributes: { query: `the weather in town ${nth % 500}`, max_results: 10, size: nth % 9_000 },
        estimated_cost_usd: 0.002,
      },
    },
    Date.now(),
  );
}

/** A thousand rules in which the one that decides is found late, as in a large fleet. */
const RULES = [
  ...Array.from(
    { length: 999 },
    (_, at) => `  - { id: r${at}, effect: allow, actions: [file.read], resources: ["/srv/${at}/*"] }`,
  ),
  '  - { id: tools, effect: allow, actions: [tool.call], when: "attributes.size < 8000.0" }',
];
const SET = [{ name: 'next.yaml', text: `name: next\nscope: global\nrules:\n${RULES.join('\n')}\n` }];

const gateway = await startGateway({ SVC_DATA_DIR: dataDir });

async function replay(signal?: AbortSignal): Promise<{ readonly checks: number; readonly changed: number }> {
  const answer = await fetch(`${gateway.url}/api/v1/policies/replay`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ files: SET }),
    ...(signal && { signal }),
  });
  const text = await answer.text();
  if (answer.status === 409) {
    await sleep(100); // the one before is still ending
    return replay(signal);
  }
  if (answer.status !== 200) throw new Error(text);
  return JSON.parse(text.trimEnd().split('\n').at(-1) ?? '').result;
}

const seconds = async (work: () => Promise<{ readonly checks: number }>): Promise<number> => {
  const startedMs = performance.now();
  const { checks } = await work();
  if (checks < total) throw new Error(`only ${checks} of ${total} checks were replayed`);
  return (performance.now() - startedMs) / 1000;
};
line('by itself', await seconds(replay), 's', 'goal for a million: at most 60');

async function beside<T>(work: () => Promise<T>): Promise<T> {
  const ending = new AbortController();
  const replays = (async () => {
    while (!ending.signal.aborted)
      await replay(ending.signal).catch((error: unknown) => {
        if (!ending.signal.aborted) throw error;
      });
  })();
  const done = await work();
  ending.abort();
  await replays;
  return done;
}

await measureEveryday(gateway, LOAD); // warm
const results = await inRounds(ROUNDS, {
  without: () => measureEveryday(gateway, LOAD),
  beside: () => beside(() => measureEveryday(gateway, LOAD)),
});
for (const [name, rounds] of Object.entries(results))
  for (const percent of ['p50', 'p99'] as const)
    line(
      `checks at ${LOAD.rate.toLocaleString('en')}/s, ${name === 'beside' ? 'with a replay' : 'without one'}, ${percent}`,
      rounds.map((round) => round[percent]),
      'ms',
    );
const middle = (rounds: readonly { readonly p99: number }[]): number =>
  rounds.map(({ p99 }) => p99).sort((one, other) => one - other)[Math.floor(rounds.length / 2)] ?? Number.NaN;
line('p99 with a replay', middle(results.beside) / middle(results.without), 'times', `goal: at most ${shown(1.1)}`);
await gateway.stop();

/** Checks that arrive at random, what they wait, and what they cost the server. */
import { CHECK_PATH } from './answers.ts';
import { loadOpenly, type OpenWaits } from './open-loop.ts';
import { CHECK_BODY, type Subject } from './subject.ts';
import { usageOf } from './usage.ts';

export type Everyday = OpenWaits & { readonly cpuUsPerCheck: number; readonly switchesPerCheck: number };
export type EverydayLoad = {
  readonly rate: number;
  readonly seconds: number;
  readonly connections?: number;
  readonly body?: string;
  readonly agents?: number;
};

export async function measureEveryday(
  { url, pid }: Pick<Subject, 'url' | 'pid'>,
  { rate, seconds, connections = 64, body = CHECK_BODY, agents = 1 }: EverydayLoad,
): Promise<Everyday> {
  const before = usageOf(pid);
  const waits = await loadOpenly({ url: url + CHECK_PATH, body, rate, seconds, connections, agents });
  const after = usageOf(pid);
  return {
    ...waits,
    cpuUsPerCheck: (after.cpuUs - before.cpuUs) / waits.answered,
    switchesPerCheck: (after.switches - before.switches) / waits.answered,
  };
}

/** Each subject in turn, round by round, so that a mood of the machine meets all of them. */
export async function inRounds<Name extends string>(
  rounds: number,
  measures: Readonly<Record<Name, () => Promise<Everyday>>>,
): Promise<Readonly<Record<Name, readonly Everyday[]>>> {
  const names = Object.keys(measures) as Name[];
  const results = Object.fromEntries(names.map((name) => [name, [] as Everyday[]])) as Record<Name, Everyday[]>;
  for (let round = 0; round < rounds; round += 1) for (const name of names) results[name].push(await measures[name]());
  return results;
}

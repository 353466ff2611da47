/** The sets of policies before the one in force, and the set that is asked beside it. */
import { explain } from '../core/fault.ts';
import type { Governor } from '../core/governor.ts';
import type { PolicyVersions } from '../ports/policy-versions.ts';
import { createEmbeddedShadow, createShadowCounts } from '../stores/embedded/policy-shadow.ts';
import { createEmbeddedPolicyVersions } from '../stores/embedded/policy-versions.ts';
import type { EmbeddedStore } from '../stores/embedded/store.ts';
import { inSlices } from '../threads/main/policy-reader.ts';
import { ReplayLink } from '../threads/replay/replay-link.ts';
import type { PolicyKeeper, ReadSet } from '../use-cases/policies.ts';
import { PolicyHistory } from '../use-cases/policy-history.ts';
import { ReplayKeeper } from '../use-cases/policy-replay.ts';
import { ShadowKeeper } from '../use-cases/policy-shadow.ts';
import type { Cluster } from './start-cluster.ts';
import type { StartContext } from './start-context.ts';
import { otherLogs } from './start-logs.ts';
import { compileTexts } from './start-policies.ts';
import type { Resources } from './start-resources.ts';
import type { Threads } from './start-threads.ts';
import { auditFolderOf } from './worker-data.ts';

const TICK_EVERY_MS = 1_000;
/** Limits the loss of a shadow's counts in a crash. */
const SAVE_COUNTS_EVERY_MS = 10_000;

export type PolicyLife = {
  readonly history: PolicyHistory;
  readonly shadow: ShadowKeeper;
  readonly replays: ReplayKeeper;
  /** Goes on with what the run before has left. Call it before the doors open. */
  begin(): Promise<void>;
};

/** Outside a cluster: keeps each set that comes into force. Reads await it, so they show a reload that was answered. */
export function historyOf(store: EmbeddedStore, onError: Resources['onError']) {
  const stored = createEmbeddedPolicyVersions(store);
  let last: Promise<unknown> = Promise.resolve();
  const keep = ({ policies, texts }: ReadSet, by: string, sinceMs: number): void => {
    const { version, documents } = policies.summary();
    const rules = documents.reduce((sum, { ruleCount }) => sum + ruleCount, 0);
    const set = { version, sinceMs, by, documents: documents.length, rules, texts };
    last = last
      .then(() => stored.enter(set))
      .catch((error: unknown) => onError(error, 'keeping the policies in their history'));
  };
  const versions: PolicyVersions = {
    list: () => last.then(() => stored.list()),
    texts: (version) => last.then(() => stored.texts(version)),
  };
  return { versions, keep, settled: () => last };
}

export type PolicyLifeStart = {
  readonly resources: Pick<Resources, 'policies' | 'store' | 'onError'>;
  readonly threads: Pick<Threads, 'audit' | 'clock'>;
  readonly governor: Governor;
  readonly policyKeeper: PolicyKeeper;
  readonly cluster: Cluster | undefined;
  readonly own: ReturnType<typeof historyOf>;
};

export function openPolicyLife(
  { closers, config, log }: StartContext,
  {
    resources: { policies, store, onError },
    threads: { audit, clock },
    governor,
    policyKeeper,
    cluster,
    own,
  }: PolicyLifeStart,
): PolicyLife {
  const shadow = new ShadowKeeper({
    store: cluster?.policyStores.shadow ?? createEmbeddedShadow(store),
    counts: createShadowCounts(store),
    compile: compileTexts,
    install: (set) => {
      governor.shadow = set;
    },
    audit,
    clock,
    announce: async () => cluster?.states.barrier.pass('shadow') ?? [],
    countsElsewhere: async (version) => {
      const asked = await cluster?.peers.askAll('shadow', { version });
      return asked?.ok === true ? asked.value.answers.map(({ answer }) => answer) : [];
    },
    onError,
  });
  cluster?.peers.serve('shadow', async ({ version }) => shadow.countsOf(version));
  const versions: PolicyVersions = cluster?.policyStores.versions ?? own.versions;
  const history = new PolicyHistory({
    versions,
    shadow: () => shadow.kept && { ...shadow.kept, untilMs: undefined },
    inForce: () => policyKeeper.inForce,
    compile: compileTexts,
    inSlices,
  });
  const replays = new ReplayKeeper({
    textsOf: (version) => history.texts(version),
    openEngine: () => new ReplayLink(auditFolderOf(config)),
    later: (ms, act) => {
      const timer = setTimeout(act, ms).unref();
      return () => clearTimeout(timer);
    },
    otherLogs: () => (cluster === undefined ? [] : otherLogs(cluster.membership, cluster.peers)),
    onError,
  });
  const ticks = setInterval(() => {
    shadow.endIfOver().catch((error: unknown) => onError(error, 'ending the shadow of the policies'));
  }, TICK_EVERY_MS).unref();
  const saves = setInterval(() => void shadow.saveCounts(), SAVE_COUNTS_EVERY_MS).unref();
  closers.add('the history and the shadow of the policies', async () => {
    clearInterval(ticks);
    clearInterval(saves);
    await replays.close();
    await shadow.close();
    await own.settled();
  });
  return {
    history,
    shadow,
    replays,
    begin: async () => {
      if (cluster === undefined) own.keep(policies, 'gateway', clock.nowMs());
      const followed = await shadow.follow();
      if (!followed.ok) log.error('the shadow of the policies was not restored', { reason: explain(followed.fault) });
    },
  };
}

/** The sets of policies before the one in force, and the set that is asked beside it. */
import { explain } from '../../core/fault.ts';
import type { Governor } from '../../core/governor.ts';
import type { Closing } from '../../ports/closing.ts';
import type { EnteredVersion, PolicyVersions } from '../../ports/policy-versions.ts';
import type { Logger } from '../../system/log.ts';
import type { PolicyKeeper, ReadSet } from '../../use-cases/policies.ts';
import { PolicyHistory } from '../../use-cases/policy-history.ts';
import { ReplayKeeper, type ReplayKeeperDeps } from '../../use-cases/policy-replay.ts';
import { ShadowKeeper, type ShadowKeeperDeps } from '../../use-cases/policy-shadow.ts';
import { ReplayLink } from '../replay/replay-link.ts';
import { compileTexts } from './policy-keeper.ts';
import { inSlices } from './policy-reader.ts';

const TICK_EVERY_MS = 1_000;
/** Limits the loss of a shadow's counts in a crash. */
const SAVE_COUNTS_EVERY_MS = 10_000;

export type PolicyLife = {
  readonly history: PolicyHistory;
  readonly shadow: ShadowKeeper;
  readonly replays: ReplayKeeper;
  /** Goes on with the shadow of the run before. Call it before the doors open. */
  begin(): Promise<void>;
};

/** Keeps each set that comes into force, for a gateway alone. Reads await it, and so show an answered reload. */
export function historyOf(stored: OwnPolicyVersions, onError: OnError) {
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

type OwnPolicyVersions = PolicyVersions & { enter(set: EnteredVersion): Promise<unknown> };
type OnError = (error: unknown, doing: string) => void;

export type PolicyLifeStart = Pick<
  ShadowKeeperDeps,
  'store' | 'counts' | 'audit' | 'clock' | 'announce' | 'countsElsewhere'
> &
  Pick<ReplayKeeperDeps, 'otherLogs'> & {
    readonly versions: PolicyVersions;
    readonly governor: Pick<Governor, 'shadow'>;
    readonly policyKeeper: Pick<PolicyKeeper, 'inForce'>;
    readonly auditFolder: string;
    readonly closers: Closing;
    readonly log: Logger;
    readonly onError: OnError;
  };

export function openPolicyLife({
  versions,
  otherLogs,
  governor,
  policyKeeper,
  auditFolder,
  closers,
  log,
  ...deps
}: PolicyLifeStart): PolicyLife {
  const { onError } = deps;
  const shadow = new ShadowKeeper({
    ...deps,
    compile: compileTexts,
    install: (set) => {
      governor.shadow = set;
    },
  });
  const history = new PolicyHistory({
    versions,
    shadow: () => shadow.kept && { ...shadow.kept, untilMs: undefined },
    inForce: () => policyKeeper.inForce,
    compile: compileTexts,
    inSlices,
  });
  const replays = new ReplayKeeper({
    textsOf: (version) => history.texts(version),
    openEngine: () => new ReplayLink(auditFolder),
    later: (ms, act) => {
      const timer = setTimeout(act, ms).unref();
      return () => clearTimeout(timer);
    },
    otherLogs,
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
  });
  return {
    history,
    shadow,
    replays,
    begin: async () => {
      const followed = await shadow.follow();
      if (!followed.ok) log.error('the shadow of the policies was not restored', { reason: explain(followed.fault) });
    },
  };
}

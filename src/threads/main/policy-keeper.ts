/** Keeps the policies in force up to date with their files. */

import { fail, type Result } from '../../core/base/result.ts';
import { codeOf } from '../../core/base/text.ts';
import { overruling } from '../../core/check/overruling.ts';
import type { Governor } from '../../core/governor.ts';
import { type LoadedPolicies, renderPolicyProblem } from '../../policy-files/policy-file.ts';
import type { PolicyText } from '../../ports/cluster.ts';
import type { Clock } from '../../ports/ports.ts';
import { within } from '../../system/clock.ts';
import { PolicyKeeper, type PolicyKeeperDeps } from '../../use-cases/policies.ts';
import type { Webhooks } from '../../webhooks/webhooks.ts';
import type { EventBoard } from './event-board.ts';
import { inSlices, loadPoliciesInThread } from './policy-reader.ts';

/**
 * A reload that failed temporarily is retried after this: it could not be recorded, too many were waiting, or the files
 * could not be read.
 */
const RELOAD_RETRY_MS = 5_000;

/** The code of the error when the system refuses another thread. */
const NO_THREAD = 'ERR_WORKER_INIT_FAILED';
/** Thousands of rules take seconds. What takes so long waits for a disk that does not answer. */
const READ_TIMEOUT_MS = 30_000;

export type PolicyKeeperStart = Omit<
  PolicyKeeperDeps,
  'load' | 'stopLoading' | 'hasRead' | 'install' | 'inSlices' | 'overruling' | 'compile'
> & {
  readonly path: string;
  readonly governor: Governor;
  readonly onError: (error: unknown, doing: string) => void;
  readonly readTimeoutMs?: number;
  readonly retryMs?: number;
};

type News = {
  readonly webhooks: Pick<Webhooks, 'reportOwn'>;
  readonly events: Pick<EventBoard, 'publish'>;
  readonly clock: Clock;
};

/** Tells webhooks, and readers of the live stream who see all orgs, what became of a reload: the files are of all. */
export function newsOfPolicies({ webhooks, events, clock }: News): Pick<PolicyKeeperDeps, 'onFailed' | 'onReloaded'> {
  const publish = (atMs: number, payload: Readonly<Record<string, unknown>>): void =>
    events.publish({ kind: 'policy', orgId: null, agentId: null, atMs, payload });
  return {
    onFailed: ({ atMs, by, reason, problems }) => {
      webhooks.reportOwn('policy.reload_failed', { reason, by });
      publish(atMs, { change: 'reload_failed', by, reason, problems });
    },
    onReloaded: ({ version, documents, changed }, by) =>
      publish(clock.nowMs(), { change: 'reloaded', by, version, documents, changed }),
  };
}

/** Problems are sentences that name file, line and column. */
export async function compileTexts(texts: readonly PolicyText[]): Promise<Result<LoadedPolicies, readonly string[]>> {
  const loaded = await loadPoliciesInThread({ texts });
  return loaded.ok ? loaded : fail(loaded.fault.map(renderPolicyProblem));
}

/** Reads in a thread of its own, and installs policies and budget caps in one step. */
export function createPolicyKeeper({
  path,
  governor,
  clock,
  onError,
  readTimeoutMs = READ_TIMEOUT_MS,
  retryMs = RELOAD_RETRY_MS,
  ...deps
}: PolicyKeeperStart): PolicyKeeper {
  /**
   * A read that timed out goes on, and a later reload takes its result: a new read for each reload would occupy another
   * of the few threads that Node.js has for files.
   */
  let reading: ReturnType<typeof loadPoliciesInThread> | undefined;
  let lastRead: string | undefined;
  const stopping = new AbortController();
  const again = (): void => void reloadChanged(keeper, onError);
  let retry: NodeJS.Timeout | undefined;
  const tryLater = (): void => {
    retry ??= setTimeout(() => {
      retry = undefined;
      again();
    }, retryMs).unref();
  };
  const keeper = new PolicyKeeper({
    ...deps,
    clock,
    inSlices,
    compile: compileTexts,
    overruling: (subject, traceId, decision) => overruling(governor, subject, traceId, decision, clock.nowMs()),
    hasRead: (fingerprint) => fingerprint === lastRead,
    stopLoading: () => stopping.abort(),
    load: async () => {
      const isLate = reading !== undefined;
      const onRead = (fingerprint: string): void => {
        lastRead = fingerprint;
      };
      const current = (reading ??= loadPoliciesInThread({ path }, onRead, stopping.signal));
      const loaded = await within(readTimeoutMs, current).catch((error: unknown) => {
        reading = undefined;
        if (codeOf(error) === NO_THREAD) tryLater();
        throw error;
      });
      if (loaded === undefined) {
        if (!isLate) current.then(again, again);
        return fail([
          `${path}: does not respond, like a network disk that is gone; it will be loaded as soon as it does`,
        ]);
      }
      reading = undefined;
      if (loaded.ok) {
        clearTimeout(retry);
        retry = undefined;
        return loaded;
      }
      // no change of the files will tell that it has passed
      if (loaded.fault.some(({ mayPass }) => mayPass)) tryLater();
      return fail(loaded.fault.map(renderPolicyProblem));
    },
    install: (policies) => {
      governor.policies = policies;
      governor.budgets.reconfigure(policies.budget, clock.nowMs());
      governor.limitsInForce = policies.limits;
    },
  });
  return keeper;
}

/** Keepers that have a retry ahead: it reads the newest files, so more failures need no more retries. */
const retrying = new WeakSet<PolicyKeeper>();

/**
 * Reloads, unless what the files hold by now, which has this fingerprint, was read for another reason since, such as
 * SIGHUP. Never rejects.
 */
export async function reloadChanged(
  keeper: PolicyKeeper,
  onError: (error: unknown, doing: string) => void,
  fingerprint?: string,
): Promise<void> {
  try {
    const reloaded = await keeper.reload('gateway', fingerprint);
    if (reloaded.ok || retrying.has(keeper)) return;
    // The watcher does not report this change again.
    if (reloaded.fault.kind === 'audit_unavailable' || reloaded.fault.kind === 'overloaded') {
      retrying.add(keeper);
      setTimeout(() => {
        retrying.delete(keeper);
        void reloadChanged(keeper, onError);
      }, RELOAD_RETRY_MS).unref();
    }
  } catch (error) {
    onError(error, 'reloading policies');
  }
}

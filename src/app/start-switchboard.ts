/** Connects what I/O threads may ask with what answers it. */

import { RateLimiter } from '../limits/rate-limit.ts';
import { createMetrics, type Metrics } from '../system/metrics.ts';
import { Switchboard } from '../threads/main/switchboard.ts';
import type { UseCases } from '../use-cases/use-cases.ts';
import type { Config } from './config.ts';
import { metricsOf } from './metrics.ts';
import { packageVersion } from './package-files.ts';
import type { StartContext } from './start-context.ts';
import type { Decisions } from './start-decisions.ts';
import type { Identity } from './start-identity.ts';
import type { Resources } from './start-resources.ts';
import { openAuditReader, type Threads } from './start-threads.ts';
import { useCasesOf } from './use-cases.ts';

/** Entries that may be on their way to the audit log at once: what a few seconds at full speed bring. */
const MAX_UNRECORDED_ENTRIES = 200_000;

/** What the earlier steps of the start have opened. */
export type Parts = {
  readonly resources: Resources;
  readonly threads: Threads;
  readonly decisions: Decisions;
  readonly identity: Identity;
};

type Limiters = Readonly<Record<'credential' | 'address' | 'check', RateLimiter>>;

export function createSwitchboard(context: StartContext, parts: Parts): Switchboard {
  const { config } = context;
  const {
    resources: { onError },
    threads: { audit, clock, threads },
    decisions: { governor, recording },
  } = parts;
  const limiters = limitersOf(config);
  return new Switchboard({
    ...recording,
    governor,
    audit,
    threads,
    clock,
    onError,
    useCases: startUseCases(context, parts, limiters),
    onAuditFailure: config.SVC_AUDIT_ON_FAILURE,
    maxUnrecorded: MAX_UNRECORDED_ENTRIES,
    checkLimiter: config.SVC_RATE_LIMIT_CHECK === 0 ? undefined : limiters.check,
  });
}

function startUseCases(context: StartContext, parts: Parts, limiters: Limiters): UseCases {
  const {
    resources: { database, storeOutage },
    threads: { audit, clock, supervisor },
    decisions: { policyKeeper },
    identity: { accounts, credentials },
  } = parts;
  const { config, log } = context;
  return useCasesOf({
    ...credentials,
    config,
    clock,
    audit,
    auditReader: openAuditReader(context),
    database,
    policyKeeper,
    limiters,
    storeOutage,
    accounts: accounts?.useCases,
    supervisor,
    metrics: startMetrics(context, parts, limiters),
    onKeyRotated: (rotated) => log.info('rotated the key that signs tokens', rotated),
  });
}

function startMetrics({ closers }: StartContext, parts: Parts, limiters: Limiters): Metrics {
  const {
    resources: { crypto, database, storeOutage },
    threads,
    decisions: { governor, policyKeeper, recording },
  } = parts;
  const metrics = createMetrics(
    metricsOf({
      ...threads,
      ...recording,
      governor,
      crypto,
      policies: policyKeeper,
      storeOutage,
      isDatabaseAway: database && (() => database.postgres.isAway),
      limiters,
      version: packageVersion(),
    }),
  );
  closers.add('the metrics', () => metrics.close());
  return metrics;
}

const limitersOf = (config: Config): Limiters => ({
  credential: new RateLimiter(config.SVC_RATE_LIMIT_API),
  address: new RateLimiter(config.SVC_RATE_LIMIT_AUTH),
  check: new RateLimiter(config.SVC_RATE_LIMIT_CHECK),
});

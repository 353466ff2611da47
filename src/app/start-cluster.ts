/** Gateways on one database that act as one: loaded only with SVC_CLUSTER=on. */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { BusRefused, NatsBus } from '../bus/nats.ts';
import { PostgresBus } from '../bus/postgres.ts';
import type { ClusterClock } from '../cluster/clock.ts';
import { KeptMembership, LEASE_MS } from '../cluster/membership.ts';
import { type Money, openMoney } from '../cluster/money.ts';
import type { ClusterPolicies } from '../cluster/policies.ts';
import { ClusterPeers } from '../cluster/questions.ts';
import { type Refreshes, Replicas } from '../cluster/replicas.ts';
import type { Routing } from '../cluster/routing.ts';
import { shareLogs } from '../cluster/shared-logs.ts';
import { openShelf, type Shelf } from '../cluster/shelf.ts';
import { openStates, type States } from '../cluster/states.ts';
import { SharedTickets } from '../cluster/tickets.ts';
import { assert, fail, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Governor } from '../core/governor.ts';
import type { Authenticator } from '../credentials/authenticate.ts';
import { digestIfIssued } from '../credentials/secret-token.ts';
import type { SigningKeys } from '../credentials/signing-keys.ts';
import type { WsTickets } from '../credentials/ws-tickets.ts';
import type { LoadedPolicies } from '../policy-files/policy-file.ts';
import type { Beat, Member, MemberStore, Membership, OnOutage, Peers, RunId, Topic } from '../ports/cluster.ts';
import { createEmbeddedAgents } from '../stores/embedded/agents.ts';
import { createEmbeddedBudgets } from '../stores/embedded/budgets.ts';
import { readStoredRuns, settlementIn } from '../stores/embedded/runs.ts';
import { createEmbeddedStates } from '../stores/embedded/states.ts';
import type { EmbeddedStore } from '../stores/embedded/store.ts';
import { createPostgresLedger } from '../stores/postgres/cluster/ledger.ts';
import { createPostgresLedgerPages } from '../stores/postgres/cluster/ledger-pages.ts';
import { createPostgresLog, findAgents } from '../stores/postgres/cluster/log.ts';
import { createPostgresMembers, type Settlement } from '../stores/postgres/cluster/members.ts';
import {
  createPostgresPolicies,
  createPostgresPolicyVersions,
  createPostgresShadow,
} from '../stores/postgres/cluster/policies.ts';
import { clusterSecret } from '../stores/postgres/cluster/secret.ts';
import { createPostgresUsageIds } from '../stores/postgres/cluster/usage-ids.ts';
import { createPostgresWebhooks } from '../stores/postgres/cluster/webhooks.ts';
import { POSTGRES_DEFAULTS, Postgres } from '../stores/postgres/postgres.ts';
import type { Closers } from '../system/closers.ts';
import { replaceFile, textIfThereSync } from '../system/files.ts';
import type { Logger } from '../system/log.ts';
import { packageVersion } from '../system/package-files.ts';
import { StartError } from '../system/start-error.ts';
import type { AuditLink } from '../threads/audit/audit-link.ts';
import type { IoThreads } from '../threads/main/io-threads.ts';
import { compileTexts } from '../threads/main/policy-keeper.ts';
import { type Deciding, startRouting } from '../threads/main/routing.ts';
import type { Switchboard } from '../threads/main/switchboard.ts';
import type { AuditReads } from '../use-cases/logs.ts';
import { shareWebhooks, type WebhookSharing } from '../webhooks/shared.ts';
import type { StartContext } from './start-context.ts';
import type { Resources } from './start-resources.ts';
import type { Threads } from './start-threads.ts';

/** The parts that only a gateway in a cluster has. */
export type Cluster = {
  /** The time that all gateways have in common. */
  readonly clock: ClusterClock;
  readonly membership: KeptMembership;
  readonly members: MemberStore;
  readonly bus: NatsBus | PostgresBus;
  readonly peers: ClusterPeers;
  readonly replicas: Replicas;
  readonly money: Money;
  readonly states: States;
  readonly webhooks: WebhookSharing;
  /** Opens the door for the other gateways. What comes through it goes to `receive`. */
  route(decisions: Deciding, receive: Switchboard['receive']): Routing;
  /** The logs of all gateways, where `own` reads this one's. */
  shareLogs(own: AuditReads): AuditReads;
  /** The tickets of all gateways, where `own` are those that this one gives out. */
  shareTickets(own: WsTickets, authenticator: Authenticator): SharedTickets;
  readonly policies: ClusterPolicies;
  readonly policyStores: Omit<ReturnType<typeof policyStoresOf>, 'sets'>;
  /** The policies that this gateway decides by from its start on. */
  readonly inForce: LoadedPolicies;
  /** Resolves when this run was replaced, or forgotten: it must end. */
  readonly replaced: Promise<void>;
  /** Joins, and from then on follows what is shared. Call it before the doors open. */
  start(governor: Pick<Governor, 'outage'>, refreshes: Refreshes): Promise<void>;
};

/** The oldest and the newest form of messages and tables that this release speaks. */
const PROTOCOLS = [1, 1] as const;
/** A database that is this slow is as good as none; checks do not wait for it anyway. */
const STATEMENT_TIMEOUT_MS = 3_000;
const WAIT_FOR_CLOCK_MS = 30_000;
const LOOK_AT_CLOCK_MS = 1_000;
const SHARE_HEADS_EVERY_MS = 2_000;

/** Opens connections of its own: one for what extends the lease, one for messages. */
export async function openCluster(
  context: StartContext,
  { database, onError, policyPath, signingKeys, store }: Resources,
  { audit, clock: shown, clusterClock: clock, threads }: Threads,
): Promise<Cluster> {
  const { config, log, wait, closers, run } = context;
  const url = config.SVC_DATABASE_URL;
  assert(database !== undefined && url !== undefined, 'SVC_CLUSTER requires SVC_DATABASE_URL');
  assert(run !== undefined && clock !== undefined, 'a gateway of a cluster has a run, and its clock');
  const policyVersion = (): string => shelf.policies.version ?? shelf.inForce.policies.version;
  const reportOf = () => ({
    ...{ policyVersion: policyVersion(), auditHead: audit.head, isOnBus: bus.isConnected },
    applied: states.log.acted,
  });
  const name = config.SVC_NODE_NAME ?? (await keptName(config.SVC_DATA_DIR));
  const postgres = singleConnection(url);
  closers.add('the membership of the cluster', () => postgres.close());
  const pool = database.postgres;
  const trouble = (): string | undefined => pool.trouble;
  const secret = await wait.value(() => pool.attempt(clusterSecret), trouble);
  const bus = createBus(context, { url, self: run, secret, name });
  closers.add('the bus of the cluster', () => bus.close());
  const settles = (): Settlement | undefined => settlementOf(store, log);
  const members = createPostgresMembers({ postgres, pool, run, leaseMs: LEASE_MS, settles });
  await wait.value(() => compared(clock, members), trouble);
  shown.begin();
  const replicas = new Replicas(onError);
  let end: () => void = () => undefined;
  const replaced = new Promise<void>((resolve) => {
    end = resolve;
  });
  const follow = async (): Promise<boolean> => states.log.follow();
  const onBeat = (all: readonly Member[]): void => {
    threads.broadcast({ type: 'time', nowMs: shown.nowMs() });
    states.everywhere.noteMembers(all);
    void states.log.follow();
  };
  const membership = keepMembership(context, {
    ...{ run, name, members, clock, replicas, threads, reportOf, follow, onBeat, onReplaced: end },
  });
  shareHeads(closers, audit, membership);
  const peers = new ClusterPeers({ bus, membership, clock, onError });
  peers.serve('signing-key', async () => ({ kid: signingKeys.signer().kid }));
  const logStore = createPostgresLog({ postgres: pool, run, leaseMs: LEASE_MS });
  const states = openStates({
    ...{ membership, members, clock, bus, peers, replicas, threads, log, onError, run, logStore },
    whole: await wait.value(() => logStore.whole(), trouble),
    findAgents: (credentials) => findAgents(pool, credentials),
    own: { agents: createEmbeddedAgents(store), states: createEmbeddedStates(store) },
  });
  const { sets, ...policyStores } = policyStoresOf(pool, run);
  const shelf = await openShelf({
    ...{ sets, states, peers, name, log, policyPath },
    compile: compileTexts,
    wait: (ask) => wait.value(ask, trouble),
  });
  states.followPolicies(shelf.policies);
  const webhooks = shareWebhooks(createPostgresWebhooks(pool, run), states.barrier, (ask) => wait.value(ask, trouble));
  replicas.keep('webhooks', () => webhooks.refresh());
  const isCutOff = (): boolean => !membership.isLeased;
  const money = openMoney({
    ...{ run, bus, onError, isCutOff },
    sliceMs: config.SVC_CLUSTER_SLICE_SECS * 1_000,
    kept: createEmbeddedBudgets(store),
    runs: readStoredRuns<RunId>(store),
    // With the single connection, for exchanges.
    ledger: createPostgresLedger({ postgres, run, leaseMs: LEASE_MS, policyVersion }),
    pages: createPostgresLedgerPages(pool),
    usageIds: createPostgresUsageIds(pool, run),
  });
  const { policies, inForce } = shelf;
  const shares = { clock, membership, members, bus, peers, replicas, money, states, webhooks };
  const parts = { ...shares, policies, policyStores, inForce, replaced };
  return {
    ...parts,
    ...sharing(membership, peers),
    start: startOf(context, parts, { shelf, postgres, signingKeys, onError }),
    route: (decisions, receive) =>
      startRouting({
        ...{ ...parts, orders: states.orders, lookup: states.agents },
        ...{ maxPending: config.SVC_MAX_PENDING, closers, log, onError, threads, audit, ...decisions, receive },
      }),
  };
}

function singleConnection(url: string): Postgres {
  // Outages are logged by the other connections of this gateway, and by its membership.
  const quiet = { info: () => undefined, warn: () => undefined };
  return new Postgres(
    { url, ...POSTGRES_DEFAULTS, maxConnections: 1, statementTimeoutMs: STATEMENT_TIMEOUT_MS },
    quiet,
  );
}

function settlementOf(store: EmbeddedStore, log: Logger): Settlement | undefined {
  const before = settlementIn(store);
  const accounts = before?.owners.length ?? 0;
  if (accounts > 0) log.info('settling the spending of the previous run', { accounts });
  return before;
}

function policyStoresOf(pool: Postgres, run: RunId) {
  const sets = createPostgresPolicies(pool);
  return { sets, versions: createPostgresPolicyVersions(pool, sets), shadow: createPostgresShadow(pool, run) };
}

/** Each gateway signs what the logs of the others end in, so that none of them is rewritten unnoticed. */
function shareHeads(closers: Closers, audit: AuditLink, membership: Membership): void {
  const sharing = setInterval(() => {
    const heads = membership
      .others()
      .flatMap(({ name, auditHead }) => (auditHead ? [{ gateway: name, ...auditHead }] : []));
    audit.sharePeers(heads);
  }, SHARE_HEADS_EVERY_MS);
  closers.add('the ends of the audit logs of other gateways', () => clearInterval(sharing));
}

function createBus(
  { config, log }: StartContext,
  {
    url,
    name,
    ...frames
  }: { readonly url: string; readonly self: RunId; readonly secret: string; readonly name: string },
): NatsBus | PostgresBus {
  const servers = config.SVC_BUS_URL;
  if (servers === undefined) return new PostgresBus({ ...frames, url, log });
  const files = {
    caFile: config.SVC_BUS_CA_FILE,
    certificateFile: config.SVC_BUS_CERT_FILE,
    keyFile: config.SVC_BUS_KEY_FILE,
    credentialsFile: config.SVC_BUS_CREDENTIALS_FILE,
  };
  return new NatsBus({ ...frames, ...files, servers, name: `svc-gateway ${name}`, log });
}

/** Without a bus a gateway starts all the same, but not with settings by which it will never have one. */
async function started(bus: NatsBus | PostgresBus): Promise<void> {
  try {
    await bus.start();
  } catch (error) {
    throw error instanceof BusRefused ? new StartError(`cannot use the bus in SVC_BUS_URL: ${error.message}`) : error;
  }
}

type Shared = 'shareLogs' | 'shareTickets';

const sharing = (membership: Membership, peers: Peers): Pick<Cluster, Shared> => ({
  shareLogs: (own) => shareLogs(own, membership, peers),
  shareTickets: (own, { onRevoked }) =>
    new SharedTickets({
      own,
      membership,
      peers,
      digestOf: digestIfIssued,
      onRevoked,
      steadyMs: () => performance.now(),
    }),
});

type Joins = Pick<Resources, 'signingKeys' | 'onError'> & { readonly shelf: Shelf; readonly postgres: Postgres };

/** Joins, once the clock is right. */
function startOf(
  context: StartContext,
  {
    clock,
    membership,
    members,
    bus,
    peers,
    replicas,
    money,
    states,
    webhooks,
  }: Omit<Cluster, 'start' | 'route' | Shared>,
  { shelf, postgres, signingKeys, onError }: Joins,
): Cluster['start'] {
  const { config, log, wait, closers, signal } = context;
  const trouble = (): string | undefined => postgres.trouble;
  return async (governor, refreshes) => {
    for (const [topic, refresh] of Object.entries(refreshes)) replicas.keep(topic as Topic, refresh);
    membership.onChange(() => {
      governor.outage = outageOf(membership, config.SVC_CLUSTER_ON_OUTAGE);
    });
    await untilClockIsRight(context, members, clock, trouble);
    await started(bus);
    replicas.start();
    await wait.value(() => membership.start(), trouble);
    // Orders from before it joined; later orders wait for it.
    await wait.value(() => replicas.refreshAll(), trouble);
    while (!(await states.log.follow())) await sleep(LOOK_AT_CLOCK_MS, undefined, { signal });
    await states.bring();
    await shelf.begin();
    await money.start();
    await webhooks.begin();
    closers.add('the other gateways of the cluster', async () => {
      // Their decisions here are part of the last report.
      await peers.stop();
      states.stop();
      membership.stop();
      replicas.stop();
      const isReported = await money.close();
      if (membership.isReplaced) return; // the ledger takes nothing of it any more
      // Its data directory has what was spent, and the next start settles it.
      if (isReported) await members.leave();
      else log.warn('spending could not be reported to the ledger; it counts once this gateway starts again');
    });
    closers.add('calls of webhooks', () => webhooks.close());
    const others = membership.others().map((other: Member) => other.name);
    log.info('joined the cluster', { name: membership.name, others });
    warnOfOtherKeys(peers, signingKeys, log).catch((error: unknown) => onError(error, 'comparing signing keys'));
  };
}

/** With keys that differ, who has signed in at one gateway is refused at another. */
async function warnOfOtherKeys(peers: Peers, own: SigningKeys, log: StartContext['log']): Promise<void> {
  const asked = await peers.askAll('signing-key', {});
  const others = asked.ok ? asked.value.answers.filter(({ answer }) => own.verifier(answer.kid) === undefined) : [];
  if (others.length === 0) return;
  log.warn(
    'other gateways sign tokens with a key that this one does not know: set the same SVC_JWT_PRIVATE_KEY on all gateways',
    {
      others: others.map(({ from }) => from.name),
    },
  );
}

type Kept = {
  readonly run: RunId;
  readonly name: string;
  readonly members: MemberStore;
  readonly clock: ClusterClock;
  readonly replicas: Replicas;
  readonly threads: IoThreads;
  readonly reportOf: () => Pick<Beat, 'policyVersion' | 'auditHead' | 'isOnBus' | 'applied'>;
  readonly follow: () => Promise<boolean>;
  readonly onBeat: (members: readonly Member[]) => void;
  readonly onReplaced: () => void;
};

function keepMembership(
  { config, log }: StartContext,
  { run, name, members, clock, replicas, threads, reportOf, follow, onBeat, onReplaced }: Kept,
): KeptMembership {
  return new KeptMembership({
    store: members,
    joining: { run, name, version: packageVersion(), protocols: PROTOCOLS, onOutage: config.SVC_CLUSTER_ON_OUTAGE },
    clocks: { steadyMs: () => performance.now(), wallMs: Date.now },
    clock,
    catchUp: async () => {
      const isApplied = await follow();
      const read = await replicas.refreshAll();
      if (!isApplied) return fail({ kind: 'store_unreachable', retryAfterSecs: 1 });
      // Requests they sent before they knew are held back until they confirm.
      if (read.ok) await threads.confirmed();
      return read;
    },
    hasCaughtUp: () => replicas.takePolled(),
    onBeat,
    reportOf,
    onReplaced: () => {
      log.error(
        'another gateway has taken the name of this one, or runs on a copy of its data directory, or an operator has forgotten it; stopping',
        { name },
      );
      onReplaced();
    },
    log,
  });
}

/** Why every check is denied; undefined: it is not. */
function outageOf({ isReplaced, isCutOff }: KeptMembership, onOutage: OnOutage): string | undefined {
  if (isReplaced) return 'this gateway has been replaced by another one and is stopping';
  if (!isCutOff || onOutage === 'serve') return undefined;
  return 'this gateway cannot reach the database of its cluster, so it does not know what has been revoked since';
}

/** Kept in the data directory, so that a gateway that restarts is known as the one it was. */
async function keptName(dataDir: string): Promise<string> {
  const path = join(dataDir, 'node-name');
  const kept = textIfThereSync(path)?.trim();
  if (kept !== undefined && kept !== '') return kept;
  const host = hostname()
    .replace(/[^A-Za-z0-9._-]/g, '-')
    .slice(0, 48);
  const name = `${host}-${randomBytes(3).toString('hex')}`;
  await replaceFile(path, `${name}\n`);
  return name;
}

/** Leases go by the clock of the database, and budgets by days: a gateway whose clock is wrong takes no part. */
async function untilClockIsRight(
  { log, signal, wait }: StartContext,
  members: MemberStore,
  clock: ClusterClock,
  trouble: () => string | undefined,
): Promise<void> {
  const endMs = performance.now() + WAIT_FOR_CLOCK_MS;
  for (;;) {
    await wait.value(() => compared(clock, members), trouble);
    const { skewMs, isOff } = clock;
    if (!isOff) return;
    const off = `the clock of this gateway is ${(Math.abs(skewMs) / 1000).toFixed(1)} s ${skewMs > 0 ? 'ahead of' : 'behind'} the database's`;
    if (performance.now() > endMs) throw new StartError(`${off}; set it right, for example by NTP`);
    log.warn(`${off}; waiting until it is right`, { upToSecs: WAIT_FOR_CLOCK_MS / 1000 });
    await sleep(LOOK_AT_CLOCK_MS, undefined, { signal });
  }
}

const compared = (clock: ClusterClock, members: MemberStore): Promise<Result<number, Fault>> =>
  clock.compare(
    () => members.now(),
    (answer) => (answer.ok ? answer.value : undefined),
  );

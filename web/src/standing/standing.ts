/**
 * Items that stay until a person ends them, whichever page is shown: alerts, halts in force, requests for an approval.
 */
import { computed, signal } from '@preact/signals';
import type { Approval, AuditEntry, Budget, Halt, Readiness } from '../base/api-types.ts';
import { nowMs } from '../base/clock.ts';
import { Problem, request } from '../base/request.ts';
import { connections, onEvent } from '../live/live.ts';
import { call } from '../session/session.ts';
import { readAll } from '../ui/read.ts';
import { type Alert, alertsOf, type LimitRow, type ReloadError } from './alert.ts';
import { seen } from './seen.ts';

/** Events come in bursts, and what they change is read as a whole. */
const AFTER_EVENT_MS = 500;
const READ_AGAIN_MS = 60_000;
const ALERTS_OF_MS = 7 * 24 * 3_600_000;

export const pendingApprovals = signal<readonly Approval[]>([]);
export const activeHalts = signal<readonly Halt[]>([]);
export const reloadError = signal<ReloadError | undefined>(undefined);
export const readiness = signal<Readiness | undefined>(undefined);
export const isCluster = signal(false);
const violations = signal<readonly AuditEntry[]>([]);
const haltEntries = signal<readonly AuditEntry[]>([]);
const budgets = signal<readonly Budget[]>([]);
const limits = signal<readonly LimitRow[]>([]);
/** Whether everything has been read once. */
export const isStandingRead = signal(false);

export const alerts = computed<readonly Alert[]>(() =>
  alertsOf({
    violations: violations.value,
    halts: haltEntries.value,
    budgets: budgets.value,
    limits: limits.value,
    reloadError: reloadError.value,
    readiness: readiness.value,
  }),
);

export const openAlerts = computed(() => alerts.value.filter(({ id }) => !seen.value.has(id)));

/** Counts the items that wait for a person. */
export const attention = computed(() => openAlerts.value.length + pendingApprovals.value.length);

const entriesOf = async (eventType: string): Promise<readonly AuditEntry[]> => {
  const since = new Date(nowMs() - ALERTS_OF_MS).toISOString();
  const page = await call('GET', `/api/v1/logs?event_type=${eventType}&since=${since}&per_page=200`);
  return page.entries;
};

/** Each part is read by itself: one that cannot be read leaves the others as they are. */
const READERS = {
  violations: async () => {
    violations.value = await entriesOf('A2AImpersonationAttempted');
  },
  halts: async () => {
    const [active, entries] = await Promise.all([
      readAll<Halt>('/api/v1/halts', 'halts', { active: 'true' }, 1),
      entriesOf('HaltCreated'),
    ]);
    activeHalts.value = active;
    haltEntries.value = entries;
  },
  approvals: async () => {
    pendingApprovals.value = await readAll<Approval>('/api/v1/approvals', 'approvals', { state: 'pending' }, 1);
  },
  budgets: async () => {
    budgets.value = await readAll<Budget>('/api/v1/budgets', 'budgets');
  },
  limits: async () => {
    limits.value = await readAll<LimitRow>('/api/v1/limits', 'limits', {}, 1);
  },
  policy: async () => {
    reloadError.value = (await call('GET', '/api/v1/policies?per_page=1')).reload_error ?? undefined;
  },
  readiness: async () => {
    readiness.value = await request('GET', '/readyz').catch(({ status, body }: Problem) =>
      status === 503 && typeof body.status === 'string' ? body : undefined,
    );
  },
  cluster: async () => {
    isCluster.value = (await call('GET', '/api/v1/cluster')).members.length > 0;
  },
} satisfies Record<string, () => Promise<void>>;

type Part = keyof typeof READERS;
const PARTS = Object.keys(READERS) as Part[];

const PARTS_OF_EVENT: Readonly<Record<string, readonly Part[]>> = {
  violation: ['violations'],
  halt: ['halts', 'approvals'],
  approval: ['approvals'],
  budget: ['budgets'],
  limit: ['limits'],
  policy: ['policy'],
};

const due = new Set<Part>();
let timer: ReturnType<typeof setTimeout> | undefined;
let visit = 0;

async function readPart(part: Part): Promise<void> {
  try {
    await READERS[part]();
  } catch (problem) {
    // Not every gateway has every part, and what cannot be reached is read again when the stream is back.
    if (!(problem instanceof Problem)) throw problem;
  }
}

export async function readStanding(parts: readonly Part[] = PARTS): Promise<void> {
  const mine = visit;
  await Promise.all(parts.map(readPart));
  if (parts === PARTS && mine === visit) isStandingRead.value = true;
}

function readSoon(parts: readonly Part[]): void {
  for (const part of parts) due.add(part);
  timer ??= setTimeout(() => {
    timer = undefined;
    const now = [...due];
    due.clear();
    void readStanding(now);
  }, AFTER_EVENT_MS);
}

/** Follows the stream until the function that is returned is called. */
export function followStanding(): () => void {
  const stopEvents = onEvent(({ event_type }) => readSoon(PARTS_OF_EVENT[event_type] ?? []));
  const stopConnections = connections.subscribe((count) => count > 0 && void readStanding());
  const clock = setInterval(() => !document.hidden && void readStanding(), READ_AGAIN_MS);
  return () => {
    stopEvents();
    stopConnections();
    clearInterval(clock);
    clearTimeout(timer);
    timer = undefined;
    due.clear();
    visit += 1;
    forgetStanding();
  };
}

function forgetStanding(): void {
  for (const list of [pendingApprovals, activeHalts, violations, haltEntries, budgets, limits]) list.value = [];
  reloadError.value = undefined;
  readiness.value = undefined;
  isCluster.value = false;
  isStandingRead.value = false;
}

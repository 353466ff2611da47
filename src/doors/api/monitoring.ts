/** For those who run the gateway: whether it is alive and ready, its metrics, and the description of the API. */
import { isLoopback } from '../../core/base/client-address.ts';
import { fail, ok } from '../../core/base/result.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, HttpRequest, Route } from '../engine/route.ts';
import { describeApi } from './openapi.ts';
import { liveness, readiness } from './shapes.ts';

export type MonitoringRouteOptions = {
  /**
   * The address the gateway listens on. Unless it is a loopback address, metrics need a credential that sees every org.
   */
  readonly httpHost: string;
};

/** Answered by this thread alone: a probe must not fail because the main thread is busy. */
const health = async (): Promise<HttpReply> => ok({ status: 200, body: { status: 'ok' } });

async function ready(_request: HttpRequest, link: Link): Promise<HttpReply> {
  const found = await link.call('readiness', {});
  if (!found.ok) return found;
  const { audit, audit_witness, database, store, cluster, bus } = found.value;
  const isOneOfMany = cluster === undefined || cluster === 'reachable';
  const isWhole =
    audit === 'writable' &&
    database !== 'unreachable' &&
    store === undefined &&
    audit_witness === undefined &&
    bus === undefined &&
    isOneOfMany;
  return ok({
    status: 200,
    body: {
      status: isWhole ? 'ready' : 'degraded',
      audit,
      database,
      ...(audit_witness && { audit_witness }),
      ...(store && { store }),
      ...(cluster && { cluster }),
      ...(bus && { bus }),
    },
  });
}

async function metrics(link: Link, areNamesShown: boolean): Promise<HttpReply> {
  const rendered = await link.call('metrics', { areNamesShown });
  return rendered.ok
    ? ok({ status: 200, text: { type: rendered.value.contentType, content: rendered.value.text } })
    : rendered;
}

// They count every org together.
const metricsOfAllOrgs = async (request: Authorized, link: Link): Promise<HttpReply> =>
  request.principal.orgId === null ? metrics(link, true) : fail({ kind: 'org_forbidden', orgId: undefined });

/** Who is on this machine gets the numbers without a credential, but not what orgs and rules are called. */
async function metricsHere({ bearer }: HttpRequest, link: Link): Promise<HttpReply> {
  const known = bearer === undefined ? undefined : await link.call('authenticate', { bearer });
  return metrics(link, known?.ok === true && known.value.principal.orgId === null);
}

/**
 * Made once, when it is first asked for: that takes milliseconds of this thread, and anybody may ask without a limit.
 */
function describe(rows: () => readonly Route[]): () => Promise<HttpReply> {
  let description: object | undefined;
  return async () => ok({ status: 200, body: (description ??= describeApi(rows())) });
}

const METRICS = {
  method: 'get',
  path: '/metrics',
  isQueryIgnored: true,
  limit: 'none',
  summary: 'Metrics for Prometheus; needs no credential if the gateway listens only on loopback',
  answers: { 200: { mediaTypes: ['text/plain'] } },
} as const;

/** `rows` is the whole table as it is described, these rows among it. */
export const monitoringRoutes = (
  { httpHost }: MonitoringRouteOptions,
  rows: () => readonly Route[],
): readonly Route[] => [
  {
    method: 'get',
    path: '/healthz',
    isQueryIgnored: true,
    access: 'public',
    limit: 'none',
    summary: 'Liveness: answers as long as the process runs',
    answers: { 200: liveness },
    handle: health,
  },
  {
    method: 'get',
    path: '/readyz',
    isQueryIgnored: true,
    access: 'public',
    limit: 'none',
    summary: 'Readiness for checks, and which parts are unavailable; 503 says why it is not ready',
    answers: { 200: readiness },
    refusals: [503],
    handle: ready,
  },
  isLoopback(httpHost)
    ? { ...METRICS, access: 'public', credentials: ['none', 'bearer'], isForOwnHosts: true, handle: metricsHere }
    : { ...METRICS, access: { scope: 'read' }, handle: metricsOfAllOrgs },
  {
    method: 'get',
    path: '/openapi.json',
    access: 'public',
    limit: 'none',
    summary: 'This description',
    handle: describe(rows),
  },
];

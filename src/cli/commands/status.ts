/** `svc status`: how the gateway is, and what needs attention, which its exit status says too. */
import { text as textOf } from 'node:stream/consumers';
import { CliError, EXIT, type ExitStatus, RefusedError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { bold, show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { isRows, type Row } from '../terminal/table.ts';

const DAY_SECS = 24 * 3600;
/** Enough to renew a certificate by hand. */
const CERTIFICATE_DAYS = 14;

/** Answers of the gateway; undefined: this credential may not see it, or the gateway has no such part. */
type Found = {
  readonly readiness: Row;
  readonly policies: Row | undefined;
  readonly members: readonly Row[] | undefined;
  /** By name with its labels. */
  readonly metrics: ReadonlyMap<string, number> | undefined;
};

export async function status(invocation: Invocation): Promise<ExitStatus> {
  const { globals } = invocation;
  const api = await Api.of(invocation);
  const found: Found = {
    readiness: await readinessOf(api),
    policies: await ifAllowed(api.get('/api/v1/policies', 'version', { per_page: 1 })),
    members: await membersOf(api),
    metrics: await metricsOf(api),
  };
  const attention = attentionIn(found, Date.now() / 1000);
  const facts = factsOf(found);
  const state = attention.length === 0 ? 'ok' : 'attention';
  await show(globals.output, { status: state, url: api.target.apiUrl, ...facts, attention }, () => [
    ...Object.entries({ gateway: api.target.apiUrl, ...facts }).map(
      ([name, value]) => `${name.padEnd(14)}${printable(String(value ?? '-'))}`,
    ),
    '',
    ...(attention.length === 0
      ? ['Nothing needs attention.']
      : [bold('Needs attention:'), ...attention.map((what) => `  ${printable(what)}`)]),
  ]);
  return attention.length === 0 ? EXIT.done : EXIT.failed;
}

/** A gateway that is not ready says why in the refusal. */
const readinessOf = (api: Api): Promise<Row> =>
  api.get('/readyz', 'status').catch((error: unknown) => {
    if (error instanceof RefusedError && error.refusal.status === 503) return { status: error.message };
    throw error;
  });

/** Parts that a credential of one org may not see are left out. */
const ifAllowed = <T>(asked: Promise<T>): Promise<T | undefined> =>
  asked.catch((error: unknown) => {
    if (error instanceof CliError && !(error instanceof RefusedError && error.refusal.status >= 500)) return undefined;
    throw error;
  });

async function membersOf(api: Api): Promise<readonly Row[] | undefined> {
  const members = (await ifAllowed(api.get('/api/v1/cluster', 'members')))?.members;
  return isRows(members) ? members : undefined;
}

async function metricsOf(api: Api): Promise<Found['metrics']> {
  const body = await ifAllowed(api.stream('/metrics', 'text/plain'));
  if (body === undefined) return undefined;
  const lines = (await textOf(body)).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

/** Collects the facts that are there, in the order in which they are shown. */
function factsOf({ readiness, policies, members, metrics }: Found): Row {
  const { status: health, audit, database, audit_witness: witness, cluster } = readiness;
  const witnesses = [...(metrics?.keys() ?? [])].filter((name) => name.startsWith('svc_audit_witness_reachable'));
  const version = [...(metrics?.keys() ?? [])].find((name) => name.startsWith('svc_info{'));
  return {
    health,
    version: /version="([^"]*)"/.exec(version ?? '')?.[1],
    audit,
    database,
    witness: witness ?? (metrics === undefined ? undefined : witnesses.length === 0 ? 'not_configured' : 'reachable'),
    sinks: sinksOf(metrics),
    cluster: members === undefined ? cluster : `${String(cluster)}, ${members.map(memberOf).join(', ')}`,
    policies: policies?.version,
  };
}

/** Returns the values of a metric by the name of the sink. */
function ofSinks(metrics: Found['metrics'], name: string): readonly (readonly [sink: string, value: number])[] {
  return [...(metrics ?? [])].flatMap(([row, value]) => {
    const sink = row.startsWith(`${name}{`) ? /sink="([^"]*)"/.exec(row)?.[1] : undefined;
    return sink === undefined ? [] : [[sink, value] as const];
  });
}

function sinksOf(metrics: Found['metrics']): string | undefined {
  if (metrics === undefined) return undefined;
  const lags = ofSinks(metrics, 'svc_audit_sink_lag_entries');
  return lags.length === 0 ? 'not_configured' : lags.map(([sink, lag]) => `${sink} ${lag} behind`).join(', ');
}

const memberOf = ({ name, state, version }: Row): string => `${String(name)} ${String(state)} ${String(version)}`;

/** Each with what to do, or where to look. */
function attentionIn({ readiness, policies, members = [], metrics }: Found, nowSecs: number): readonly string[] {
  return [
    ...ofReadiness(readiness),
    ...ofPolicies(policies),
    ...members.flatMap(ofMember),
    ...ofMetrics(metrics, nowSecs),
  ];
}

const PARTS: Readonly<Record<string, string>> = {
  audit: 'the audit log cannot be written: see the log of the gateway',
  database: 'the database cannot be reached: see the log of the gateway',
  store: 'the data directory cannot be written: see the log of the gateway',
  audit_witness: 'a witness of the audit log does not take checkpoints: see the log of the gateway',
  cluster: 'this gateway does not take part in its cluster: see its log',
  bus: 'messages cannot be exchanged with the other gateways: see the log of the gateway',
};
const BAD = ['unwritable', 'unreachable', 'wrong_clock'];

function ofReadiness(readiness: Row): readonly string[] {
  const found = Object.entries(PARTS).flatMap(([part, what]) => (BAD.includes(String(readiness[part])) ? [what] : []));
  const isKnown = readiness.status === 'ready' || readiness.status === 'degraded';
  return isKnown ? found : [`the gateway is not ready: ${String(readiness.status)}`];
}

function ofPolicies(policies: Row | undefined): readonly string[] {
  const { at, reason } = Object(policies?.reload_error) as { readonly at?: string; readonly reason?: string };
  if (at === undefined) return [];
  return [`the policies were not reloaded at ${at} (${String(reason)}), and the previous ones are in force`];
}

function ofMember({ name, state, stranded_usd: stranded, bus }: Row): readonly string[] {
  const who = `gateway ${String(name)}`;
  return [
    ...(state === 'suspect' ? [`${who} has stopped, or does not reach the database`] : []),
    ...(Number(stranded ?? 0) > 0
      ? [`${who} holds $${String(stranded)} of caps: start it, or \`svc cluster forget\` it`]
      : []),
    ...(bus === 'cut_off' ? [`${who} gets no messages of the others`] : []),
  ];
}

function ofMetrics(metrics: Found['metrics'], nowSecs: number): readonly string[] {
  if (metrics === undefined) return [];
  const isZero = (name: string): boolean => metrics.get(name) === 0;
  const disabled = metrics.get('svc_webhooks{state="disabled"}') ?? 0;
  const leftSecs = (metrics.get('svc_tls_certificate_expiry_timestamp_seconds') ?? Infinity) - nowSecs;
  return [
    ...(isZero('svc_files_available')
      ? ['no file or connection can be opened any more: raise the limit (ulimit -n)']
      : []),
    ...(isZero('svc_tls_files_valid')
      ? ['the TLS files are invalid, and the previous ones are in force: see the log']
      : []),
    ...(leftSecs < CERTIFICATE_DAYS * DAY_SECS
      ? [
          leftSecs <= 0
            ? 'the certificate has expired'
            : `the certificate expires in ${Math.floor(leftSecs / DAY_SECS)} days`,
        ]
      : []),
    ...ofSinks(metrics, 'svc_audit_sink_reachable').flatMap(([sink, value]) =>
      value === 0 ? [`the audit sink ${sink} takes no entries: \`svc audit sinks ls\` says why`] : [],
    ),
    ...ofSinks(metrics, 'svc_audit_sink_lost_entries_total').flatMap(([sink, lost]) =>
      lost > 0 ? [`the audit sink ${sink} never got ${lost} entries: retention deleted them first`] : [],
    ),
    ...(disabled > 0 ? [`${disabled} webhooks are disabled: \`svc webhooks ls\` says why`] : []),
  ];
}

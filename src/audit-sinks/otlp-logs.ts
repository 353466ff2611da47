/** Entries as log records of OTLP, in its JSON encoding. */
import { hostname } from 'node:os';
import { isMapping, type Mapping, mappingIn } from '../core/base/mapping.ts';
import type { SinkEntry } from './sink.ts';

const SEVERITY = { info: 9, warn: 13 } as const;
const NANOS_PER_MS = '000000';

type Attribute = {
  readonly key: string;
  readonly value: { readonly stringValue: string } | { readonly intValue: string };
};

const text = (key: string, value: unknown): readonly Attribute[] =>
  typeof value === 'string' ? [{ key, value: { stringValue: value } }] : [];

const nanosOf = (ms: number): string => (Number.isNaN(ms) ? '0' : `${ms}${NANOS_PER_MS}`);

/** `render`: the body of a record. */
export function otlpLogsOf(
  entries: readonly SinkEntry[] | 'test',
  render: (entry: SinkEntry) => string,
  version: string,
): string {
  const nowMs = Date.now();
  const records =
    entries === 'test' ? [testRecord(nowMs)] : entries.map((entry) => recordOf(entry, render(entry), nowMs));
  return JSON.stringify({
    resourceLogs: [
      {
        resource: {
          attributes: [
            ...text('service.name', 'svc-gateway'),
            ...text('service.version', version),
            ...text('host.name', hostname()),
          ],
        },
        scopeLogs: [{ scope: { name: 'svc-gateway.audit', version }, logRecords: records }],
      },
    ],
  });
}

const testRecord = (nowMs: number): object => ({
  timeUnixNano: nanosOf(nowMs),
  observedTimeUnixNano: nanosOf(nowMs),
  severityNumber: SEVERITY.info,
  severityText: 'INFO',
  eventName: 'svc.audit.test',
  body: { stringValue: 'This is a test of an audit sink, and no entry of the log.' },
});

function recordOf({ id, line }: SinkEntry, body: string, nowMs: number): object {
  const entry = mappingIn(line) ?? {};
  const lineage = isMapping(entry.lineage) ? entry.lineage : {};
  const payload = isMapping(entry.payload) ? entry.payload : {};
  const isDeny = entry.decision === 'deny';
  return {
    timeUnixNano: nanosOf(Date.parse(String(entry.timestamp))),
    observedTimeUnixNano: nanosOf(nowMs),
    severityNumber: isDeny ? SEVERITY.warn : SEVERITY.info,
    severityText: isDeny ? 'WARN' : 'INFO',
    eventName: typeof entry.event_type === 'string' ? `svc.audit.${entry.event_type}` : 'svc.audit',
    body: { stringValue: body },
    attributes: [
      { key: 'svc.audit.id', value: { intValue: String(id) } },
      ...text('svc.audit.hash', entry.hash),
      ...text('svc.audit.actor', entry.actor),
      ...text('svc.audit.decision', entry.decision),
      ...text('svc.org.id', lineage.org_id),
      ...text('svc.team.id', lineage.team_id),
      ...text('svc.op.id', entry.op_id),
      ...agentOf(lineage),
      ...text('gen_ai.tool.name', payload.action),
    ],
    ...traceOf(entry.op_id),
  };
}

function agentOf({ org_id: org, team_id: team, agent_id: agent }: Mapping): readonly Attribute[] {
  if (typeof agent !== 'string') return [];
  return [...text('gen_ai.agent.id', `${org ?? ''}/${team ?? ''}/${agent}`), ...text('gen_ai.agent.name', agent)];
}

/** Operations are named by the trace and the span that they are, where agents follow W3C Trace Context. */
function traceOf(opId: unknown): object {
  const [, traceId, spanId] = /^([0-9a-f]{32}):([0-9a-f]{16})$/.exec(typeof opId === 'string' ? opId : '') ?? [];
  return traceId === undefined || spanId === undefined ? {} : { traceId, spanId };
}

/** The forms of sinks: OCSF against its published schema, OTLP, and the file that names them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { otlpLogsOf } from '../../src/audit-sinks/otlp-logs.ts';
import { placeOf } from '../../src/audit-sinks/sink.ts';
import { readSinkFile, sinksIn } from '../../src/audit-sinks/sink-file.ts';
import { AUDIT_EVENTS, type AuditEntry } from '../../src/core/audit/audit.ts';
import { ocsfOf } from '../../src/core/audit/ocsf.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { freshDirectory } from '../audit-log/log.ts';
import { conforms } from '../support/json-schema.ts';

const SCHEMA = JSON.parse(
  readFileSync(join(PACKAGE_ROOT, 'test/audit-sinks/ocsf-api-activity.schema.json'), 'utf8'),
) as Readonly<Record<string, unknown>>;

const DENIED: AuditEntry = {
  id: 7,
  timestamp: '2026-03-01T12:00:00.000Z',
  event_type: 'ActionDenied',
  lineage: { org_id: 'acme', team_id: 'web', agent_id: 'bot' },
  op_id: '0af7651916cd43dd8448eb211c80319c:b7ad6b7169203331',
  decision: 'deny',
  reason: 'no payments',
  policy: 'money',
  rule_id: 'no-pay',
  cause: 'rule',
  actor: 'agent:acme/web/bot',
  payload: { action: 'payments.send', resource: 'invoice/7' },
  prev_hash: 'a'.repeat(64),
  hash: 'b'.repeat(64),
};

describe('OCSF', () => {
  test('a denied check is API Activity with agent, rule and place in the chain', () => {
    const line = JSON.stringify(DENIED);
    expect(ocsfOf(DENIED, line, '1.2.3')).toMatchObject({
      class_uid: 6003,
      category_uid: 6,
      activity_id: 99,
      activity_name: 'ActionDenied',
      type_uid: 600_399,
      time: 1_772_366_400_000,
      severity_id: 2,
      status_id: 2,
      status_code: 'rule',
      action_id: 2,
      disposition_id: 2,
      policy: { name: 'money', uid: 'no-pay', desc: 'no payments' },
      actor: { user: { uid: 'agent:acme/web/bot', type: 'agent' } },
      api: { operation: 'payments.send', request: { uid: DENIED.op_id } },
      resources: [{ name: 'invoice/7' }],
      message_context: { uid: DENIED.op_id, application: { name: 'bot' }, ai_role_id: 4 },
      metadata: {
        version: '1.9.0',
        uid: '7',
        sequence: 7,
        tenant_uid: 'acme',
        profiles: ['ai_operation', 'record_integrity', 'security_control'],
      },
      attestation_list: [
        {
          fingerprint: { algorithm_id: 3, value: 'b'.repeat(64) },
          prev_event: { uid: '6', fingerprint: { algorithm_id: 3, value: 'a'.repeat(64) } },
        },
      ],
      raw_data: line,
    });
  });

  test.each(AUDIT_EVENTS)('%s conforms to the published schema', (event_type) => {
    const bare = { ...DENIED, event_type, decision: null, reason: null, policy: null, rule_id: null, cause: null };
    const nobody = { ...bare, op_id: null, lineage: { org_id: null, team_id: null, agent_id: null }, payload: {} };
    for (const entry of [{ ...DENIED, event_type }, bare, { ...nobody, actor: 'gateway', prev_hash: '0'.repeat(64) }])
      expect(conforms(ocsfOf(entry, '{}', '1.2.3'), SCHEMA), JSON.stringify(entry)).toBe(true);
  });

  test('the schema in the test refuses what is not in the class, so that it can fail', () => {
    const event = ocsfOf(DENIED, '{}', '1.2.3');
    expect(conforms({ ...event, severity_id: 7 }, SCHEMA)).toBe(false);
    expect(conforms({ ...event, colour: 'red' }, SCHEMA)).toBe(false);
    expect(conforms({ ...event, actor: {} }, SCHEMA)).toBe(false);
    expect(conforms({ ...event, time: undefined }, SCHEMA)).toBe(false);
  });
});

describe('OTLP', () => {
  test('an entry is a log record, in the trace of its operation', () => {
    const line = JSON.stringify(DENIED);
    const [{ resource, scopeLogs }] = JSON.parse(otlpLogsOf([{ id: 7, line }], () => line, '1.2.3')).resourceLogs;
    expect(resource.attributes).toContainEqual({ key: 'service.name', value: { stringValue: 'svc-gateway' } });
    expect(scopeLogs[0].logRecords).toEqual([
      {
        timeUnixNano: '1772366400000000000',
        observedTimeUnixNano: expect.stringMatching(/^\d{13}000000$/),
        severityNumber: 13,
        severityText: 'WARN',
        eventName: 'svc.audit.ActionDenied',
        body: { stringValue: line },
        attributes: [
          { key: 'svc.audit.id', value: { intValue: '7' } },
          { key: 'svc.audit.hash', value: { stringValue: 'b'.repeat(64) } },
          { key: 'svc.audit.actor', value: { stringValue: 'agent:acme/web/bot' } },
          { key: 'svc.audit.decision', value: { stringValue: 'deny' } },
          { key: 'svc.org.id', value: { stringValue: 'acme' } },
          { key: 'svc.team.id', value: { stringValue: 'web' } },
          { key: 'svc.op.id', value: { stringValue: '0af7651916cd43dd8448eb211c80319c:b7ad6b7169203331' } },
          { key: 'gen_ai.agent.id', value: { stringValue: 'acme/web/bot' } },
          { key: 'gen_ai.agent.name', value: { stringValue: 'bot' } },
          { key: 'gen_ai.tool.name', value: { stringValue: 'payments.send' } },
        ],
        traceId: '0af7651916cd43dd8448eb211c80319c',
        spanId: 'b7ad6b7169203331',
      },
    ]);
  });
});

describe('the file of sinks', () => {
  const ENV = { HEC: 'Splunk 123' };
  const read = (sinks: string) => sinksIn(`sinks:\n${sinks}`, '/etc/svc/sinks.yaml', ENV);

  test('names each sink; paths begin where it is, secrets may be in the environment', () => {
    const text = `
  - { name: copy, type: file, path: copies/a.ndjson }
  - { name: siem, type: http, url: 'https://siem.example/in?token=t', headers: { Authorization: '\${HEC}' }, format: ocsf }
  - { name: otel, type: otlp, url: 'http://127.0.0.1:4318' }
  - { name: old, type: syslog, url: 'syslog+tls://log.example:6514', tls: { servername: other.example } }
`;
    const result = read(text);
    expect(result).toMatchObject({
      ok: true,
      value: [
        { name: 'copy', type: 'file', format: 'native', path: '/etc/svc/copies/a.ndjson' },
        { name: 'siem', format: 'ocsf', headers: { authorization: 'Splunk 123' }, secret: undefined },
        { name: 'otel', url: 'http://127.0.0.1:4318/v1/logs' },
        { name: 'old', tls: { servername: 'other.example' } },
      ],
    });
    expect(result.ok && result.value.map(placeOf)).toEqual([
      '/etc/svc/copies/a.ndjson',
      'https://siem.example/in',
      'http://127.0.0.1:4318/v1/logs',
      'syslog+tls://log.example:6514',
    ]);
  });

  test.each([
    [
      '- { name: A, type: file, path: x }',
      '(A): name must be 1 to 63 lower-case letters, digits, dashes or underscores',
    ],
    ['- { name: a, type: kafka }', '(a): type must be one of file, http, syslog, otlp'],
    ['- { name: a, type: file }', '(a): path must be the path of a file'],
    [
      '- { name: a, type: file, path: x, url: y }',
      '(a): unknown setting url; known for file are name, type, format, path',
    ],
    ['- { name: a, type: file, path: x, format: csv }', '(a): format must be one of native, ocsf'],
    ['- { name: a, type: http, url: "ftp://x" }', '(a): url must begin with https:// or http://'],
    ['- { name: a, type: http, url: "https://u:p@x" }', '(a): url must have no user name and no password'],
    ['- { name: a, type: syslog, url: "syslog://x" }', '(a): url must be syslog+tls://host:port or'],
    ['- { name: a, type: otlp, url: "http://x", headers: { a: "${NO}" } }', 'headers.a names NO, which is not set'],
    ['- { name: a, type: otlp, url: "http://x", headers: { Host: b } }', '(a): headers: Host is set by the gateway'],
    ['- { name: a, type: otlp, url: "http://x", headers: { "a b": c } }', '"a b" is no name of a header'],
    ['- { name: a, type: http, url: "http://x", secret: hunter2-hunter2 }', '(a): secret must be whsec_ and 24 to 64'],
    [
      '- { name: a, type: http, url: "https://x", tls: { ca: no.pem } }',
      "(a): tls: ENOENT: no such file or directory, open '/etc/svc/no.pem'",
    ],
    ['- { name: a, type: http, url: "https://x", tls: { cert: a } }', '(a): tls.cert and tls.key belong together'],
    ['- { name: a, type: file, path: x }\n- { name: a, type: file, path: y }', 'two sinks are named a'],
    ['- 7', 'sinks[0]: must be a mapping with name and type'],
  ])('is refused with %s', (sinks, problem) => {
    const result = read(sinks);
    expect(result.ok ? [] : result.fault).toEqual([expect.stringContaining(problem)]);
    expect(JSON.stringify(result)).not.toContain('hunter2');
  });

  test('is refused where it is no list of sinks, no YAML, or cannot be read', () => {
    const path = join(freshDirectory(), 'sinks.yaml');
    expect(readSinkFile(path, {})).toEqual({ ok: false, fault: [`cannot read ${path} of SVC_AUDIT_SINKS (ENOENT)`] });
    writeFileSync(path, 'sinks: {}');
    expect(readSinkFile(path, {})).toMatchObject({
      ok: false,
      fault: [expect.stringContaining('the one member sinks')],
    });
    writeFileSync(path, 'sinks: [');
    expect(readSinkFile(path, {})).toMatchObject({ ok: false });
  });
});

/** Checks and metrics on their way to a collector (docs/opentelemetry.md). */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { BroadcastChannel } from 'node:worker_threads';
import { emptyResource } from '@opentelemetry/resources';
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Feed } from '../../../src/threads/telemetry/feed.ts';
import { recordOf } from '../../../src/threads/telemetry/logs.ts';
import type { Batch, CheckRecord, OnChannel } from '../../../src/threads/telemetry/messages.ts';
import { metricsFor } from '../../../src/threads/telemetry/metrics.ts';
import { contextOfHeader, endedSpan } from '../../../src/threads/telemetry/spans.ts';
import { Tally } from '../../../src/threads/telemetry/tally.ts';
import { eventually } from '../../support/eventually.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

const CHECK: CheckRecord = {
  traceparent: undefined,
  opId: 'x:y',
  orgId: 'acme',
  teamId: 'web',
  agentId: 'bot',
  action: 'payments.send',
  resource: 'invoice/7',
  isDryRun: false,
  startMs: 1_700_000_000_000.5,
  endMs: 1_700_000_000_002,
  decision: 'allow',
  fault: undefined,
  cause: undefined,
  reason: 'fine',
  policy: 'money',
  ruleId: 'pay',
  approvalId: undefined,
  auditId: 7,
  home: undefined,
};

function spanOf(record: Partial<CheckRecord>) {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  endedSpan(provider.getTracer('test'), { ...CHECK, ...record });
  return exporter.getFinishedSpans()[0]!;
}

describe('the span of a check', () => {
  test('says who asked for what, what was decided, and where that is recorded', () => {
    const { name, startTime, endTime, attributes, parentSpanContext } = spanOf({});
    expect({ name, startTime, endTime, parentSpanContext }).toEqual({
      name: 'check payments.send',
      startTime: [1_700_000_000, 500_000],
      endTime: [1_700_000_000, 2_000_000],
      parentSpanContext: undefined,
    });
    expect(attributes).toEqual({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'payments.send',
      'gen_ai.agent.id': 'acme/web/bot',
      'gen_ai.agent.name': 'bot',
      'gen_ai.external_ref': '7',
      'svc.op.id': 'x:y',
      'svc.org.id': 'acme',
      'svc.team.id': 'web',
      'svc.resource': 'invoice/7',
      'svc.decision': 'allow',
      'svc.decision.reason': 'fine',
      'svc.policy': 'money',
      'svc.rule.id': 'pay',
    });
  });

  test('belongs to the trace of the caller, else to that of the operation', () => {
    const opId = `${'1'.repeat(32)}:${'2'.repeat(16)}`;
    const called = spanOf({ traceparent: `00-${TRACE}-${SPAN}-01`, opId });
    expect(called.parentSpanContext).toMatchObject({ traceId: TRACE, spanId: SPAN, isRemote: true });
    expect(called.links.map(({ context }) => context.spanId)).toEqual(['2'.repeat(16)]);
    expect(spanOf({ opId }).parentSpanContext).toMatchObject({ traceId: '1'.repeat(32), spanId: '2'.repeat(16) });
    expect(spanOf({ traceparent: `00-${TRACE}-${SPAN}-00` })).toBe(undefined); // the caller does not sample it
  });

  test.each([
    ['', 'nothing'],
    [`00-${'0'.repeat(32)}-${SPAN}-01`, 'no trace'],
    [`00-${TRACE}-${'0'.repeat(16)}-01`, 'no span'],
    [`ff-${TRACE}-${SPAN}-01`, 'a version that never will be'],
    [`00-${TRACE.toUpperCase()}-${SPAN}-01`, 'capitals'],
    [`00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`, 'two of them'],
    ['a'.repeat(100_000), 'a flood'],
  ])('takes no part in the trace of %j: %s', (header) => {
    expect(contextOfHeader(header)).toBe(undefined);
  });

  test('shows that an approval is pending, that nothing was decided, and no secret', () => {
    const pending = spanOf({ decision: 'pending', approvalId: 'a1' });
    expect(pending.attributes).toMatchObject({ 'svc.approval.state': 'pending', 'svc.approval.id': 'a1' });
    expect(pending.events).toMatchObject([{ name: 'svc.approval.requested', attributes: { 'svc.approval.id': 'a1' } }]);
    const failed = spanOf({ decision: undefined, fault: 'overloaded', auditId: undefined });
    expect(failed.status).toEqual({ code: 2, message: 'overloaded' });
    expect(failed.attributes['error.type']).toBe('overloaded');
    const secret = spanOf({ resource: 'https://me:hunter2@example.com/x' });
    expect(JSON.stringify(secret.attributes)).not.toContain('hunter2');
  });
});

describe('lines and metrics', () => {
  test.each([
    ['{"level":"warn","time":"2026-03-01T12:00:00.000Z","lines":3,"at":{"a":1},"msg":"lost"}', 13, 'lost'],
    ['no json', 9, 'no json'],
  ])('a line of the log is a record: %s', (line, severityNumber, body) => {
    expect(recordOf(line)).toMatchObject({ severityNumber, body });
  });

  test('counters, gauges and histograms keep their values', () => {
    const counted = (metricName: string, value: number, labels = {}) => ({ metricName, labels, value });
    const { scopeMetrics } = metricsFor(
      [
        { name: 'a_total', help: 'A.', type: 'counter', values: [{ labels: { door: 'http', code: 200 }, value: 3 }] },
        { name: 'b_seconds', help: 'B.', type: 'gauge', values: [{ labels: {}, value: 0.5 }] },
        {
          name: 'c_seconds',
          help: 'C.',
          type: 'histogram',
          values: [
            counted('c_seconds_bucket', 1, { le: 0.1 }),
            counted('c_seconds_bucket', 4, { le: 1 }),
            counted('c_seconds_bucket', 6, { le: '+Inf' }),
            counted('c_seconds_sum', 9),
            counted('c_seconds_count', 6),
          ],
        },
        { name: 'd', help: 'D.', type: 'summary', values: [] },
      ],
      { startMs: 1_000, atMs: 2_500, resource: emptyResource(), version: '1' },
    );
    const span = { startTime: [1, 0], endTime: [2, 500_000_000] };
    expect(
      scopeMetrics[0]?.metrics.map(({ descriptor, dataPoints }) => [descriptor.name, descriptor.unit, dataPoints]),
    ).toEqual([
      ['a_total', '', [{ ...span, attributes: { door: 'http', code: '200' }, value: 3 }]],
      ['b_seconds', 's', [{ ...span, attributes: {}, value: 0.5 }]],
      [
        'c_seconds',
        's',
        [
          {
            ...span,
            attributes: {},
            value: { buckets: { boundaries: [0.1, 1], counts: [1, 3, 2] }, sum: 9, count: 6 },
          },
        ],
      ],
    ]);
  });
});

describe('a feed', () => {
  test('drops and counts what a stuck thread does not take, and goes on later', async () => {
    const name = randomUUID();
    const feed = new Feed(name, 'logs');
    const channel = new BroadcastChannel(name);
    onTestFinished(() => {
      feed.close();
      channel.close();
    });
    const batches: Extract<Batch, { signal: 'logs' }>[] = [];
    channel.onmessage = (event) => {
      const message = (event as { data: OnChannel }).data;
      if (message.kind === 'batch' && message.signal === 'logs') batches.push(message);
    };
    for (let n = 0; n < 3_000; n += 1) feed.add(`line ${n}`);
    await eventually(() => expect(batches).toHaveLength(4));
    for (let n = 0; n < 3_000; n += 1) feed.add('more');
    await sleep(300);
    expect(batches.map(({ items }) => items.length)).toEqual([512, 512, 512, 512]);
    for (const { feed: id, number } of batches) channel.postMessage({ kind: 'taken', feed: id, number });
    await eventually(() => expect(batches).toHaveLength(8));
    // 3,000 twice, of which 2,048 fit each time.
    expect(batches.reduce((sum, { dropped }) => sum + dropped, 0)).toBe(1_904);
  });
});

describe('the tally', () => {
  test('says once that a collector takes nothing, and once that it does again', () => {
    const notes: string[] = [];
    const tally = new Tally((level, _message, fields) => notes.push(`${level} ${JSON.stringify(fields)}`));
    const export_ = (code: number): void => {
      tally.queue('traces');
      tally.watching('traces', 1, () => undefined)({ code, ...(code === 1 && { error: new Error('refused') }) });
    };
    for (const code of [0, 1, 1, 0]) export_(code);
    expect(tally.counts).toMatchObject({ exported: { traces: 2 }, dropped: { traces: 2 } });
    expect(tally.queued('traces')).toBe(0);
    expect(notes).toEqual(['warn {"signal":"traces","reason":"refused"}', 'info {"signal":"traces"}']);
  });
});

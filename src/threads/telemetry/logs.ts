/** A line of the gateway's log as a log record of OpenTelemetry. */
import type { LogRecord } from '@opentelemetry/api-logs';
import { mappingIn } from '../../core/base/mapping.ts';

const SEVERITY: Readonly<Record<string, number>> = { debug: 5, info: 9, warn: 13, error: 17 };

export function recordOf(line: string): LogRecord {
  const { level, time, msg, ...fields } = mappingIn(line) ?? {};
  const text = typeof level === 'string' ? level : 'info';
  const at = Date.parse(String(time));
  return {
    severityNumber: SEVERITY[text] ?? SEVERITY.info,
    severityText: text.toUpperCase(),
    body: typeof msg === 'string' ? msg : line,
    timestamp: Number.isNaN(at) ? Date.now() : at,
    attributes: Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [
        name,
        typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
          ? value
          : JSON.stringify(value),
      ]),
    ),
  } as LogRecord;
}

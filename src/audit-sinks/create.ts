/** The other end of each sink, and the form in which it gets entries. */
import type { AuditEntry } from '../core/audit/audit.ts';
import { ocsfOf } from '../core/audit/ocsf.ts';
import { assertNever } from '../core/base/result.ts';
import { otlpLogsOf } from './otlp-logs.ts';
import type { SinkEntry, SinkFormat, SinkSetting, SinkTarget } from './sink.ts';
import { fileTarget } from './targets/file.ts';
import { type CallOptions, httpTarget, otlpTarget } from './targets/http.ts';
import { syslogTarget } from './targets/syslog.ts';

export function targetOf(setting: SinkSetting, options: CallOptions): SinkTarget {
  const render = renderer(setting.format, options.version);
  switch (setting.type) {
    case 'file':
      return fileTarget(setting.path, render);
    case 'syslog':
      return syslogTarget(setting, render);
    case 'http':
      return httpTarget(setting, render, options);
    case 'otlp':
      return otlpTarget(setting, (entries) => otlpLogsOf(entries, render, options.version), options);
    default:
      return assertNever(setting);
  }
}

/** A line that is no longer JSON is passed on as it is, in a form that stays JSON: `svc audit verify` names it. */
function renderer(format: SinkFormat, version: string): (entry: SinkEntry) => string {
  const shaped = ({ line }: SinkEntry): string => {
    const entry = JSON.parse(line) as AuditEntry;
    return format === 'native' ? line : JSON.stringify(ocsfOf(entry, line, version));
  };
  return (entry) => {
    try {
      return shaped(entry);
    } catch {
      return JSON.stringify({ id: entry.id, damaged: entry.line });
    }
  };
}

/** Sends entries as syslog (RFC 5424): one batch a connection, which the receiver closes once it has read all. */
import { type SyslogMessage, sendOverStream, syslogMessage } from '../../audit-log/syslog.ts';
import { mappingIn } from '../../core/base/mapping.ts';
import { rfc3339 } from '../../core/base/time.ts';
import type { SinkEntry, SinkTarget, SinkTls } from '../sink.ts';
import { readTls } from '../tls.ts';

/** Facility "log audit". */
const FACILITY = 13;
const SEVERITY = { warning: 4, notice: 5, info: 6 } as const;
/** The greatest that RFC 5424 knows; then it begins with 1 again. */
const MAX_SEQUENCE = 2_147_483_647;
/** Read by the receiver is not yet on its disk. */
const REWIND_MS = 5_000;

export type SyslogSink = { readonly url: string; readonly tls: SinkTls };

export function syslogTarget({ url, tls }: SyslogSink, render: (entry: SinkEntry) => string): SinkTarget {
  const send = (messages: readonly SyslogMessage[], signal: AbortSignal): Promise<void> =>
    sendOverStream(new URL(url), messages.map(syslogMessage), signal, readTls(tls));
  return {
    rewindMs: REWIND_MS,
    send: async (entries, signal) =>
      send(
        entries.map((entry) => messageOfEntry(entry, render(entry))),
        signal,
      ),
    test: async (signal) =>
      send(
        [
          {
            priority: FACILITY * 8 + SEVERITY.info,
            timestamp: rfc3339(Date.now()),
            messageId: 'SinkTest',
            text: 'This is a test of an audit sink, and no entry of the log.',
          },
        ],
        signal,
      ),
  };
}

function messageOfEntry({ id, line }: SinkEntry, text: string): SyslogMessage {
  const { timestamp, event_type: type, decision } = mappingIn(line) ?? {}; // a damaged line is sent, too
  const severity = decision === 'deny' ? SEVERITY.warning : decision === 'allow' ? SEVERITY.info : SEVERITY.notice;
  return {
    priority: FACILITY * 8 + severity,
    timestamp: typeof timestamp === 'string' ? timestamp : '-',
    messageId: typeof type === 'string' && /^[\x21-\x7e]{1,32}$/.test(type) ? type : '-',
    structuredData: `[meta sequenceId="${((id - 1) % MAX_SEQUENCE) + 1}"]`,
    text,
  };
}

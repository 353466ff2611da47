import { type Logger as PinoLogger, pino } from 'pino';
import { LogSink } from './log-sink.ts';

/** Writes one JSON object per line to standard error. Standard output stays free for the answers of commands. */
export type Logger = {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
};

/** How background parts report their problems, and the end of them. */
export type TroubleLog = Pick<Logger, 'info' | 'warn'>;

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

export function createLogger(level: LogLevel): Logger {
  const sink: PinoLogger = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    new LogSink(2),
  );
  const line =
    (severity: Exclude<LogLevel, 'silent'>) =>
    (message: string, fields: object = {}): void =>
      sink[severity](fields, message);
  return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') };
}

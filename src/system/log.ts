import { write, writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { type Logger as PinoLogger, pino } from 'pino';
import { logText } from './log-text.ts';

/** How many characters may wait when nobody reads the log. A further line is lost, and counted. */
const MAX_WAITING_CHARACTERS = 1024 * 1024;
const RETRY_MS = 100;

const NOTHING: Uint8Array = new Uint8Array();

/**
 * The destination of the log, usually standard error. A pipe that nobody reads, a full disk or a terminal that is gone
 * neither delays nor ends the gateway: lines wait until they can be written, and a line says how many were lost
 * meanwhile. pino's own destination does not recover from a full disk, and does not report what it drops.
 */
export class LogSink {
  readonly #fd: number;
  /** For a person, who reads a terminal. */
  readonly #shown: ((line: string) => string) | undefined;
  #waiting = '';
  #lost = 0;
  /** The unwritten rest of the bytes taken from waiting lines. */
  #rest = NOTHING;
  #isBusy = false;
  #isInFlight = false;
  /** Gets each line, too. */
  onLine: ((line: string) => void) | undefined;

  constructor(fd: number) {
    this.#fd = fd;
    const isColoured = (process.env.NO_COLOR ?? '') === '' && process.env.TERM !== 'dumb';
    this.#shown = isatty(fd) ? (line) => logText(line, isColoured) : undefined;
    process.once('exit', () => this.#writeLast());
  }

  write(written: string): void {
    this.onLine?.(written);
    const line = this.#textOf(written);
    if (this.#waiting.length + line.length > MAX_WAITING_CHARACTERS) this.#lost += 1;
    else this.#waiting += line;
    if (this.#isBusy) return;
    this.#isBusy = true;
    // Not in this turn: if it ends in an exit, another thread would hold the first line, and the last words could not
    // follow it.
    setImmediate(() => this.#go());
  }

  #textOf = (line: string): string => (this.#shown === undefined ? line : this.#shown(line));

  #go(): void {
    if (this.#rest.length === 0) this.#rest = this.#take();
    this.#isBusy = this.#rest.length > 0;
    if (!this.#isBusy) return;
    this.#isInFlight = true;
    write(this.#fd, this.#rest, (error, written) => {
      this.#isInFlight = false;
      if (error !== null) return void setTimeout(() => this.#go(), RETRY_MS).unref();
      this.#rest = this.#rest.subarray(written);
      this.#go();
    });
  }

  #take(): Uint8Array {
    const lines = this.#lost === 0 ? this.#waiting : this.#waiting + this.#textOf(lostLine(this.#lost));
    this.#waiting = '';
    this.#lost = 0;
    return Buffer.from(lines);
  }

  #writeLast(): void {
    if (this.#isInFlight) return; // it would come before the text that is being written
    try {
      writeSync(this.#fd, Buffer.concat([this.#rest, this.#take()]));
    } catch {
      // There is nowhere left to report it.
    }
  }
}

const lostLine = (lines: number): string =>
  `${JSON.stringify({ level: 'warn', time: new Date().toISOString(), lines, msg: 'log lines were lost: the log could not be written or was not read' })}\n`;

/**
 * Writes one JSON object per line to standard error, or a readable line if that is a terminal. Standard output stays
 * free for the answers of commands.
 */
export type Logger = {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
  /** Has each line of the log passed on, from now on; undefined: no more. */
  follow?(onLine: ((line: string) => void) | undefined): void;
};

/** How background parts report their problems, and the end of them. */
export type TroubleLog = Pick<Logger, 'info' | 'warn'>;

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

export function createLogger(level: LogLevel): Logger {
  const destination = new LogSink(2);
  const sink: PinoLogger = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination,
  );
  const line =
    (severity: Exclude<LogLevel, 'silent'>) =>
    (message: string, fields: object = {}): void =>
      sink[severity](fields, message);
  return {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    follow: (onLine) => {
      destination.onLine = onLine;
    },
  };
}

/**
 * Errors of the command line (docs/spec.md, Messages of the command line): a line what happened, without a full stop,
 * and a sentence what to do.
 */
import { messageOf } from '../core/base/text.ts';
import { printable, printableLines } from './terminal/printable.ts';

/** Exit statuses, also in the help of `svc`. */
export const EXIT = { done: 0, failed: 1, usage: 2, denied: 3, interrupted: 130 } as const;
export type ExitStatus = (typeof EXIT)[keyof typeof EXIT];

/** Thrown by a command that cannot do its work. Neither ever holds a key or a token. */
export class CliError extends Error {
  readonly advice: string | undefined;
  readonly status: ExitStatus;

  constructor(
    message: string,
    advice?: string,
    { status = EXIT.failed, cause }: { readonly status?: ExitStatus; readonly cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'CliError';
    this.advice = advice;
    this.status = status;
  }
}

/** The gateway did not answer: trying again may help. */
export class UnreachableError extends CliError {}

type Refusal = {
  readonly status: number;
  readonly code: string | undefined;
  readonly retryAfterSecs: number | undefined;
};

/** The gateway refused, with a code of its own where it is one. */
export class RefusedError extends CliError {
  readonly refusal: Refusal;

  constructor(message: string, advice: string | undefined, refusal: Refusal) {
    super(message, advice);
    this.refusal = refusal;
  }
}

/** Too many requests, or a gateway that is busy, ends, or is away behind a proxy that answers for it. */
const PASSING: readonly number[] = [429, 502, 503, 504];

/**
 * Whether a repetition may succeed in a while: then followers wait. If the gateway had answered before, another answer
 * in its place, as of a proxy that finds no route, is also temporary.
 */
export const mayPass = (error: unknown): error is CliError =>
  error instanceof UnreachableError ||
  (error instanceof RefusedError && (error.refusal.code === undefined || PASSING.includes(error.refusal.status)));

export const usageError = (message: string, advice?: string): CliError =>
  new CliError(message, advice, { status: EXIT.usage });

/** The text shown for an error: its two lines, and with `debug` its stack and those of its causes. */
export function renderError(error: unknown, isDebug: boolean): string {
  const { message, advice } = error instanceof CliError ? error : unexpected(error);
  const lines = [printable(`error: ${message}`)];
  if (advice !== undefined) lines.push(printable(advice));
  if (isDebug) lines.push(...stacksOf(error).map(printableLines));
  return `${lines.join('\n')}\n`;
}

const unexpected = (error: unknown): { message: string; advice: string } => ({
  message: `unexpected error: ${messageOf(error)}`,
  advice: 'Run the command again with --debug for details.',
});

function stacksOf(error: unknown): readonly string[] {
  const stacks: string[] = [];
  for (let at: unknown = error; at instanceof Error && stacks.length < 10; at = at.cause)
    stacks.push(at.stack ?? at.message);
  return stacks;
}

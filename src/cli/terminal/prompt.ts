/** Prompts on standard error: for a secret, without echo (docs/spec.md, Login), and for confirmation. */
import { createInterface } from 'node:readline';
import { CliError, EXIT } from '../errors.ts';

const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * While it works, a signal that would end the process aborts the work instead, so that its outcome can be reported. A
 * second one ends it. Work that fails after that rejects with ABORT_ERR, whatever ended it: since Node.js 24 that may
 * be a connection that was closed for it.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const interrupted = new AbortController();
  const interrupt = (): void => interrupted.abort();
  for (const signal of ENDING_SIGNALS) process.once(signal, interrupt);
  try {
    return await work(interrupted.signal);
  } catch (error) {
    if (!interrupted.signal.aborted) throw error;
    throw Object.assign(new Error('interrupted', { cause: error }), { code: 'ABORT_ERR' });
  } finally {
    for (const signal of ENDING_SIGNALS) process.off(signal, interrupt);
  }
}

/**
 * Returns the entered text, without white space around it; '' if there was none. Without a terminal it is the first
 * line of standard input.
 */
export async function promptHidden(label: string): Promise<string> {
  const isTerminal = process.stdin.isTTY === true;
  // Before the label is shown: the user may type at once, and nothing must be echoed.
  if (isTerminal) process.stdin.setRawMode(true);
  process.stderr.write(`${label} `);
  const entry = isTerminal ? await typed() : ((await firstLine()) ?? '');
  process.stderr.write('\n');
  return entry.trim();
}

/** True only if the answer is yes. */
export async function confirmed(question: string): Promise<boolean> {
  process.stderr.write(`${question} [y/N] `);
  const answer = await firstLine();
  if (answer === undefined) process.stderr.write('\n'); // Ctrl-D leaves the cursor behind the question
  return /^y(es)?$/i.test(answer?.trim() ?? '');
}

/** Undefined where the input ends before it. */
async function firstLine(): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin });
  try {
    for await (const line of lines) return line;
    return undefined;
  } finally {
    lines.close();
    process.stdin.destroy();
  }
}

const ENTER = /[\r\n]/;
// Sequences of arrow and function keys, and the marks around what is pasted.
const KEY_SEQUENCE = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|O.|.)?/g;

function typed(): Promise<string> {
  const { stdin } = process;
  let entry = '';
  return new Promise((resolve, reject) => {
    const finish = (settle: () => void): void => {
      stdin.off('data', take).off('end', end);
      stdin.setRawMode(false);
      stdin.pause();
      settle();
    };
    const end = (): void => finish(() => resolve(entry));
    const take = (chunk: string): void => {
      for (const character of chunk.replace(KEY_SEQUENCE, '')) {
        if (ENTER.test(character) || character === '\u0004') return end();
        if (character === '\u0003') {
          return finish(() => {
            process.stderr.write('\n');
            reject(new CliError('interrupted', undefined, { status: EXIT.interrupted }));
          });
        }
        entry = afterKey(entry, character);
      }
    };
    stdin.setEncoding('utf8').on('data', take).on('end', end).resume();
  });
}

function afterKey(entry: string, character: string): string {
  switch (character) {
    case '\u007f':
    case '\b':
      return [...entry].slice(0, -1).join('');
    case '\u0015':
      return ''; // Ctrl-U
    default:
      return character < ' ' ? entry : entry + character;
  }
}

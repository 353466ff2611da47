import { clipped } from './width.ts';

const CLEARED = '\r\u001b[K';

/** A line of standard error that is drawn over, for the person who waits at a terminal. */
export type ProgressLine = {
  draw(text: string): void;
  /** Leaves the last drawing in place. */
  leave(): void;
  clear(): void;
};

/** Undefined where standard error is no terminal. */
export function progressLine(): ProgressLine | undefined {
  const { stderr } = process;
  if (stderr.isTTY !== true || process.env.TERM === 'dumb') return undefined;
  return {
    draw: (text) => void stderr.write(`${CLEARED}${clipped(text, (stderr.columns || 80) - 1)}`),
    leave: () => void stderr.write('\n'),
    clear: () => void stderr.write(CLEARED),
  };
}

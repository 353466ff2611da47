/** Which alerts have been seen, in this browser: it stays so over a reload, and other tabs follow. */
import { signal } from '@preact/signals';

const KEY = 'svc.seen';
/** Older ones than this many cannot come back. */
const MAX_KEPT = 2_000;

const read = (): ReadonlySet<string> => {
  try {
    return new Set(JSON.parse(localStorage.getItem(KEY) ?? '[]') as string[]);
  } catch {
    return new Set(); // what stands there is not ours
  }
};

export const seen = signal<ReadonlySet<string>>(read());

window.addEventListener('storage', ({ key }) => {
  if (key === KEY) seen.value = read();
});

export function markSeen(ids: readonly string[]): void {
  const kept = [...new Set([...read(), ...ids])].slice(-MAX_KEPT);
  localStorage.setItem(KEY, JSON.stringify(kept));
  seen.value = new Set(kept);
}

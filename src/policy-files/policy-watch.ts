/** Watches a policy file or folder for changes, however they are made. */
import { type FSWatcher, watch } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { codeOf } from '../core/base/text.ts';
import { isPolicyFileName, sequentially } from './policy-file.ts';

// Detects whether a policy file or folder has changed.

/**
 * Names, inodes, sizes and times of what the path leads to, through symlinks. Never rejects: what cannot be read is
 * part of it.
 */
export async function fingerprint(path: string): Promise<string> {
  const own = await describe(path);
  if (!own.startsWith('folder')) return own;
  const names = (await readdir(path).catch(() => [])).filter(isPolicyFileName).sort();
  const entries = await sequentially(names, async (name) => `${name} ${await describe(join(path, name))}`);
  return [own, ...entries].join('\n');
}

async function describe(path: string): Promise<string> {
  try {
    const found = await stat(path);
    // A folder's own times change with files that are none of its policies, such as an editor's swap file.
    return found.isDirectory() ? `folder ${found.ino}` : `${found.ino} ${found.size} ${found.mtimeMs} ${found.ctimeMs}`;
  } catch (error) {
    return `unreadable: ${codeOf(error) ?? 'unknown'}`;
  }
}

export type PolicyWatcher = {
  /** Resolves when it knows what was there at first: what differs from that is a change. */
  readonly ready: Promise<unknown>;
  close(): void;
};

export type WatchOptions = {
  /** How long files must stay unchanged before a change is reported: editors and `kubectl` make several in a row. */
  readonly debounceMs?: number;
  /** How often contents are compared where the system reports nothing, as on network file systems. */
  readonly pollMs?: number;
};

/**
 * Calls `onChange` some time after the file, or any file of the folder, has changed, with the fingerprint of what is
 * there now. An editor that writes a new file
 * and renames it over the old one, and a mounted config map whose symlink is swapped, are changes like any other: what
 * is watched is the folder, and what counts is a fingerprint of what the path leads to now. A wake-up without a
 * change is ignored. `onChange` must not throw. Start watching before loading, so that no change is missed in between.
 * Neither the watcher nor its timers keep the process alive.
 */
export const watchPolicies = (
  path: string,
  onChange: (fingerprint: string) => void,
  options: WatchOptions = {},
): PolicyWatcher => new FingerprintWatcher(path, onChange, options);

class FingerprintWatcher implements PolicyWatcher {
  readonly ready: Promise<string>;
  readonly #path: string;
  readonly #onChange: (fingerprint: string) => void;
  readonly #debounceMs: number;
  readonly #poll: NodeJS.Timeout;
  #watchers: readonly FSWatcher[];
  #known: string | undefined;
  #isLooking = false;
  /** Something may have changed since the last look. */
  #isWoken = false;
  #closed = false;

  constructor(
    path: string,
    onChange: (fingerprint: string) => void,
    { debounceMs = 200, pollMs = 5_000 }: WatchOptions,
  ) {
    this.#path = path;
    this.#onChange = onChange;
    this.#debounceMs = debounceMs;
    this.#watchers = this.#watchAll();
    this.ready = fingerprint(path);
    this.#wake();
    this.#poll = setInterval(() => this.#wake(), pollMs);
    this.#poll.unref();
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#poll);
    for (const watcher of this.#watchers) watcher.close();
  }

  /**
   * The parent is watched for a file or folder that is replaced as a whole, the path itself for a folder's own files.
   */
  #watchAll(): readonly FSWatcher[] {
    return [this.#path, dirname(this.#path)].flatMap((each) => this.#watch(each));
  }

  #watch(path: string): readonly FSWatcher[] {
    try {
      const watcher = watch(path, { persistent: false }, () => this.#wake());
      // The folder was removed, or the system has no watches left: polling goes on.
      watcher.on('error', () => watcher.close());
      return [watcher];
    } catch {
      return []; // As above.
    }
  }

  #wake(): void {
    this.#isWoken = true;
    if (!this.#isLooking) void this.#look();
  }

  /**
   * A change is reported when two looks in a row find the same. The system's notifications cannot tell that all is
   * quiet: it reports nothing on a network file system, and without end in a folder that other programs write to.
   */
  async #look(): Promise<void> {
    this.#isLooking = true;
    let seen = (this.#known ??= await this.ready);
    while (!this.#closed && (this.#isWoken || seen !== this.#known)) {
      this.#isWoken = false;
      const now = await fingerprint(this.#path);
      if (now === seen && now !== this.#known && !this.#closed) this.#notify(now);
      seen = now;
      await setTimeout(this.#debounceMs, undefined, { ref: false });
    }
    this.#isLooking = false;
  }

  #notify(now: string): void {
    this.#known = now;
    this.#rewatch();
    this.#onChange(now);
  }

  /**
   * A watch stays with its file, which may just have been replaced. So this sets new ones, then looks for changes in
   * between.
   */
  #rewatch(): void {
    for (const watcher of this.#watchers) watcher.close();
    this.#watchers = this.#watchAll();
    this.#wake();
  }
}

/** Changes of the policy files. The watcher reports each once, so one that comes before `follow` is remembered. */
export class PolicyChanges {
  readonly #watcher: PolicyWatcher;
  /** The fingerprint of a change that nobody follows yet. */
  #unfollowed: string | undefined;
  #onChange = (fingerprint: string): void => {
    this.#unfollowed = fingerprint;
  };

  /** Watches from now on. Create it before the policies are read: then no change is missed. */
  constructor(path: string) {
    this.#watcher = watchPolicies(path, (fingerprint) => this.#onChange(fingerprint));
  }

  /** Calls `onChange` for each change to come, and at once if there has been one already. */
  follow(onChange: (fingerprint: string) => void): void {
    this.#onChange = onChange;
    if (this.#unfollowed !== undefined) onChange(this.#unfollowed);
  }

  close(): void {
    this.#watcher.close();
  }
}

/** The files of `node:fs` on a disk of which steps fail, and which without power keeps only what was flushed. */
import { join } from 'node:path';

type Fs = typeof import('node:fs');
type Promises = typeof import('node:fs/promises');
export type Step = 'create' | 'write' | 'flush' | 'flush of the folder' | 'cut';

/** Names and contents as they would be found after a loss of power. */
export type Image = ReadonlyMap<string, Buffer>;

class FragileDisk {
  readonly #failing = new Map<Step, number>();
  #code = '';
  readonly #paths = new Map<number, string>();
  /** The files of each folder by the names that it had when it was flushed, and what each file held when that was. */
  readonly #names = new Map<string, ReadonlyMap<string, number>>();
  readonly #contents = new Map<number, Buffer>();
  #fs: Fs | undefined;
  /** Called after each file that is deleted. */
  onUnlink: (() => void) | undefined;

  /** From now on the next steps of these kinds fail, each as often as it says, with `code`. */
  fail(steps: Partial<Record<Step, number>>, code = 'EIO'): void {
    this.#code = code;
    for (const [step, times] of Object.entries(steps)) this.#failing.set(step as Step, times);
  }

  /** Returns the rest of a folder if every deletion so far has reached the disk: that may be so at any time. */
  withoutPower(folder: string): Image {
    const kept = [...(this.#names.get(folder) ?? [])].filter(([name]) => this.#fs?.existsSync(join(folder, name)));
    return new Map(kept.map(([name, inode]) => [name, this.#contents.get(inode) ?? Buffer.alloc(0)]));
  }

  /** In the place of `node:fs`. */
  over(fs: Fs): Fs {
    this.#fs = fs;
    const flush =
      (step: 'fdatasyncSync' | 'fsyncSync') =>
      (fd: number): void => {
        const path = this.#paths.get(fd) ?? '';
        const isFolder = fs.fstatSync(fd).isDirectory();
        this.#failIfDue(isFolder ? 'flush of the folder' : 'flush');
        fs[step](fd);
        this.#keep(fs, path);
      };
    return {
      ...fs,
      openSync: (path: string, flags: string, mode?: number) => {
        if (flags === 'wx') this.#failIfDue('create');
        const fd = fs.openSync(path, flags, mode);
        this.#paths.set(fd, path);
        // A new file may have the number of one that is gone.
        const { ino, size } = fs.fstatSync(fd);
        if (size === 0) this.#contents.delete(ino);
        return fd;
      },
      writeSync: (fd: number, data: Buffer | string, offset?: number, length?: number, position?: number) => {
        const bytes = Buffer.from(data);
        const from = offset ?? 0;
        const count = length ?? bytes.length;
        // The first half of it reaches the file.
        this.#failIfDue('write', () => void fs.writeSync(fd, bytes, from, count >> 1, position));
        return fs.writeSync(fd, bytes, from, count, position);
      },
      ftruncateSync: (fd: number, length: number) => {
        this.#failIfDue('cut');
        fs.ftruncateSync(fd, length);
      },
      fdatasyncSync: flush('fdatasyncSync'),
      fsyncSync: flush('fsyncSync'),
      unlinkSync: (path: string) => {
        fs.unlinkSync(path);
        this.onUnlink?.();
      },
    } as Fs;
  }

  /** In the place of `node:fs/promises`. */
  overPromises(fs: Fs, promises: Promises): Promises {
    const open = async (path: string, flags?: string, mode?: number) => {
      const file = await promises.open(path, flags, mode);
      const sync = file.sync.bind(file);
      const flush = async () => {
        this.#failIfDue((await file.stat()).isDirectory() ? 'flush of the folder' : 'flush');
        await sync();
        this.#keep(fs, path);
      };
      return Object.assign(file, { sync: flush });
    };
    return { ...promises, open } as Promises;
  }

  #keep(fs: Fs, path: string): void {
    const { ino } = fs.statSync(path);
    if (fs.statSync(path).isDirectory())
      this.#names.set(path, new Map(fs.readdirSync(path).map((name) => [name, fs.statSync(join(path, name)).ino])));
    else this.#contents.set(ino, fs.readFileSync(path));
  }

  #failIfDue(step: Step, before?: () => void): void {
    const left = this.#failing.get(step) ?? 0;
    if (left === 0) return;
    this.#failing.set(step, left - 1);
    before?.();
    throw Object.assign(new Error(`${this.#code}: ${step}`), { code: this.#code });
  }
}

export const fragileDisk = new FragileDisk();

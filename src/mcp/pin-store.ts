/** The file of pins: shared by every guard and proxy of a user, and by `svc mcp pins`. */

import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { isSameJson } from '../core/base/mapping.ts';
import { OneByOne } from '../core/base/one-by-one.ts';
import { messageOf } from '../core/base/text.ts';
import { replaceInTurn } from '../system/file-lock.ts';
import type { Fields } from './json-rpc.ts';
import { type Compared, compare, INSTRUCTIONS, type Pins, pinsIn, pinsText } from './pins.ts';

export const pinsPath = (env: NodeJS.ProcessEnv): string =>
  env.SVC_MCP_PINS || join(env.HOME || homedir(), '.svc', 'mcp-pins.json');

export class PinStore {
  readonly path: string;
  #pins: Pins = new Map();
  /** The stamp of the file as last read, to notice a change. */
  #stamp = '';
  /** By server: the list that was compared last, with which pins. */
  readonly #compared = new Map<string, Compared & { readonly tools: readonly Fields[] }>();
  /** Changes of this process, one after the other. */
  readonly #changes = new OneByOne();

  /** Throws when the file cannot be read, or is not one of pins. */
  constructor(path: string) {
    this.path = path;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    this.#refresh();
  }

  get pins(): Pins {
    this.#refresh();
    return this.#pins;
  }

  /** The names of the tools whose definition has changed. New ones are pinned before this resolves. */
  async compare(server: string, tools: readonly Fields[]): Promise<ReadonlySet<string>> {
    // Before every call the list is most often the one of before, and hashing it would be most of the work.
    const last = this.#compared.get(server);
    if (last !== undefined && last.pins === this.pins && isSameJson(last.tools, tools)) return last.changed;
    const compared = compare(this.pins, server, tools, new Date());
    this.#compared.set(server, { tools, ...compared });
    return compared.pins === this.#pins ? compared.changed : this.#pin(server, tools);
  }

  /**
   * Whether a server's instructions are those that it gave first; those are pinned before this resolves. Without any,
   * nothing can be withheld, and later ones are a change.
   */
  async hasInstructions(server: string, text: string): Promise<boolean> {
    const { pins } = this;
    if (text === '' && pins.get(server)?.has(INSTRUCTIONS)) return true;
    const items = [{ name: INSTRUCTIONS, description: text }];
    const compared = compare(pins, server, items, new Date());
    const changed = compared.pins === pins ? compared.changed : await this.#pin(server, items);
    return changed.size === 0;
  }

  async #pin(server: string, tools: readonly Fields[]): Promise<ReadonlySet<string>> {
    let changed: ReadonlySet<string> = new Set();
    await this.change((pins) => {
      const again = compare(pins, server, tools, new Date());
      changed = again.changed;
      return again.pins;
    });
    return changed;
  }

  /** Replaces the file by what `change` makes of it. Processes take turns. */
  change(change: (pins: Pins) => Pins): Promise<void> {
    return this.#changes.run(async () => {
      await replaceInTurn(this.path, async () => {
        this.#refresh();
        const next = change(this.#pins);
        return next === this.#pins ? undefined : pinsText(next);
      });
      this.#refresh();
    });
  }

  #refresh(): void {
    const found = statSync(this.path, { throwIfNoEntry: false });
    const stamp = found === undefined ? '' : `${found.ino} ${found.mtimeMs} ${found.size}`;
    if (stamp === this.#stamp) return;
    this.#pins = found === undefined ? new Map() : readPins(this.path);
    this.#stamp = stamp;
  }
}

function readPins(path: string): Pins {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`cannot read the pins in ${path}: ${messageOf(error)}`, { cause: error });
  }
  const pins = pinsIn(text);
  if (pins === undefined)
    throw new Error(`${path} is not a file of pins; restore it, or delete it to pin every tool anew`);
  return pins;
}

/**
 * Instructions that a server gives every model that uses it. They are pinned like the description of a tool: a model
 * obeys them.
 */
import { messageOf } from '../core/base/text.ts';
import { withoutTasks } from './capabilities.ts';
import type { Fields } from './json-rpc.ts';
import type { PinStore } from './pin-store.ts';
import { INSTRUCTIONS } from './pins.ts';

export class Instructions {
  readonly #pins: PinStore;
  readonly #log: (line: string) => void;
  readonly #warned = new Set<string>();

  constructor(pins: PinStore, log: (line: string) => void) {
    this.#pins = pins;
    this.#log = log;
  }

  /** How a server describes itself, without instructions that are not the pinned ones. */
  async described(server: string, { instructions, ...rest }: Fields): Promise<Fields> {
    const known = {
      ...rest,
      ...(rest.capabilities !== undefined && { capabilities: withoutTasks(rest.capabilities) }),
    };
    const text = typeof instructions === 'string' ? instructions : '';
    const isKept = await this.#isPinned(server, text);
    return isKept && text !== '' ? { ...known, instructions: text } : known;
  }

  async #isPinned(server: string, text: string): Promise<boolean> {
    try {
      if (await this.#pins.hasInstructions(server, text)) return true;
      this.#warn(
        server,
        `the instructions of ${server} have changed since it first gave them; they are withheld until \`svc mcp pins accept ${server} ${INSTRUCTIONS}\``,
      );
    } catch (error) {
      this.#warn(server, `the instructions of ${server} are withheld: cannot store pins: ${messageOf(error)}`);
    }
    return false;
  }

  #warn(server: string, warning: string): void {
    if (!this.#warned.has(server)) this.#log(warning);
    this.#warned.add(server);
  }
}

/** Events without arguments, as plain as every runtime of JavaScript has room for. */
export class Events<Name extends string> {
  readonly #listeners = new Map<Name, (() => void)[]>();

  /** Called at each event of this name, after those that came before. */
  on(name: Name, listener: () => void): void {
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
  }

  protected emit(name: Name): void {
    for (const listener of this.#listeners.get(name) ?? []) listener();
  }
}

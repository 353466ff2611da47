/** A value that is there in all that a callback calls, also after an `await`. */

type Storage<T> = { run<R>(value: T, callback: () => R): R; getStore(): T | undefined };
type StorageClass = new <T>() => Storage<T>;
type Runtime = {
  readonly process?: { getBuiltinModule?(name: string): { readonly AsyncLocalStorage?: StorageClass } | undefined };
  /** Edge runtimes have it as a global. */
  readonly AsyncLocalStorage?: StorageClass;
};

/** Without an import of Node.js, which not every runtime has. */
function storageClass(): StorageClass | undefined {
  const { process, AsyncLocalStorage } = globalThis as Runtime;
  return process?.getBuiltinModule?.('node:async_hooks')?.AsyncLocalStorage ?? AsyncLocalStorage;
}

/** Without support by the runtime, there is no value. */
export class AmbientValue<T> {
  readonly #storage: Storage<T> | undefined;

  constructor() {
    const Class = storageClass();
    this.#storage = Class === undefined ? undefined : new Class<T>();
  }

  get current(): T | undefined {
    return this.#storage?.getStore();
  }

  run<R>(value: T, callback: () => R): R {
    return this.#storage === undefined ? callback() : this.#storage.run(value, callback);
  }
}

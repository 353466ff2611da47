/** Loaded into a command under test with --import: what it waits for, it waits for a fortieth of the time. */
const { setTimeout: wait } = globalThis;
globalThis.setTimeout = (callback, ms, ...rest) => wait(callback, ms / 40, ...rest);

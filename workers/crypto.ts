/** Entry of a crypto thread; the pool calls `run` with each batch. */
export { performAll as run } from '../src/threads/crypto/work.ts';

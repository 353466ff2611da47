import { lookup, Resolver } from 'node:dns/promises';
import { codeOf } from '../core/base/text.ts';

/** The addresses of a host name. Rejects where it has none. */
export type Resolve = (name: string) => Promise<readonly string[]>;

const TIMEOUT_MS = 2_000;
const TRIES = 2;
/** The name is not in the DNS, or there is none: it may be in the files of this machine. */
const MAY_BE_LOCAL = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED']);

/**
 * Asks the DNS first, and the system only for names that are not there, one at a time: the system's own look-up
 * occupies one of the few threads that Node.js shares among files and databases, for as long as somebody's name server
 * does not answer.
 */
export function createResolve(): Resolve {
  const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
  let free: Promise<unknown> = Promise.resolve();
  const askSystem = (name: string): Promise<readonly string[]> => {
    const asked = free.then(() => lookup(name, { all: true }));
    free = asked.catch(() => undefined);
    return asked.then((found) => found.map(({ address }) => address));
  };
  return async (name) => {
    if (!name.includes('.')) return askSystem(name);
    const answers = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (found.length > 0) return found;
    const errors = answers.map((answer) => (answer.status === 'rejected' ? answer.reason : undefined));
    if (errors.every((error) => MAY_BE_LOCAL.has(String(codeOf(error))))) return askSystem(name);
    throw errors[0];
  };
}

import type { Unconfirmed } from '../../ports/cluster.ts';
import type { Header } from './http-answer.ts';

/** Some clients take headers of at most 8 kB. */
const MOST_NAMED = 20;

/** The names of gateways that do not act by the answer yet, as a header or a trailer of it. */
export function unconfirmedHeaders(reply: object): readonly Header[] {
  const { unconfirmed = [] }: Unconfirmed = reply;
  if (unconfirmed.length === 0) return [];
  const more = unconfirmed.length - MOST_NAMED;
  const named = more > 0 ? [...unconfirmed.slice(0, MOST_NAMED), `and ${more} more`] : unconfirmed;
  return [['svc-unconfirmed', named.join(', ')]];
}

/** The answer, with what the reply behind it says of gateways that do not act by it yet. */
export function alsoUnconfirmed<A extends object>(reply: object, answer: A): A & Unconfirmed {
  const { unconfirmed }: Unconfirmed = reply;
  return unconfirmed === undefined ? answer : { ...answer, unconfirmed };
}

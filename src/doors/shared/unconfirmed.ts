import type { Unconfirmed } from '../../ports/cluster.ts';
import type { Header } from './http-answer.ts';

/** The names of gateways that do not act by the answer yet, as a header or a trailer of it. */
export function unconfirmedHeaders(reply: object): readonly Header[] {
  const { unconfirmed = [] }: Unconfirmed = reply;
  return unconfirmed.length === 0 ? [] : [['svc-unconfirmed', unconfirmed.join(', ')]];
}

/** The answer, with what the reply behind it says of gateways that do not act by it yet. */
export function alsoUnconfirmed<A extends object>(reply: object, answer: A): A & Unconfirmed {
  const { unconfirmed }: Unconfirmed = reply;
  return unconfirmed === undefined ? answer : { ...answer, unconfirmed };
}

/** Reads the arguments of a tool call whose names agents have changed over time. */

import { hash } from 'node:crypto';
import { isSameJson } from '../../core/base/mapping.ts';
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import type { Fields, Read } from './tool.ts';

export const namesIn = (input: Fields, names: readonly string[]): readonly string[] =>
  names.filter((name) => input[name] !== undefined && input[name] !== null);

/** The one of the names that the arguments have. With several that differ, nobody knows which the agent takes. */
export function givenName(input: Fields, names: readonly string[]): Read<string | undefined> {
  const [given, ...others] = namesIn(input, names);
  const other = others.find((name) => !isSameJson(input[name], input[given!]));
  return other === undefined ? ok(given) : invalid(other, `must not differ from ${given}`);
}

export const MAX_PATHS = 100;

/** Returns the texts in these arguments: each is a text, or a list of texts. */
export function textsIn(input: Fields, names: readonly string[]): Read<readonly string[]> {
  const texts = new Set<string>();
  for (const name of namesIn(input, names))
    for (const text of [input[name]].flat() as unknown[]) {
      if (typeof text !== 'string' || text === '') return invalid(name, 'must be a text or a list of texts');
      texts.add(text);
    }
  if (texts.size > MAX_PATHS) return invalid(names[0]!, `must not have more than ${MAX_PATHS} paths`);
  return ok([...texts]);
}

/** Maps the policies' name of a content to the names that agents give it. */
export type Contents = Readonly<Record<string, readonly string[]>>;

/**
 * The arguments with the SHA-256 and the size of each content in its place: an approval then binds what is written,
 * and the content itself stays out of the log.
 */
export function withDigests(input: Fields, contents: Contents): Read<Fields> {
  const attributes: Record<string, unknown> = { ...input };
  for (const [role, names] of Object.entries(contents)) {
    const given = givenName(input, names);
    if (!given.ok) return given;
    const reserved = namesIn(input, [`${role}_sha256`, `${role}_bytes`])[0];
    // An agent that sends one beside, or in place of, its content would choose what its approver sees.
    if (reserved !== undefined) return invalid(reserved, 'must not be given; the gateway computes it');
    for (const name of names) delete attributes[name];
    if (given.value !== undefined) Object.assign(attributes, digestsOf(role, input[given.value]));
  }
  return ok(attributes);
}

/** Hashes a text, or the JSON of any other value. */
export function digestsOf(role: string, content: unknown): Fields {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return {
    [`${role}_sha256`]: hash('sha256', text, 'hex'),
    [`${role}_bytes`]: Buffer.byteLength(text),
  };
}

/** Checks that texts can be sent. Throws a TypeError that names the one that cannot. */
import type { AgentId } from './types.ts';

/** A lone surrogate, which UTF-8 cannot encode: the library would send another character instead. */
const HALF_A_CHARACTER = /\p{Cs}/u;

export function requireText(value: unknown, name: string): asserts value is string {
  if (typeof value !== 'string') throw new TypeError(`${name} must be a string`);
  if (HALF_A_CHARACTER.test(value)) throw new TypeError(`${name} has an unpaired surrogate`);
}

export function requireAgent(agent: AgentId, name: string): void {
  for (const part of ['orgId', 'teamId', 'agentId'] as const) {
    const text: unknown = agent?.[part];
    if (typeof text !== 'string' || (text === '' && part !== 'orgId'))
      throw new TypeError(`${name}.${part} must be ${part === 'orgId' ? 'a string' : 'a non-empty string'}`);
    requireText(text, `${name}.${part}`);
  }
}

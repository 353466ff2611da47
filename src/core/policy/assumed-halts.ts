/**
 * Halts that are assumed to be in force, for tests and explanations of policies without a gateway. Who has started whom
 * is not known here, so of a lineage only its first agent is covered.
 */
import { type DocumentProblem, isMapping, MappingReader } from '../base/mapping.ts';
import { fail, ok, type Result } from '../base/result.ts';
import type { CheckSubject } from '../condition/condition.ts';
import { HALT_SCOPE_FORMS, type HaltScope, namesAgent, parseHaltScope } from '../halts/halt.ts';
import type { Overruling } from './explain.ts';
import { compileGlob, type Glob, MAX_GLOB_LENGTH } from './glob.ts';

export type AssumedHalt = {
  /** As it was written. */
  readonly text: string;
  readonly scope: HaltScope;
  readonly actions: readonly Glob[];
  readonly reason: string;
};

export const ASSUMED_HALT_KEYS = ['scope', 'actions', 'reason'] as const;
/** A file of halts may be the list of a gateway's: those that are released do not count. */
const LISTED_KEYS = [
  ...ASSUMED_HALT_KEYS,
  ...['id', 'mode', 'created_by', 'created_at', 'expires_at', 'released_at', 'released_by', 'release_reason'],
];

/** Returns the decision of the first of these halts that covers the check; undefined: none does. */
export function haltOver(
  halts: readonly AssumedHalt[],
  { agent, action }: Pick<CheckSubject, 'agent' | 'action'>,
): Overruling | undefined {
  const halt = halts.find(
    ({ scope, actions }) => namesAgent(scope, agent) && actions.some((glob) => glob.matches(action)),
  );
  return halt && { cause: 'halt', reason: `a halt of ${halt.text} is in force: ${halt.reason}` };
}

/** Reads `{ halts: [{ scope: org:acme, actions: [process.*], reason: leak }] }`, or what `svc halts ls` lists. */
export function parseHaltsFile(raw: unknown): Result<readonly AssumedHalt[], readonly DocumentProblem[]> {
  if (!isMapping(raw) || !Array.isArray(raw.halts))
    return fail([{ path: [], problem: 'a file of halts must be a mapping with the key halts, that holds a list' }]);
  const problems: DocumentProblem[] = [];
  const file = new MappingReader(raw, [], problems);
  file.refuseKeysExcept(['halts', 'next_cursor']);
  const halts = readHalts(file, LISTED_KEYS);
  return problems.length > 0 ? fail(problems) : ok(halts);
}

/** The `halts:` of a mapping. Mistakes are noted at the reader. */
export function readHalts(from: MappingReader, keys: readonly string[] = ASSUMED_HALT_KEYS): readonly AssumedHalt[] {
  const { halts = [] } = from.raw;
  if (!Array.isArray(halts)) return from.refuse('halts', 'must be a list') ?? [];
  return halts.flatMap((raw: unknown, index): readonly AssumedHalt[] => {
    const path = ['halts', index];
    if (!isMapping(raw))
      return from.note({ path, problem: `a halt must be a mapping with the keys ${keys.join(', ')}` }) ?? [];
    const halt = readHalt(from.within(path, raw), keys);
    return halt === undefined || (raw.released_at ?? null) !== null ? [] : [halt];
  });
}

function readHalt(from: MappingReader, keys: readonly string[]): AssumedHalt | undefined {
  from.refuseKeysExcept(keys);
  const { scope: text, actions = ['*'], reason = 'assumed' } = from.raw;
  const scope = typeof text === 'string' ? parseHaltScope(text) : undefined;
  if (text === undefined) from.missing('scope');
  else if (scope === undefined) from.refuse('scope', `must be ${HALT_SCOPE_FORMS}`);
  const isPatterns =
    Array.isArray(actions) &&
    actions.length > 0 &&
    actions.every((each) => typeof each === 'string' && each !== '' && each.length <= MAX_GLOB_LENGTH);
  if (!isPatterns) from.refuse('actions', `must be a list of patterns, each of 1 to ${MAX_GLOB_LENGTH} characters`);
  if (typeof reason !== 'string' || reason.trim() === '') return from.refuse('reason', 'must be a non-empty string');
  if (scope === undefined || !isPatterns) return undefined;
  return { text: String(text), scope, actions: actions.map(compileGlob), reason };
}

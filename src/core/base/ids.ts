/** Identifiers are parsed once, at the edge, and trusted from there on. */

declare const brand: unique symbol;
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** `<trace_id>:<span_id>` (docs/spec.md, Operations). */
export type OpId = Brand<string, 'OpId'>;

/** `<org>/<team>/<agent>`; the org half is empty for an agent without one (docs/spec.md, Identity). */
export type AgentKey = Brand<string, 'AgentKey'>;

/** SHA-256 of a secret in base64url, 43 characters. The only form in which a secret is kept or compared. */
export type SecretDigest = Brand<string, 'SecretDigest'>;

/** The canonical identity of an agent. `orgId` is '' when the agent has no org; the other two are never empty. */
export type AgentIdentity = { readonly orgId: string; readonly teamId: string; readonly agentId: string };

/** Length limit of every single id, in UTF-8 bytes. */
const MAX_ID_BYTES = 256;

// Whitespace, control, format and other characters without a mark of their own would make two ids look alike on a
// terminal or split a log line.
const FORBIDDEN_IN_OP_HALF = /[\s\p{C}:]/u;
const FORBIDDEN_IN_NAME = /[\s\p{C}\p{Default_Ignorable_Code_Point}\u2800/]/u;
const PLAIN_OP_HALF = /^[\w.+=@~-]{1,256}$/;
const PLAIN_NAME = /^[\w.:+=@~-]{1,256}$/;

function utf8Length(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0;
    bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return bytes;
}

const isWellFormed = (text: string, forbidden: RegExp): boolean =>
  text.length > 0 && text.length <= MAX_ID_BYTES && !forbidden.test(text) && utf8Length(text) <= MAX_ID_BYTES;

/** Validates half an operation id: 1 to 256 bytes, no white space, no control character, no `:`. */
export const isOpHalf = (text: string): boolean => PLAIN_OP_HALF.test(text) || isWellFormed(text, FORBIDDEN_IN_OP_HALF);

/**
 * An org, team or agent name: 1 to 256 bytes, no white space, no control or invisible character, no `/`, neither `.`
 * nor `..`, and in the form NFC: the other spellings of the same letters would be other agents that look the same.
 */
export const isName = (text: string): boolean =>
  PLAIN_NAME.test(text) ? !isStepInPath(text) : isWellFormed(text, FORBIDDEN_IN_NAME) && text.normalize('NFC') === text;

/**
 * Clients resolve these in a path before sending it, even percent-encoded, so nothing with such a name could be
 * reached.
 */
const isStepInPath = (text: string): boolean => text === '.' || text === '..';

/** An org's name. `-` is none: in a path it stands for the org of agents that have none. */
export const isOrgName = (text: string): boolean => text !== '-' && isName(text);

/** The id of an operation, or undefined when either half is malformed (docs/spec.md, Checks 5). */
export function opIdOf(traceId: string, spanId: string): OpId | undefined {
  return isOpHalf(traceId) && isOpHalf(spanId) ? (`${traceId}:${spanId}` as OpId) : undefined;
}

export function parseOpId(text: string): OpId | undefined {
  const colon = text.indexOf(':');
  return colon === -1 ? undefined : opIdOf(text.slice(0, colon), text.slice(colon + 1));
}

/** The usage id of the cost in a completion: derived from the operation, so that a repeated completion counts once. */
export const usageIdOfCompletion = (opId: OpId): string => `complete:${opId}`;

/** The key under which an agent is registered. The whole triple takes part, so equal names in two orgs never meet. */
export const agentKeyOf = ({ orgId, teamId, agentId }: AgentIdentity): AgentKey =>
  `${orgId}/${teamId}/${agentId}` as AgentKey;

/** Reads `<org>/<team>/<agent>`; undefined when a name is malformed or missing. Only the org may be empty. */
export function parseAgentKey(text: string): AgentIdentity | undefined {
  const [orgId, teamId, agentId, more] = text.split('/', 4);
  if (orgId === undefined || teamId === undefined || agentId === undefined || more !== undefined) return undefined;
  const wellFormed = (orgId === '' || isOrgName(orgId)) && isName(teamId) && isName(agentId);
  return wellFormed ? { orgId, teamId, agentId } : undefined;
}

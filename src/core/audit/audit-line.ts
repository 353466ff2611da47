/**
 * Lines of the audit log (docs/spec.md, Audit). The fields come in one fixed order:
 *
 *   {"id":7,"timestamp":…,"event_type":…,"lineage":{"org_id":…,"team_id":…,"agent_id":…},"op_id":…,"decision":…,
 *    "reason":…,"policy":…,"rule_id":…,"cause":…,"actor":…,"payload":{…},"prev_hash":"…","hash":"…"}
 *
 * In a cluster, `,"gateway":"<name>"` follows the payload.
 *
 * `hash` is the SHA-256 of the bytes before `,"hash":`, in hex. `prev_hash` is among them, so every hash seals all
 * lines before it. The thread that decides encodes the body, from `,"timestamp":` to the end of the payload; the thread
 * that writes puts the id before it, and the gateway and the two hashes after it.
 */

import { escapeControls, quote, quoteOrNull } from '../base/text.ts';
import { rfc3339 } from '../base/time.ts';
import { type AuditDraft, type Lineage, NO_LINEAGE } from './audit.ts';

/** The predecessor that the first entry ever written names. */
export const GENESIS_HASH = '0'.repeat(64);

export const ID_PREFIX = '{"id":';
export const PREV_HASH_PREFIX = ',"prev_hash":"';
export const HASH_PREFIX = ',"hash":"';
export const HASH_HEX_LENGTH = 64;
/** Bytes from `,"prev_hash":` up to `,"hash":`. */
export const PREV_HASH_LENGTH = PREV_HASH_PREFIX.length + HASH_HEX_LENGTH + 1;
/** Bytes from `,"hash":` to the closing brace, the line feed not counted. */
export const HASH_LENGTH = HASH_PREFIX.length + HASH_HEX_LENGTH + 2;

/** Limits remembered quotations of each kind: the same texts are quoted again and again. */
const MOST_REMEMBERED = 1_000;

/** An agent as entries have it, and the actor of the last of them. */
class Who {
  readonly lineage: string;
  #actor: string | undefined;
  #quoted = '';

  constructor({ orgId, teamId, agentId }: Lineage) {
    // An agent without an org has none in the log (docs/spec.md, Audit).
    this.lineage = `{"org_id":${quoteOrNull(orgId === '' ? null : orgId)},"team_id":${quoteOrNull(teamId)},"agent_id":${quoteOrNull(agentId)}}`;
  }

  quoted(actor: string): string {
    if (actor !== this.#actor) {
      this.#quoted = quote(actor);
      this.#actor = actor;
    }
    return this.#quoted;
  }
}

const known = new Map<Lineage, Who>();
// Entries that follow each other often share their agent, and the rule that decided.
let lineageSeen: Lineage | undefined;
let whoSeen = new Who(NO_LINEAGE);
let rulingSeen: Pick<AuditDraft, 'decision' | 'reason' | 'policy' | 'ruleId' | 'cause'> = {};
let payloadSeen: AuditDraft['payload'];
let payloadText = '{}';
let rulingText = ',"decision":null,"reason":null,"policy":null,"rule_id":null,"cause":null,"actor":';

function whoIs(lineage: Lineage): Who {
  if (lineage === lineageSeen) return whoSeen;
  lineageSeen = lineage;
  whoSeen = known.get(lineage) ?? learn(lineage);
  return whoSeen;
}

function learn(lineage: Lineage): Who {
  if (known.size >= MOST_REMEMBERED) known.clear();
  const who = new Who(lineage);
  known.set(lineage, who);
  return who;
}

function rulingOf(draft: AuditDraft): string {
  const { decision, reason, policy, ruleId, cause } = draft;
  const seen = rulingSeen;
  if (
    decision !== seen.decision ||
    reason !== seen.reason ||
    policy !== seen.policy ||
    ruleId !== seen.ruleId ||
    cause !== seen.cause
  ) {
    rulingText = `,"decision":${decision === undefined ? 'null' : `"${decision}"`},"reason":${quoteOrNull(
      reason,
    )},"policy":${quoteOrNull(policy)},"rule_id":${quoteOrNull(ruleId)},"cause":${cause === undefined ? 'null' : `"${cause}"`},"actor":`;
    rulingSeen = { decision, reason, policy, ruleId, cause };
  }
  return rulingText;
}

/** All moves of a halt's slice share one payload. */
function payloadOf(payload: Readonly<Record<string, unknown>>): string {
  if (payload === payloadSeen) return payloadText;
  payloadText = encodePayload(payload);
  payloadSeen = payload;
  return payloadText;
}

/**
 * As JSON.stringify, but without control characters, and faster for the flat objects of strings and numbers that
 * payloads are.
 */
function encodePayload(payload: Readonly<Record<string, unknown>>): string {
  let text = '';
  for (const key in payload) {
    const value = payload[key];
    const json = typeof value === 'string' ? quote(value) : jsonOf(value);
    if (json !== undefined) text += (text === '' ? '{' : ',') + (quotedKeys.get(key) ?? quoteKey(key)) + json;
  }
  return text === '' ? '{}' : `${text}}`;
}

/** With the colon. The same few keys are in nearly all payloads. */
const quotedKeys = new Map<string, string>();

function quoteKey(key: string): string {
  const quoted = `${quote(key)}:`;
  if (quotedKeys.size < MOST_REMEMBERED) quotedKeys.set(key, quoted);
  return quoted;
}

function jsonOf(value: unknown): string | undefined {
  const json = JSON.stringify(value) as string | undefined;
  return json === undefined ? undefined : escapeControls(json);
}

/**
 * The body of a line: from `,"timestamp":` to the end of the payload. Holds no line feed, so bodies can be joined by
 * one. The draft's lineage and payload must not be mutated: their encodings are cached by identity.
 */
export function encodeDraft(draft: AuditDraft, timestampMs: number): string {
  const { opId, payload } = draft;
  const who = whoIs(draft.lineage);
  return `,"timestamp":"${rfc3339(timestampMs)}","event_type":"${draft.eventType}","lineage":${who.lineage},"op_id":${quoteOrNull(
    opId,
  )}${rulingOf(draft)}${who.quoted(draft.actor)},"payload":${payload === undefined ? '{}' : payloadOf(payload)}`;
}

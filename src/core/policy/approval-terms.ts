/** The `approval:` section of a rule: who may approve, and for how long (docs/spec.md, Approvals). */
import { DAY_MS, durationMs, durationText, MINUTE_MS } from '../base/duration.ts';
import { isMapping, type MappingReader } from '../base/mapping.ts';
import { isUuid } from '../identity/account.ts';
import { ROLES } from '../identity/roles.ts';

export type ApprovalTerms = {
  /** How many different approvers it takes. */
  readonly min: number;
  /** How long people have to decide, and an approval for one use then waits for it. */
  readonly expiresMs: number;
  /** How long an approval can be used again and again, from the approval on; undefined: once. */
  readonly validMs: number | undefined;
  /**
   * `role:<role>`, `account:<e-mail or id>` or `key:<name or id>`; empty: every credential with admin scope that sees
   * the org.
   */
  readonly approvers: readonly string[];
};

/** As the API and the command line show them. */
export const termsView = ({ min, expiresMs, validMs, approvers }: ApprovalTerms) => ({
  min,
  expires_secs: expiresMs / 1000,
  valid_secs: validMs === undefined ? null : validMs / 1000,
  approvers,
});

/** `by 2 of role:admin, key:ops within 15m, valid for 8h` */
export function termsText({ min, expiresMs, validMs, approvers }: ApprovalTerms): string {
  const whom = approvers.length === 0 ? 'any admin' : approvers.join(', ');
  const valid = validMs === undefined ? 'valid once' : `valid for ${durationText(validMs)}`;
  return `by ${min === 1 ? '' : `${min} of `}${whom} within ${durationText(expiresMs)}, ${valid}`;
}

export const MAX_APPROVAL_MIN = 10;
const MAX_EXPIRES_MS = 7 * DAY_MS;
const MAX_VALID_MS = DAY_MS;
export const MAX_APPROVERS = 100;
export const MAX_APPROVER_LENGTH = 320;

export const DEFAULT_TERMS: ApprovalTerms = {
  min: 1,
  expiresMs: 15 * MINUTE_MS,
  validMs: undefined,
  approvers: [],
};

const TERM_KEYS = ['min', 'expires', 'valid', 'approvers'] as const;

/** The terms of the rule. Mistakes are noted at the reader. */
export function readApprovalTerms(rule: MappingReader): ApprovalTerms {
  const raw = rule.raw.approval;
  if (raw === undefined) return DEFAULT_TERMS;
  if (!isMapping(raw))
    return rule.refuse('approval', `must be a mapping with the keys ${TERM_KEYS.join(', ')}`) ?? DEFAULT_TERMS;
  const terms = rule.within(['approval'], raw);
  terms.refuseKeysExcept(TERM_KEYS);
  return {
    min: readMin(terms),
    expiresMs: readDuration(terms, 'expires', MAX_EXPIRES_MS, 'a duration such as 90s, 15m or 2h, at most 7d'),
    validMs:
      raw.valid === undefined || raw.valid === 'once'
        ? undefined
        : readDuration(terms, 'valid', MAX_VALID_MS, 'once, or a duration such as 15m or 8h, at most 24h'),
    approvers: readApprovers(terms),
  };
}

function readMin(terms: MappingReader): number {
  const { min = DEFAULT_TERMS.min } = terms.raw;
  if (typeof min === 'number' && Number.isInteger(min) && min >= 1 && min <= MAX_APPROVAL_MIN) return min;
  return terms.refuse('min', `must be a whole number from 1 to ${MAX_APPROVAL_MIN}`) ?? DEFAULT_TERMS.min;
}

function readDuration(terms: MappingReader, key: 'expires' | 'valid', mostMs: number, wanted: string): number {
  const value = terms.raw[key];
  if (value === undefined) return DEFAULT_TERMS.expiresMs;
  const ms = durationMs(value);
  return ms !== undefined && ms <= mostMs ? ms : (terms.refuse(key, `must be ${wanted}`) ?? DEFAULT_TERMS.expiresMs);
}

function readApprovers(terms: MappingReader): readonly string[] {
  const { approvers } = terms.raw;
  if (approvers === undefined) return DEFAULT_TERMS.approvers;
  const isList = Array.isArray(approvers) && approvers.length > 0 && approvers.length <= MAX_APPROVERS;
  if (!isList) return terms.refuse('approvers', `must be a list of 1 to ${MAX_APPROVERS} approvers`) ?? [];
  approvers.forEach((approver: unknown, index) => {
    if (typeof approver === 'string' && isApprover(approver)) return;
    terms.note({
      path: ['approvers', index],
      problem: `must be role:<${ROLES.join('|')}>, account:<e-mail or id> or key:<name or id>`,
    });
  });
  return approvers as readonly string[];
}

function isApprover(text: string): boolean {
  if (text.length > MAX_APPROVER_LENGTH) return false;
  const kind = text.slice(0, text.indexOf(':') + 1);
  const name = text.slice(kind.length);
  if (kind === 'role:') return (ROLES as readonly string[]).includes(name);
  return (kind === 'account:' && (name.includes('@') || isUuid(name))) || (kind === 'key:' && name.trim() !== '');
}

/** Who is behind a credential, and whether it may decide (docs/spec.md, Approvals). */

/** A credential as approvals see it. */
export type Credential = {
  /** `key:<id>`, `account:<id>` or `agent:<key>`. */
  readonly subject: string;
  /** The names that rules may use for it, besides its subject: `role:<role>`, `account:<e-mail>`, `key:<name>`. */
  readonly names: readonly string[];
  /** False: it was revoked, has expired, is disabled or is gone. */
  readonly isValid: boolean;
  /** A key that the gateway itself made: its holder can make all others. */
  readonly isFirst: boolean;
};

/** A credential, the one that made it, and so on, as far as is known. */
export type Lineage = readonly [Credential, ...(readonly Credential[])];

/**
 * The account at the end of the lineage, or its first key below the one that the gateway made: two keys that one
 * credential made are one person's, but not two that the operator made with the first key.
 */
export function personBehind(lineage: Lineage): string {
  const last = lineage.at(-1) ?? lineage[0];
  return (last.isFirst && lineage.at(-2)?.subject) || last.subject;
}

/** Whether the rule names the credential: by its id, its account, or a name that somebody has given who may decide. */
export function isNamed([own, ...makers]: Lineage, approvers: readonly string[]): boolean {
  if (!own.isValid) return false;
  if (approvers.includes(own.subject)) return true;
  const wanted = new Set(approvers.map((each) => each.toLowerCase()));
  const names = own.names.filter((name) => wanted.has(name.toLowerCase()));
  if (names.some((name) => !name.startsWith('key:'))) return true;
  // The name of a key proves nothing: its maker chooses it.
  const [maker, ...others] = makers;
  if (names.length === 0) return false;
  return maker === undefined ? own.isFirst : maker.isFirst || isNamed([maker, ...others], approvers);
}

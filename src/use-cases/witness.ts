/** Keeps in the own log what other gateways state of theirs (docs/audit-log.md, Witnesses). */

import { type AuditFilter, lineageOfOrg } from '../core/audit/audit.ts';
import { afterStatement, judgeStatement, type Witnessed, type WitnessStatement } from '../core/audit/witness.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { refuseWithout } from '../core/identity/access.ts';
import type { Principal } from '../core/identity/roles.ts';
import type { AuditLog } from '../ports/ports.ts';
import type { AuditReads, LogText } from './logs.ts';

export type WitnessedStatement = { /** False: it was in the log before. */ readonly isNew: boolean };

/** Credentials whose statements are at hand. Statements of others are read from the log again. */
const MAX_KNOWN = 1000;
/** Enough to find the last one that was not refused, unless a cut log has gone on for hours. */
const RECALLED = 200;
/** The search for them is cut where the log is long; then it goes on, but not forever. */
const MAX_PAGES = 8;

type Asked = { readonly principal: Principal; readonly statement: WitnessStatement };

export class LogWitness {
  readonly #audit: AuditLog;
  readonly #reads: AuditReads;
  /** By the subject of the credential; the most recently used one is last. */
  readonly #known = new Map<string, Witnessed>();
  /** Each is compared with the ones recorded before it, so one of a credential is taken at a time. */
  readonly #busy = new Set<string>();

  constructor(audit: AuditLog, reads: AuditReads) {
    this.#audit = audit;
    this.#reads = reads;
  }

  /**
   * Faults: `conflict` for what contradicts what this credential has stated before, which is recorded all the same,
   * once; `overloaded`, `audit_unavailable`.
   */
  async keep({ principal, statement }: Asked): Promise<Result<WitnessedStatement, Fault>> {
    const refused = refuseWithout('write', principal);
    if (refused !== undefined) return refused;
    const { subject } = principal;
    if (this.#busy.has(subject))
      return fail({ kind: 'overloaded', what: 'the number of statements of one credential', retryAfterSecs: 1 });
    this.#busy.add(subject);
    try {
      return await this.#keepNext({ principal, statement });
    } finally {
      this.#busy.delete(subject);
    }
  }

  async #keepNext({ principal, statement }: Asked): Promise<Result<WitnessedStatement, Fault>> {
    const recalled = await this.#recall(principal);
    if (!recalled.ok) return recalled;
    const verdict = judgeStatement(recalled.value, statement);
    const isKnown = verdict.kind === 'known' || (verdict.kind === 'contradiction' && verdict.isKnown);
    const detail = verdict.kind === 'contradiction' ? verdict.detail : undefined;
    if (!isKnown) {
      const { id, hash, first_id, timestamp, gateway, peers, signature } = statement;
      const recorded = await this.#audit.record({
        eventType: 'CheckpointWitnessed',
        actor: principal.subject,
        lineage: lineageOfOrg(principal.orgId),
        reason: detail,
        payload: { id, hash, first_id, timestamp, ...(peers !== undefined && { gateway, peers }), signature },
      });
      if (!recorded.ok) return recorded;
    }
    this.#remember(principal.subject, afterStatement(recalled.value, statement));
    return detail === undefined ? ok({ isNew: !isKnown }) : fail({ kind: 'conflict', detail });
  }

  /** Loads the statements of this credential, also from before the last start. */
  async #recall({ subject, orgId }: Principal): Promise<Result<Witnessed, Fault>> {
    const known = this.#known.get(subject);
    if (known !== undefined) return ok(known);
    const filter: AuditFilter = {
      actor: subject,
      eventTypes: ['CheckpointWitnessed'],
      orgId: orgId ?? undefined,
    };
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const read = await this.#reads.read({ filter, format: 'ndjson', perPage: RECALLED, cursor }, orgId);
      if (!read.ok) return read;
      const found = statementsOf(read.value);
      cursor = read.value.next;
      if (found.length > 0 || cursor === undefined) return ok(found.reduce<Witnessed>(afterStatement, {}));
    }
    return ok({});
  }

  #remember(subject: string, witnessed: Witnessed): void {
    this.#known.delete(subject);
    this.#known.set(subject, witnessed);
    if (this.#known.size <= MAX_KNOWN) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}

/** Oldest first, as the log says them. */
const statementsOf = ({ text }: LogText): readonly WitnessStatement[] =>
  new TextDecoder()
    .decode(text)
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { readonly payload: WitnessStatement }).payload)
    .reverse();

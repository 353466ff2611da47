/** The sinks of the audit log, as operators see and steer them (docs/audit-sinks.md). */

import { NO_LINEAGE } from '../core/audit/audit.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { refuseUnlessAdminOfAll } from '../core/identity/access.ts';
import type { Principal } from '../core/identity/roles.ts';
import type { AuditLog } from '../ports/ports.ts';
import type { UseCase } from '../ports/use-case.ts';

export type ListedSink = {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  /** The target, without secrets. */
  readonly place: string;
  /** The last entry that its receiver has; 0: none. */
  readonly sentId: number;
  /** Entries that it has not got yet. */
  readonly lag: number;
  readonly sentEntries: number;
  readonly lostEntries: number;
  readonly failures: number;
  /** Why the last attempt failed; undefined: it did not. */
  readonly trouble: string | undefined;
};

/** `trouble` undefined: the receiver accepted the test. */
export type SinkTest = { readonly trouble: string | undefined };

export type AuditSinks = {
  readonly sinks: readonly ListedSink[];
  /** Fault: `not_found`. */
  test(name: string): Promise<Result<SinkTest, Fault>>;
  /** Sends everything from that entry on. Fault: `not_found`. */
  replay(name: string, fromId: number): Promise<Result<void, Fault>>;
};

export type AuditSinkUseCases = {
  readonly listAuditSinks: UseCase<{ readonly principal: Principal }, { readonly sinks: readonly ListedSink[] }>;
  readonly testAuditSink: UseCase<{ readonly principal: Principal; readonly name: string }, SinkTest>;
  readonly replayAuditSink: UseCase<
    { readonly principal: Principal; readonly name: string; readonly fromId: number },
    void
  >;
};

/** They get the entries of every org together. */
export const createAuditSinkUseCases = (sinks: AuditSinks, audit: AuditLog): AuditSinkUseCases => ({
  listAuditSinks: async ({ principal }) =>
    principal.orgId === null ? ok({ sinks: sinks.sinks }) : fail({ kind: 'org_forbidden', orgId: undefined }),
  testAuditSink: async ({ principal, name }) => refuseUnlessAdminOfAll(principal) ?? sinks.test(name),
  replayAuditSink: async ({ principal, name, fromId }) => {
    const refused = refuseUnlessAdminOfAll(principal);
    if (refused !== undefined) return refused;
    const before = sinks.sinks.find((sink) => sink.name === name)?.sentId;
    const replayed = await sinks.replay(name, fromId);
    if (!replayed.ok) return replayed;
    return audit.record({
      eventType: 'SettingsChanged',
      lineage: NO_LINEAGE,
      actor: principal.subject,
      payload: { changed: [{ name: `audit sink ${name}`, before, after: fromId - 1 }] },
    });
  },
});

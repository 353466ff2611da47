/** The policies in force: shown, and replaced as a whole (docs/spec.md, Policy). */

import { NO_LINEAGE } from '../core/audit/audit.ts';
import { BAD_CURSOR, type Page, type PageRequest, placeOfCursor } from '../core/base/page.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Steps } from '../core/base/steps.ts';
import type { CheckSubject } from '../core/condition/condition.ts';
import { explain, type Fault } from '../core/fault.ts';
import { refuseUnlessAdminOfAll } from '../core/identity/access.ts';
import { type Principal, seesOrg } from '../core/identity/roles.ts';
import { diffingPolicies, type PolicyChange } from '../core/policy/diff.ts';
import type { Explanation, Overruling } from '../core/policy/explain.ts';
import type { DocumentSummary, PolicySet, RuleSummary } from '../core/policy/policy.ts';
import type { PolicyDecision } from '../core/policy/rule.ts';
import { FairQueue } from '../fairness/fair-queue.ts';
import type { PolicyText } from '../ports/cluster.ts';
import type { AuditLog, Clock } from '../ports/ports.ts';

/** Problems are sentences that name file, line and column. */
export type LoadPolicies = () => Promise<Result<ReadSet, readonly string[]>>;
/** A set, what is doubtful in it, and its files. */
export type ReadSet = {
  readonly policies: PolicySet;
  readonly warnings: readonly string[];
  readonly texts: readonly PolicyText[];
};

/** A reload that left the set in force as it was. */
export type ReloadFailure = {
  readonly atMs: number;
  readonly by: string;
  readonly reason: string;
  /** Sentences that name file, line and column; none where the files are not to blame. */
  readonly problems: readonly string[];
};

export type PoliciesInForce = Page<DocumentSummary> & {
  readonly version: string;
  readonly loadedAtMs: number;
  /** The last reload, where it failed. */
  readonly failure: ReloadFailure | undefined;
};
export type RulesInForce = Page<RuleSummary> & { readonly version: string };
export type ExplainedCheck = Explanation & {
  readonly version: string;
  readonly overruledBy: Overruling | undefined;
};
export type Reloaded = {
  readonly version: string;
  readonly documents: number;
  readonly changed: boolean;
  readonly warnings: readonly string[];
};

export type AskedToExplain = {
  readonly subject: CheckSubject;
  /** The session whose limits are looked at as well. */
  readonly traceId?: string | undefined;
  /** Decides in place of the set in force. */
  readonly draft?: readonly PolicyText[] | undefined;
};

export type PolicyKeeperDeps = {
  readonly policies: PolicySet;
  readonly load: LoadPolicies;
  /** Ends the `load` that runs, which may reject then. */
  readonly stopLoading?: () => void;
  /** Whether the latest `load` has read files of this fingerprint. */
  readonly hasRead: (fingerprint: string) => boolean;
  /** Returns the halt or the exhausted cap that denies a check although the policies allow it. */
  readonly overruling: (
    subject: CheckSubject,
    traceId: string | undefined,
    decision: PolicyDecision,
  ) => Overruling | undefined;
  /** Does long work without holding up checks. */
  readonly inSlices: <T>(steps: Steps<T>) => Promise<T>;
  /** Puts the set in force, from the next check on. */
  readonly install: (policies: PolicySet) => void;
  /** In a cluster, policies are published, and not read from files. */
  readonly isPublished?: boolean;
  /** Keeps the set that is in force from now on, with its files. Undefined: something else does. */
  readonly keep?: ((set: ReadSet, by: string, sinceMs: number) => void) | undefined;
  readonly audit: AuditLog;
  readonly clock: Clock;
  readonly log: { info(message: string, fields?: object): void; error(message: string, fields?: object): void };
  readonly onFailed?: (failure: ReloadFailure) => void;
  readonly onReloaded?: (reloaded: Reloaded, actor: string) => void;
  /** Compiles texts that nobody has put in force. Problems are sentences, as of `load`. */
  readonly compile?: (texts: readonly PolicyText[]) => ReturnType<LoadPolicies>;
};

/** Reloads that run or wait, each for another actor. */
const MAX_RELOADS = 64;
const TOO_MANY_RELOADS = fail({ kind: 'overloaded', what: 'policy reloading', retryAfterSecs: 1 } as const);
const SHUTTING_DOWN = fail({ kind: 'shutting_down', retryAfterSecs: 1 } as const);

/** `fingerprint`: of the files that have changed; undefined: somebody wants them read however they are. */
type WaitingReload = { fingerprint: string | undefined; reloaded?: Promise<Result<Reloaded, Fault>> | undefined };
/** Drafts are compiled one at a time: each takes a thread. */
const MAX_DRAFTS = 16;
const TOO_MANY_DRAFTS = fail({ kind: 'overloaded', what: 'compiling drafts', retryAfterSecs: 1 } as const);

/** The entry lists at most so many changes; of the others it has the number. */
const MAX_RECORDED_CHANGES = 100;

function changesPayload(changes: readonly PolicyChange[]) {
  const shown = changes.slice(0, MAX_RECORDED_CHANGES);
  const more = changes.length - shown.length;
  return {
    changes: shown.map(({ kind, document, ruleId }) => ({ kind, document, rule_id: ruleId ?? null })),
    ...(more > 0 && { more }),
  };
}

export class PolicyKeeper {
  readonly #deps: PolicyKeeperDeps;
  #policies: PolicySet;
  #loadedAtMs: number;
  readonly #queue = new FairQueue({ atOnce: 1, places: MAX_RELOADS });
  /** By actor, the reload that has not begun: it has yet to read the files, so it serves whatever asks again. */
  readonly #waiting = new Map<string, WaitingReload>();
  #isClosed = false;
  readonly #drafts = new FairQueue({ atOnce: 1, places: MAX_DRAFTS });
  #failure: ReloadFailure | undefined;
  readonly reloads = { done: 0, failed: 0 };

  constructor(deps: PolicyKeeperDeps) {
    this.#deps = deps;
    this.#policies = deps.policies;
    this.#loadedAtMs = deps.clock.nowMs();
  }

  /** A principal that is bound to an org sees the global documents and those of its org. */
  list(principal: Principal, { perPage, cursor }: PageRequest): Result<PoliciesInForce, Fault> {
    const from = placeOfCursor(cursor);
    if (from === undefined) return BAD_CURSOR;
    const { version, documents } = this.#policies.summary(principal.orgId ?? undefined);
    const end = from + perPage;
    return ok({
      version,
      loadedAtMs: this.#loadedAtMs,
      // It names files of all orgs.
      failure: principal.orgId === null ? this.#failure : undefined,
      items: documents.slice(from, end),
      next: end < documents.length ? String(end) : undefined,
    });
  }

  /**
   * In the order in which a check goes through them; with `policy`, those of one document. Seen are those of the
   * documents that `list` shows.
   */
  listRules(
    principal: Principal,
    policy: string | undefined,
    { perPage, cursor }: PageRequest,
  ): Result<RulesInForce, Fault> {
    const from = placeOfCursor(cursor);
    if (from === undefined) return BAD_CURSOR;
    const orgId = principal.orgId ?? undefined;
    // An extra row tells whether there is a next page.
    const found = this.#policies.rules({ orgId, policy }, from, perPage + 1);
    return ok({
      version: this.#policies.summary(orgId).version,
      items: found.slice(0, perPage),
      next: found.length > perPage ? String(from + perPage) : undefined,
    });
  }

  /** Whether any rule in force names this approver. */
  hasApprover(approver: string): boolean {
    const wanted = approver.toLowerCase();
    return this.#policies
      .rules({ orgId: undefined, policy: undefined }, 0, Infinity)
      .some(({ approval }) => approval?.approvers.some((each) => each.toLowerCase() === wanted));
  }

  /**
   * Explains the policies' decision, and what would overrule it. Shows only documents that reach the agent, so none of
   * another org. With `draft`, as if these texts were the set in force.
   */
  async explain(principal: Principal, { draft, ...asked }: AskedToExplain): Promise<Result<ExplainedCheck, Fault>> {
    const { orgId } = asked.subject.agent;
    if (!seesOrg(principal, orgId)) return fail({ kind: 'org_forbidden', orgId });
    if (draft === undefined) return ok(await this.#explained(this.#policies, principal, asked));
    const compiled = await (this.#drafts.run(principal.subject, () => this.#compile(draft)) ?? TOO_MANY_DRAFTS);
    return compiled.ok ? ok(await this.#explained(compiled.value.policies, principal, asked)) : compiled;
  }

  async #compile(draft: readonly PolicyText[]) {
    const compiled = await this.#deps.compile?.(draft);
    if (compiled === undefined) throw new Error('this keeper cannot compile drafts');
    return compiled.ok ? compiled : fail({ kind: 'policy_invalid', problems: compiled.fault } as const);
  }

  /** By this set, whichever comes into force meanwhile. */
  async #explained(
    policies: PolicySet,
    principal: Principal,
    { subject, traceId }: AskedToExplain,
  ): Promise<ExplainedCheck> {
    const { decision, documents } = await this.#deps.inSlices(policies.explaining(subject));
    return {
      version: policies.summary(principal.orgId ?? undefined).version,
      decision,
      overruledBy: this.#deps.overruling(subject, traceId, decision),
      documents: documents.filter(({ applies }) => applies),
    };
  }

  /** The set holds for every org, so an admin of one org does not replace it. */
  async reloadFor(principal: Principal): Promise<Result<Reloaded, Fault>> {
    return refuseUnlessAdminOfAll(principal) ?? this.reload(principal.subject);
  }

  /**
   * Reloads one at a time, so that the set loaded last is the one in force. A set with a mistake in it changes nothing.
   * With the fingerprint of files that have changed, nothing is done if an earlier reload has read them like that.
   */
  reload(actor: string, fingerprint?: string): Promise<Result<Reloaded, Fault>> {
    if (this.#deps.isPublished === true) return Promise.resolve(fail({ kind: 'use_publish' }));
    if (this.#isClosed) return Promise.resolve(SHUTTING_DOWN);
    const waiting = this.#waiting.get(actor);
    if (waiting?.reloaded === undefined) return this.#enqueue(actor, fingerprint);
    waiting.fingerprint &&= fingerprint;
    return waiting.reloaded;
  }

  #enqueue(actor: string, fingerprint: string | undefined): Promise<Result<Reloaded, Fault>> {
    const waiting: WaitingReload = { fingerprint };
    this.#waiting.set(actor, waiting);
    waiting.reloaded = this.#queue.run(null, async () => {
      this.#waiting.delete(actor);
      if (this.#isClosed) return SHUTTING_DOWN;
      const isRead = waiting.fingerprint !== undefined && this.#deps.hasRead(waiting.fingerprint);
      return isRead ? this.#unchanged() : this.#reload(actor);
    });
    if (waiting.reloaded === undefined) {
      this.#waiting.delete(actor);
      return Promise.resolve(TOO_MANY_RELOADS);
    }
    waiting.reloaded.catch(() => {
      this.reloads.failed += 1;
    }); // why is reported to the caller
    return waiting.reloaded;
  }

  async #reload(actor: string): Promise<Result<Reloaded, Fault>> {
    const loaded = await this.#deps.load().catch((error: unknown) => {
      if (!this.#isClosed) throw error;
    });
    if (this.#isClosed || loaded === undefined) return SHUTTING_DOWN;
    if (!loaded.ok) return this.#failed({ kind: 'policy_invalid', problems: loaded.fault }, actor);
    return this.replace(loaded.value, actor);
  }

  /**
   * Drops the reloads that wait or still read: the next start reads the files anyway, and a stop would wait for each.
   */
  close(): void {
    this.#isClosed = true;
    this.#deps.stopLoading?.();
  }

  /** Which set is in force. */
  get version(): string {
    return this.#policies.version;
  }

  get inForce(): PolicySet {
    return this.#policies;
  }

  /** Records the set, and puts it in force. Sets are replaced one at a time: `reload` and publishing see to that. */
  async replace(set: ReadSet, actor: string): Promise<Result<Reloaded, Fault>> {
    const { install, audit, clock, log, inSlices, keep } = this.#deps;
    const { policies, warnings } = set;
    const {
      version,
      documents: { length: documents },
    } = policies.summary();
    const changed = version !== this.#policies.version;
    const changes = await inSlices(diffingPolicies(this.#policies.documents, policies.documents));
    const recorded = await audit.record({
      eventType: 'PolicyReloaded',
      lineage: NO_LINEAGE,
      actor,
      payload: { version, documents, changed, ...(changed && changesPayload(changes)) },
    });
    if (!recorded.ok) return this.#failed(recorded.fault, actor);
    install(policies);
    this.#policies = policies;
    this.#loadedAtMs = clock.nowMs();
    this.#failure = undefined;
    if (changed) keep?.(set, actor, this.#loadedAtMs);
    this.reloads.done += 1;
    log.info('policies reloaded', {
      version,
      documents,
      changed,
      by: actor,
      ...(warnings.length > 0 ? { warnings } : {}),
    });
    const reloaded = { version, documents, changed, warnings };
    this.#deps.onReloaded?.(reloaded, actor);
    return ok(reloaded);
  }

  #unchanged(): Result<Reloaded, Fault> {
    const { version, documents } = this.#policies.summary();
    return ok({ version, documents: documents.length, changed: false, warnings: [] });
  }

  #failed(fault: Fault, actor: string): Result<never, Fault> {
    this.reloads.failed += 1;
    this.#deps.log.error('policies were not reloaded', { reason: explain(fault), by: actor });
    const problems = fault.kind === 'policy_invalid' ? fault.problems : [];
    this.#failure = { atMs: this.#deps.clock.nowMs(), by: actor, reason: explain(fault), problems };
    this.#deps.onFailed?.(this.#failure);
    return fail(fault);
  }
}

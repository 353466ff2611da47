/** The set of policies that is asked beside the one in force: started, watched, and ended (docs/spec.md, Policy). */

import { NO_LINEAGE } from '../core/audit/audit.ts';
import { OneByOne } from '../core/base/one-by-one.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import { messageOf } from '../core/base/text.ts';
import { rfc3339 } from '../core/base/time.ts';
import type { Fault } from '../core/fault.ts';
import { refuseUnlessAdminOfAll } from '../core/identity/access.ts';
import type { Principal } from '../core/identity/roles.ts';
import { addedCounts, NO_SHADOW_COUNTS, Shadow, type ShadowCounts } from '../core/policy/shadow.ts';
import type { PolicyText } from '../ports/cluster.ts';
import type { KeptShadow, ShadowCountStore, ShadowStore } from '../ports/policy-versions.ts';
import type { AuditLog, Clock } from '../ports/ports.ts';
import { type CompileTexts, refuseBound } from './policy-history.ts';

export const DEFAULT_SHADOW_SECS = 604_800;
export const MAX_SHADOW_SECS = 2_592_000;

export type StartedShadow = {
  readonly version: string;
  readonly documents: number;
  readonly expiresAtMs: number;
  readonly warnings: readonly string[];
};
export type ShadowStatus = Pick<KeptShadow, 'version' | 'sinceMs' | 'expiresAtMs' | 'by'> & ShadowCounts;

export type ShadowKeeperDeps = {
  readonly store: ShadowStore;
  readonly counts: ShadowCountStore;
  readonly compile: CompileTexts;
  /** From the next check on. Undefined: no check is compared any more. */
  readonly install: (shadow: Shadow | undefined) => void;
  readonly audit: AuditLog;
  readonly clock: Clock;
  /** Tells the other gateways of a cluster that there is another shadow, or none. */
  readonly announce: () => Promise<readonly string[]>;
  /** Fetches the counts of the other gateways. */
  readonly countsElsewhere: (version: string) => Promise<readonly ShadowCounts[]>;
  readonly onError: (error: unknown, doing: string) => void;
};

const NO_SHADOW = fail({ kind: 'not_found', what: 'shadow of the policies' } as const);
type Ending = 'stopped' | 'expired' | 'replaced';

export class ShadowKeeper {
  readonly #deps: ShadowKeeperDeps;
  #current: { readonly kept: KeptShadow; readonly shadow: Shadow } | undefined;
  #savedChecks = 0;
  readonly #changes = new OneByOne();

  constructor(deps: ShadowKeeperDeps) {
    this.#deps = deps;
  }

  /** The one that is asked here. */
  get kept(): KeptShadow | undefined {
    return this.#current?.kept;
  }

  /** Returns the counts of this gateway alone. */
  countsOf(version: string): ShadowCounts {
    return this.#current?.kept.version === version ? this.#current.shadow.counts() : NO_SHADOW_COUNTS;
  }

  async start(
    principal: Principal,
    texts: readonly PolicyText[],
    expiresInSecs: number,
  ): Promise<Result<StartedShadow, Fault> & { readonly unconfirmed?: readonly string[] }> {
    const refused = refuseUnlessAdminOfAll(principal);
    if (refused !== undefined) return refused;
    const compiled = await this.#deps.compile(texts);
    if (!compiled.ok) return fail({ kind: 'policy_invalid', problems: compiled.fault });
    const { policies, warnings } = compiled.value;
    const { version, documents } = policies.summary();
    const started = await this.#changes.run(async (): Promise<Result<KeptShadow, Fault>> => {
      const { store, audit, clock } = this.#deps;
      const sinceMs = Math.max(clock.nowMs(), (this.kept?.sinceMs ?? 0) + 1); // names it, beside its version
      const expiresAtMs = sinceMs + expiresInSecs * 1000;
      const rules = documents.reduce((sum, { ruleCount }) => sum + ruleCount, 0);
      const { subject: by } = principal;
      const kept: KeptShadow = { version, texts, sinceMs, expiresAtMs, by, documents: documents.length, rules };
      const before = await store.load();
      if (!before.ok) return before;
      const recorded = await audit.record({
        eventType: 'PolicyShadowStarted',
        lineage: NO_LINEAGE,
        actor: by,
        payload: { version, documents: documents.length, expires_at: rfc3339(expiresAtMs) },
      });
      if (!recorded.ok) return recorded;
      const saved = await store.save(kept);
      if (!saved.ok) return saved;
      if (before.value !== undefined) await this.#recordEnd(before.value, by, 'replaced');
      this.#install(kept, new Shadow(version, policies));
      return ok(kept);
    });
    if (!started.ok) return started;
    const { expiresAtMs } = started.value;
    const unconfirmed = await this.#deps.announce();
    return { ...ok({ version, documents: documents.length, expiresAtMs, warnings }), unconfirmed };
  }

  async status(principal: Principal): Promise<Result<ShadowStatus, Fault>> {
    const refused = refuseBound(principal);
    if (refused !== undefined) return refused;
    if (this.#current === undefined) return NO_SHADOW;
    const { kept, shadow } = this.#current;
    const { version, sinceMs, expiresAtMs, by } = kept;
    const counts = addedCounts([shadow.counts(), ...(await this.#deps.countsElsewhere(version))]);
    return ok({ version, sinceMs, expiresAtMs, by, ...counts });
  }

  async stop(principal: Principal): Promise<Result<void, Fault> & { readonly unconfirmed?: readonly string[] }> {
    const refused = refuseUnlessAdminOfAll(principal);
    if (refused !== undefined) return refused;
    const stopped = await this.#changes.run(() => this.#end(principal.subject, 'stopped'));
    return stopped.ok ? { ...ok(undefined), unconfirmed: await this.#deps.announce() } : stopped;
  }

  /** Takes over what is stored: at the start, and when another gateway has changed it. */
  follow(): Promise<Result<unknown, Fault>> {
    return this.#changes.run(async () => {
      const loaded = await this.#deps.store.load();
      if (!loaded.ok) return loaded;
      const kept = loaded.value;
      const known = this.kept;
      if (kept?.version === known?.version && kept?.sinceMs === known?.sinceMs) return ok(undefined);
      if (kept === undefined) return ok(this.#uninstall());
      const compiled = await this.#deps.compile(kept.texts);
      if (!compiled.ok) {
        this.#uninstall();
        return fail({ kind: 'policy_invalid', problems: compiled.fault });
      }
      const counts = this.#deps.counts.load(kept);
      this.#install(kept, new Shadow(kept.version, compiled.value.policies, counts));
      return ok(undefined);
    });
  }

  /** Call it now and then. */
  async endIfOver(): Promise<void> {
    const { clock, onError } = this.#deps;
    if (this.kept === undefined || clock.nowMs() < this.kept.expiresAtMs) return;
    const ended = await this.#changes.run(() => this.#end('gateway', 'expired'));
    if (!ended.ok) onError(new Error(ended.fault.kind), 'ending the shadow of the policies');
  }

  /** Before the store is closed. */
  async close(): Promise<void> {
    await this.#changes.run(async () => undefined);
    await this.saveCounts();
  }

  async #end(by: string, ending: Ending): Promise<Result<void, Fault>> {
    const { store, clock } = this.#deps;
    const stored = await store.load();
    if (!stored.ok) return stored;
    const kept = stored.value;
    if (kept === undefined) return ok(this.#uninstall());
    if (ending === 'expired' && clock.nowMs() < kept.expiresAtMs) return ok(undefined); // there is another one by now
    const removed = await store.remove(kept);
    if (!removed.ok) return removed;
    if (removed.value) {
      const recorded = await this.#recordEnd(kept, by, ending);
      if (!recorded.ok) return recorded;
    }
    return ok(this.#uninstall());
  }

  #recordEnd({ version }: KeptShadow, actor: string, ending: Ending) {
    const { checks, differing, errors } = this.countsOf(version);
    return this.#deps.audit.record({
      eventType: 'PolicyShadowEnded',
      lineage: NO_LINEAGE,
      actor,
      payload: { version, ending, checks, differing, errors },
    });
  }

  #install(kept: KeptShadow, shadow: Shadow): void {
    this.#current = { kept, shadow };
    this.#savedChecks = -1;
    this.#deps.install(shadow);
  }

  #uninstall(): void {
    this.#current = undefined;
    this.#deps.install(undefined);
  }

  /** Call it now and then: what a crash takes from the counts is what came since. */
  async saveCounts(): Promise<void> {
    if (this.#current === undefined) return;
    const { kept, shadow } = this.#current;
    const counts = shadow.counts();
    if (counts.checks + counts.errors === this.#savedChecks) return;
    try {
      await this.#deps.counts.save(kept, counts);
      this.#savedChecks = counts.checks + counts.errors;
    } catch (error) {
      this.#deps.onError(error, `keeping the counts of the shadow: ${messageOf(error)}`);
    }
  }
}

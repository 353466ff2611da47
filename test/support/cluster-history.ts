/**
 * The answers to clients of a cluster, and contradictions among them. Judged only by what is certain from outside, by
 * one clock that nobody sets: from when a request was sent, and from when its answer was there.
 */

/** `answeredMs` is undefined where no answer came: then it may have happened, or not. */
type Asked = { readonly askedMs: number; answeredMs?: number };

export type CheckCall = Asked & {
  readonly kind: 'check';
  readonly gateway: string;
  readonly org: string;
  /** Whose credential was presented. */
  readonly agent: string;
  readonly token: string;
  readonly cost: number;
  readonly opId: string;
  decision?: 'allow' | 'deny';
  auditId?: number;
};
/** Ends an operation that has spent nothing: what was reserved for it is free again. */
export type CompleteCall = Asked & { readonly kind: 'complete'; readonly opId: string };
/** An attempt to report spending. */
export type UsageCall = Asked & {
  readonly kind: 'usage';
  readonly org: string;
  readonly usageId: string;
  readonly cost: number;
};
/** From its answer on, no check that it covers may be allowed, but at gateways that it names as unconfirmed. */
export type StopCall = Asked & {
  readonly kind: 'halt' | 'revocation' | 'rotation' | 'pause';
  /** An org that is halted, an agent that is deregistered, a token that is replaced, or an operation that is paused. */
  readonly of: string;
  unconfirmed?: readonly string[];
  /** When its release was asked for. */
  releasedMs?: number;
};
/** Registrations at several gateways at once that one of at most may be good after: of one token, or of one agent. */
export type ContestCall = Asked & {
  readonly kind: 'contest';
  readonly of: 'token' | 'agent';
  readonly rivals: readonly { readonly agent: string; readonly token: string }[];
  /** How many of them were answered with success. */
  accepted?: number;
  unconfirmed?: readonly string[];
};
type Call = CheckCall | CompleteCall | UsageCall | StopCall | ContestCall;

/** Returns the part that a check must share with what was stopped. */
const STOPPED: Readonly<Record<StopCall['kind'], (check: CheckCall) => string>> = {
  halt: ({ org }) => org,
  revocation: ({ agent }) => agent,
  rotation: ({ token }) => token,
  pause: ({ opId }) => opId,
};

export class ClusterHistory {
  readonly calls: Call[] = [];

  add<C extends Call>(call: C): C {
    this.calls.push(call);
    return call;
  }

  of<K extends Exclude<Call, StopCall>['kind']>(kind: K): Extract<Call, { readonly kind: K }>[] {
    return this.calls.filter((call): call is Extract<Call, { readonly kind: K }> => call.kind === kind);
  }

  get stops(): readonly StopCall[] {
    return this.calls.filter((call): call is StopCall => call.kind in STOPPED);
  }

  /**
   * Moments at which more than the cap was certainly held: allowed and answered, and not given back before. Reported
   * spending stays held, as its reservation was.
   */
  overruns(org: string, cap: number): readonly string[] {
    const allowed = this.of('check').filter((call) => call.org === org && call.decision === 'allow');
    const costs = new Map(allowed.map(({ opId, cost }) => [opId, cost]));
    const moments = [
      ...allowed.map(({ answeredMs, cost }) => ({ atMs: answeredMs!, change: cost })),
      ...this.of('complete').map(({ askedMs, opId }) => ({ atMs: askedMs, change: -(costs.get(opId) ?? 0) })),
    ].sort((one, other) => one.atMs - other.atMs);
    let held = 0;
    const found: string[] = [];
    for (const { atMs, change } of moments) {
      held += change;
      if (change > 0 && held > cap) found.push(`${org} held ${held} of ${cap} at ${Math.round(atMs)} ms`);
    }
    return found;
  }

  /** The most that may be held or spent of an org's cap: what was not certainly denied or given back. */
  mayBeHeld(org: string): number {
    const givenBack = new Set(this.of('complete').flatMap(({ opId, answeredMs }) => (answeredMs ? [opId] : [])));
    return this.of('check')
      .filter((call) => call.org === org && call.decision !== 'deny' && !givenBack.has(call.opId))
      .reduce((sum, { cost }) => sum + cost, 0);
  }

  /** Checks that were allowed although they were asked after a halt, a revocation or a pause had been answered. */
  allowedAfterStop(): readonly string[] {
    const checks = this.of('check').filter(({ decision }) => decision === 'allow');
    return this.stops.flatMap(({ kind, of, answeredMs, unconfirmed = [], releasedMs = Infinity }) => {
      if (answeredMs === undefined) return [];
      return checks
        .filter((check) => STOPPED[kind](check) === of)
        .filter(({ askedMs, gateway }) => askedMs > answeredMs && !unconfirmed.includes(gateway))
        .filter((check) => (check.answeredMs ?? Infinity) < releasedMs)
        .map(({ opId, gateway }) => `${opId} was allowed at ${gateway} after the ${kind} of ${of}`);
    });
  }

  /** Contests with more than one winner. */
  wonTwice(): readonly string[] {
    const checks = this.of('check').filter(({ decision }) => decision === 'allow');
    return this.of('contest').flatMap(({ of, rivals, accepted = 0, answeredMs, unconfirmed = [] }) => {
      const names = rivals.map(({ agent, token }) => `${agent} by ${token}`).join(' and ');
      if (of === 'token' && accepted > 1) return [`${names} were both accepted`];
      if (answeredMs === undefined) return [];
      const after = checks.filter(({ askedMs, gateway }) => askedMs > answeredMs && !unconfirmed.includes(gateway));
      const good = rivals.filter((rival) =>
        after.some((each) => each.agent === rival.agent && each.token === rival.token),
      );
      return good.length > 1 ? [`${names} were both allowed afterwards`] : [];
    });
  }

  /** Answered decisions that are in no log, or in another place than the answer said. `logs`: op ids by audit id. */
  unrecorded(logs: ReadonlyMap<string, ReadonlyMap<number, string | null>>): readonly string[] {
    return this.of('check')
      .filter(({ auditId }) => auditId !== undefined)
      .filter(({ gateway, auditId, opId }) => logs.get(gateway)?.get(auditId!) !== opId)
      .map(({ opId, gateway, auditId }) => `${opId} is not entry ${auditId} of ${gateway}`);
  }

  /**
   * Between what the ledger must have for an org. The least: every id that was answered, once. The most: once more for
   * each further attempt that was cut off, since a gateway may die between counting and answering.
   */
  spendBounds(org: string): { readonly least: number; readonly most: number } {
    const byId = new Map<string, { cost: number; answered: boolean; cutOff: number }>();
    for (const { usageId, cost, answeredMs } of this.of('usage').filter((call) => call.org === org)) {
      const known = byId.get(usageId) ?? { cost, answered: false, cutOff: 0 };
      byId.set(usageId, known);
      if (answeredMs === undefined) known.cutOff += 1;
      else known.answered = true;
    }
    let [least, most] = [0, 0];
    for (const { cost, answered, cutOff } of byId.values()) {
      least += answered ? cost : 0;
      most += cost * (cutOff + (answered ? 1 : 0));
    }
    return { least, most };
  }
}

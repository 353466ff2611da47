/** Recorded checks, decided again beside the live ones (docs/spec.md, Policy). */

import type { AuditFilter } from '../core/audit/audit.ts';
import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import { refuseUnlessAdminOfAll } from '../core/identity/access.ts';
import type { Principal } from '../core/identity/roles.ts';
import { CHECK_EVENTS, type ReplayResult } from '../core/policy/replay.ts';
import type { LogPiece, PolicyText } from '../ports/cluster.ts';

/** Decides by one set of policies, away from what answers checks. Everything rejects once it has ended. */
export type ReplayEngine = {
  open(texts: readonly PolicyText[]): Promise<Result<void, readonly string[]>>;
  extent(filter: AuditFilter): Promise<number>;
  /** Reads the log here. `onRead` is told how many entries were looked at. */
  read(filter: AuditFilter, onRead: (entries: number) => void): Promise<void>;
  /** Entries of another gateway, one a line. */
  add(lines: string): Promise<void>;
  result(): Promise<ReplayResult>;
  end(): Promise<void>;
};

/** The log of another gateway of the cluster, newest first. */
export type OtherLog = {
  readonly name: string;
  /** Whether it can be read now. */
  answers(): Promise<boolean>;
  read(filter: AuditFilter, before: number | undefined): Promise<Result<LogPiece, Fault>>;
};

/** `ticket` names the replay; nobody else knows it. */
export type ReplayRequest = {
  readonly ticket: string;
  readonly set: { readonly texts: readonly PolicyText[] } | { readonly version: string };
  readonly filter: Pick<AuditFilter, 'orgId' | 'teamId' | 'agentId' | 'sinceMs' | 'untilMs'>;
};

export type ReplayProgress = { readonly read: number; readonly total: number };
export type ReplayNews =
  | { readonly kind: 'progress'; readonly progress: ReplayProgress }
  | { readonly kind: 'result'; readonly result: ReplayResult };

type CallOff = () => void;

export type ReplayKeeperDeps = {
  readonly textsOf: (version: string) => Promise<Result<readonly PolicyText[], Fault>>;
  readonly openEngine: () => ReplayEngine;
  readonly otherLogs: () => readonly OtherLog[];
  /** Acts after so many milliseconds, unless it is called off before. */
  readonly later: (ms: number, act: () => void) => CallOff;
  readonly onError: (error: unknown, doing: string) => void;
  readonly limits?: Partial<ReplayLimits>;
};

export type ReplayLimits = {
  /** How often who waits is told how far it is. */
  readonly newsMs: number;
  /** A replay that nobody has asked about for this long has lost its caller. */
  readonly idleMs: number;
  readonly overallMs: number;
};
const LIMITS: ReplayLimits = { newsMs: 500, idleMs: 30_000, overallMs: 15 * 60_000 };

type Run = {
  readonly ticket: string;
  readonly by: string;
  readonly engine: ReplayEngine;
  readonly overall: CallOff;
  idle: CallOff | undefined;
  progress: ReplayProgress;
  work: Promise<Result<ReplayResult, Fault>>;
};

const NO_REPLAY = fail({ kind: 'not_found', what: 'replay, which has been ended,' } as const);

export class ReplayKeeper {
  readonly #deps: ReplayKeeperDeps;
  readonly #limits: ReplayLimits;
  #run: Run | undefined;

  constructor(deps: ReplayKeeperDeps) {
    this.#deps = deps;
    this.#limits = { ...LIMITS, ...deps.limits };
  }

  /** Answers which gateways of the cluster are left out. Faults: `conflict` during another one, `policy_invalid`. */
  async start(
    principal: Principal,
    { ticket, set, filter }: ReplayRequest,
  ): Promise<Result<{ readonly incomplete: readonly string[] }, Fault>> {
    const refused = refuseUnlessAdminOfAll(principal);
    if (refused !== undefined) return refused;
    const texts = 'texts' in set ? ok(set.texts) : await this.#deps.textsOf(set.version);
    if (!texts.ok) return texts;
    if (this.#run !== undefined)
      return fail({
        kind: 'conflict',
        detail: `this gateway replays already, for ${this.#run.by}; try again when that has ended`,
      });
    const run = this.#open(ticket, principal.subject);
    try {
      const opened = await run.engine.open(texts.value);
      if (!opened.ok) {
        this.#end(run);
        return fail({ kind: 'policy_invalid', problems: opened.fault });
      }
      const others = this.#deps.otherLogs();
      const answers = await Promise.all(others.map((other) => other.answers()));
      if (!this.#isGoingOn(run)) return NO_REPLAY;
      const asked = { ...filter, eventTypes: CHECK_EVENTS };
      const readable = others.filter((_, at) => answers[at] === true);
      run.work = this.#work(run, asked, readable).catch((error: unknown) => this.#failed(run, error));
      this.#keep(run);
      return ok({ incomplete: others.flatMap(({ name }, at) => (answers[at] === true ? [] : [name])) });
    } catch (error) {
      return this.#failed(run, error);
    }
  }

  /** How far it is, half a second later, or its result, once. */
  async next(ticket: string): Promise<Result<ReplayNews, Fault>> {
    const run = this.#run;
    if (run?.ticket !== ticket) return NO_REPLAY;
    this.#keep(run);
    let callOff: CallOff | undefined;
    const soon = new Promise<undefined>((resolve) => {
      callOff = this.#deps.later(this.#limits.newsMs, () => resolve(undefined));
    });
    const worked = await Promise.race([run.work, soon]);
    callOff?.();
    if (worked === undefined) return ok({ kind: 'progress', progress: run.progress });
    this.#end(run);
    return worked.ok ? ok({ kind: 'result', result: worked.value }) : worked;
  }

  /** Ends the replay of a caller that has gone. */
  leave(ticket: string): void {
    if (this.#run?.ticket === ticket) this.#end(this.#run);
  }

  async close(): Promise<void> {
    const run = this.#run;
    if (run === undefined) return;
    this.#end(run);
    await run.engine.end();
  }

  #open(ticket: string, by: string): Run {
    const run: Run = {
      ticket,
      by,
      engine: this.#deps.openEngine(),
      overall: this.#deps.later(this.#limits.overallMs, () => this.#end(run)),
      idle: undefined,
      progress: { read: 0, total: 0 },
      work: Promise.resolve(NO_REPLAY),
    };
    this.#run = run;
    return run;
  }

  #keep(run: Run): void {
    run.idle?.();
    run.idle = this.#deps.later(this.#limits.idleMs, () => this.#end(run));
  }

  #end(run: Run): void {
    run.overall();
    run.idle?.();
    if (this.#isGoingOn(run)) this.#run = undefined;
    run.engine.end().catch((error: unknown) => this.#deps.onError(error, 'ending a replay of policies'));
  }

  #isGoingOn(run: Run): boolean {
    return this.#run === run;
  }

  /** A replay that was ended fails for that reason alone. */
  #failed(run: Run, error: unknown): Result<never, Fault> {
    if (!this.#isGoingOn(run)) return NO_REPLAY;
    this.#deps.onError(error, 'replaying recorded checks');
    this.#end(run);
    return fail({ kind: 'internal' });
  }

  async #work(run: Run, filter: AuditFilter, others: readonly OtherLog[]): Promise<Result<ReplayResult, Fault>> {
    const { engine } = run;
    run.progress = { read: 0, total: await engine.extent(filter) };
    await engine.read(filter, (entries) => advance(run, entries));
    for (const other of others) {
      const read = await readOther(run, filter, other);
      if (!read.ok) return read;
    }
    run.progress = { read: run.progress.read, total: run.progress.read };
    return ok(await engine.result());
  }
}

function advance(run: Run, entries: number, more = 0): void {
  const read = run.progress.read + entries;
  run.progress = { read, total: Math.max(read, run.progress.total + more) };
}

/** Counted by ids: how many of its entries match, nobody has said. */
async function readOther(run: Run, filter: AuditFilter, other: OtherLog): Promise<Result<void, Fault>> {
  let left: number | undefined;
  let before: number | undefined;
  do {
    const piece = await other.read(filter, before);
    if (!piece.ok) return piece;
    const { text } = piece.value;
    before = piece.value.before;
    const newest = left ?? Number(/^\{"id":(\d+)/.exec(text)?.[1] ?? before ?? 0);
    if (left === undefined) advance(run, 0, newest);
    left = before ?? 0;
    await run.engine.add(text);
    advance(run, Math.max(0, newest - left));
  } while (before !== undefined);
  return ok(undefined);
}

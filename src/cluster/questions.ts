import { fail, ok, type Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type {
  Answer,
  Asked,
  Bus,
  ClusterMessage,
  Gathered,
  Member,
  Membership,
  NoAnswer,
  Peers,
  QuestionKind,
  RunId,
} from '../ports/cluster.ts';
import type { Clock } from '../ports/ports.ts';
import { within } from '../system/clock.ts';

export type ClusterPeersOptions = {
  readonly bus: Bus;
  readonly membership: Membership;
  /** The time of the database. */
  readonly clock: Clock;
  /** Questions that may wait for answers at once. */
  readonly maxAsked?: number;
  readonly onError: (error: unknown, doing: string) => void;
};

type AskMessage = Extract<ClusterMessage, { type: 'ask' }>;
type AnswerMessage = Extract<ClusterMessage, { type: 'answer' }>;
type Server = (asked: never, from: Member) => Promise<unknown>;

/** How long an answer is waited for. An order is answered once all have confirmed it, for which they have a second. */
const WITHIN_MS = 1_000;
const ORDER_WITHIN_MS = 2_500;
/** Others may take longer: to stop a hundred thousand operations, to compile a set of policies. */
const LONGER: Readonly<Partial<Record<QuestionKind, number>>> = {
  order: ORDER_WITHIN_MS,
  halted: 10_000,
  prepare: 30_000,
  /** Whether an operation is there: of one that is stopped, it is not known. */
  whose: 250,
};
/** Two gateways know the time of the database with different exactness. */
const CLOCKS_DIFFER_MS = 250;
const MAX_ASKED = 10_000;
/** Questions that are being answered. */
const MAX_ANSWERING = 10_000;
const MAX_STRANGERS = 1_000;

const OVERLOADED: Result<never, Fault> = fail({
  kind: 'overloaded',
  retryAfterSecs: 1,
  what: 'the number of questions to other gateways',
});

/** A question that waits: whose answers are missing, and what to do with each. */
type Waiting = {
  readonly missing: Set<RunId>;
  /** Suspects most likely cannot answer: nobody waits for them where others are asked too. */
  readonly isForSuspects: boolean;
  readonly take: (from: RunId, message: AnswerMessage) => void;
  readonly done: () => void;
};

/**
 * Questions between gateways, over a bus that may lose them. Each is answered once or not at all, within a second; an
 * answer that comes later, or again, is dropped, and so is a question that comes too late.
 */
export class ClusterPeers implements Peers {
  readonly #options: ClusterPeersOptions;
  readonly #servers = new Map<string, Server>();
  readonly #waiting = new Map<number, Waiting>();
  /** Runs that are not members, as the database has said: replaced ones that do not know it yet. */
  readonly #strangers = new Set<RunId>();
  #answering = 0;
  #lastId = 0;
  /** Called once nothing is being answered any more; undefined: this gateway goes on. */
  #onIdle: (() => void) | undefined;

  constructor(options: ClusterPeersOptions) {
    this.#options = options;
    options.bus.onMessage((from, message) => {
      if (message.type === 'ask') void this.#serve(from, message);
      else if (message.type === 'answer') this.#waiting.get(message.id)?.take(from, message);
    });
    options.membership.onChange(() => this.#recount());
  }

  /** Answers nothing new. Resolves when what is being answered is, or the time is over. */
  async stop(): Promise<void> {
    const idle = new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
    if (this.#answering > 0) await within(ORDER_WITHIN_MS, idle);
  }

  /** How many questions wait for answers: for the metrics. */
  get asked(): number {
    return this.#waiting.size;
  }

  get #isFull(): boolean {
    return this.#waiting.size >= (this.#options.maxAsked ?? MAX_ASKED);
  }

  serve<K extends QuestionKind>(kind: K, answer: (asked: Asked<K>, from: Member) => Promise<Answer<K>>): void {
    this.#servers.set(kind, answer as Server);
  }

  async ask<K extends QuestionKind>(to: RunId, kind: K, asked: Asked<K>): Promise<Result<Answer<K>, Fault>> {
    if (this.#isFull) return OVERLOADED;
    const member = this.#memberOf(to);
    let answered: AnswerMessage | undefined;
    if (member !== undefined)
      await this.#sent(to, kind, asked, [to], (_, message) => {
        answered = message;
      });
    if (answered?.none === 'overloaded') return OVERLOADED;
    if (answered === undefined || answered.none !== undefined)
      return fail({ kind: 'unreachable_gateway', gateway: member?.name ?? to, retryAfterSecs: 1 });
    return ok(answered.answer as Answer<K>);
  }

  async askAll<K extends QuestionKind>(
    kind: K,
    asked: Asked<K>,
    isEnough: (answer: Answer<K>, from: Member) => boolean = () => false,
    without: readonly string[] = [],
  ): Promise<Result<Gathered<K>, Fault>> {
    if (this.#isFull) return OVERLOADED;
    const members = this.#options.membership.others().filter(({ name }) => !without.includes(name));
    const answers: { readonly from: Member; readonly answer: Answer<K> }[] = [];
    const runs = members.map(({ run }) => run);
    await this.#sent('all', kind, asked, runs, (run, { answer, none }) => {
      const from = members.find((member) => member.run === run);
      if (none !== undefined || from === undefined) return false;
      answers.push({ from, answer: answer as Answer<K> });
      return isEnough(answer as Answer<K>, from);
    });
    const missing = members.filter((member) => !answers.some(({ from }) => from === member)).map(({ name }) => name);
    return ok({ answers, missing });
  }

  /** Resolves when all have answered that are waited for, when `take` answers true, or when its time is over. */
  #sent(
    to: RunId | 'all',
    kind: QuestionKind,
    asked: unknown,
    runs: readonly RunId[],
    take: (from: RunId, message: AnswerMessage) => boolean | void,
  ): Promise<void> {
    const { bus } = this.#options;
    this.#lastId += 1;
    const id = this.#lastId;
    const withinMs = LONGER[kind] ?? WITHIN_MS;
    const untilMs = this.#options.clock.nowMs() + withinMs;
    if (runs.length === 0 || !bus.send(to, { type: 'ask', id, kind, asked, untilMs })) return Promise.resolve();
    return new Promise((resolve) => {
      const missing = new Set(runs);
      const done = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(id);
        resolve();
      };
      const timer = setTimeout(done, withinMs);
      const takeOne = (from: RunId, message: AnswerMessage): void => {
        if (!missing.delete(from)) return; // answered already, or never asked
        if (take(from, message) === true) done();
        else this.#endIfOver(waiting);
      };
      const waiting: Waiting = { missing, isForSuspects: to !== 'all', take: takeOne, done };
      this.#waiting.set(id, waiting);
      this.#endIfOver(waiting);
    });
  }

  /** Runs that have ended do not answer any more. */
  #recount(): void {
    const others = this.#options.membership.others();
    for (const waiting of this.#waiting.values()) {
      for (const run of waiting.missing) if (!others.some((other) => other.run === run)) waiting.missing.delete(run);
      this.#endIfOver(waiting);
    }
  }

  #endIfOver({ missing, isForSuspects, done }: Waiting): void {
    const others = this.#options.membership.others();
    if (!others.some(({ run, state }) => (isForSuspects || state === 'live') && missing.has(run))) done();
  }

  async #serve(from: RunId, { id, kind, asked, untilMs }: AskMessage): Promise<void> {
    const { bus, onError } = this.#options;
    const refuse = (none: NoAnswer): void => void bus.send(from, { type: 'answer', id, none });
    if (this.#answering >= MAX_ANSWERING || this.#onIdle !== undefined) return refuse('overloaded');
    this.#answering += 1;
    try {
      const member = this.#memberOf(from) ?? (await this.#newMember(from));
      // Questions of a replaced run no longer count; and the askers of late ones have been told that nobody knows.
      if (member === undefined || this.#options.clock.nowMs() > untilMs + CLOCKS_DIFFER_MS) return;
      const server = this.#servers.get(kind);
      if (server === undefined) return refuse('unknown_kind');
      const answer = await server(asked as never, member);
      if (!bus.send(from, { type: 'answer', id, answer }) && bus.isConnected) refuse('too_large');
    } catch (error) {
      onError(error, `answering ${kind} of another gateway`);
      refuse('failed');
    } finally {
      this.#noteAnswered();
    }
  }

  #noteAnswered(): void {
    this.#answering -= 1;
    if (this.#answering === 0) this.#onIdle?.();
  }

  #memberOf(run: RunId): Member | undefined {
    return this.#options.membership.others().find((member) => member.run === run);
  }

  /** Returns a member that has joined since the last beat; undefined if there is none. */
  async #newMember(run: RunId): Promise<Member | undefined> {
    if (this.#strangers.has(run)) return undefined;
    await this.#options.membership.lookAgain();
    const member = this.#memberOf(run);
    if (member === undefined && this.#strangers.size < MAX_STRANGERS) this.#strangers.add(run);
    return member;
  }
}

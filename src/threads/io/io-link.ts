import { networkOf } from '../../core/base/client-address.ts';
import type { AgentIdentity, SecretDigest } from '../../core/base/ids.ts';
import { fail } from '../../core/base/result.ts';
import type { CheckCommand, Command, CommandOf, CommandType, Replies } from '../../core/commands.ts';
import type { Fault } from '../../core/fault.ts';
import type { Principal } from '../../core/identity/roles.ts';
import { Durations } from '../../core/stats/durations.ts';
import { KnownCredentials } from '../../credentials/known-credentials.ts';
import { CallerQuota } from '../../fairness/fair-queue.ts';
import type { InputOf, Link, Origin, Recorded, ReplyOf, UseCaseName } from '../../use-cases/use-cases.ts';
import { Batcher } from '../batcher.ts';
import type { IoToMain, MainToDoors, Reply } from '../protocol.ts';
import type { IoChannel } from './io-channel.ts';
import { Pending } from './pending.ts';

/** Messages of the main thread that are about no request of this thread. */
export type Notification = Exclude<MainToDoors, Reply | { readonly type: 'locate' }>;

export type IoLinkOptions = {
  /** Most requests waiting for an answer; further ones are refused at once. An org may have half of them. */
  readonly maxPending: number;
  /** See `Link`. */
  readonly home?: string | undefined;
  /** Receives every message of the main thread that is not a reply. */
  readonly onMessage: (message: Notification) => void;
};

type Elsewhere = Extract<Reply, { type: 'command-reply' }>['elsewhere'];

/** In place of the time of asking, for requests whose duration nobody measures. */
const UNTIMED = 0;

type Settle = (recorded: Recorded<unknown>) => void;

/** Who a request is from. */
type Asked = {
  readonly principal?: Principal | undefined;
  readonly bearer?: string;
  readonly agent?: AgentIdentity;
  readonly credential?: SecretDigest | undefined;
};

const REFUSED: Recorded<unknown> = {
  reply: fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'the gateway' } as const),
  auditId: undefined,
};

/**
 * All agents unknown to this thread share one quota (no org has this name). Counted towards the org they claim, they
 * could use up its quota.
 */
const STRANGERS = '/';
/**
 * Waiting requests with unverified bearers, which may be invalid. Separate, so that neither group crowds out the other.
 */
const BEARERS = '/bearers';

/** The doors' end of a channel: sends requests to what decides them, and takes the replies. */
export class IoLink implements Link {
  readonly #channel: IoChannel;
  readonly #batcher: Batcher<IoToMain>;
  readonly #waiting = new Pending<Settle, Origin>();
  readonly #options: IoLinkOptions;
  /**
   * Requests up to this number are not counted by org, so light load pays nothing for fairness. Beyond it, the quota of
   * an org is half of all.
   */
  #openPlaces: number;
  readonly #quota: CallerQuota;
  readonly #credentials = new KnownCredentials();
  /** From asking to the answer. */
  readonly checks = new Durations();
  /** When the batch that waits to be sent was begun: all of its checks share one look at the clock. */
  #batchMs = 0;
  #refused = 0;
  /** Answers every request at once, from `refuseAll` on; undefined before. */
  #finalAnswer: Recorded<unknown> | undefined;

  constructor(channel: IoChannel, options: IoLinkOptions) {
    this.#channel = channel;
    this.#options = options;
    this.#openPlaces = Math.ceil(options.maxPending / 4);
    this.#quota = new CallerQuota(2 * this.#openPlaces);
    this.#batcher = new Batcher(channel.outlet);
    channel.deliverTo({
      receive: (messages) => this.#receive(messages),
      release: (firstId, replies) => this.#release(firstId, replies),
    });
  }

  get home(): string | undefined {
    return this.#options.home;
  }

  ownerOf(credential: SecretDigest): AgentIdentity | undefined {
    return this.#finalAnswer === undefined ? this.#channel.ownerOf?.(credential) : undefined;
  }

  get pending(): number {
    return this.#waiting.size;
  }

  /** How many requests were refused because too many waited. */
  get refused(): number {
    return this.#refused;
  }

  ask<T extends CommandType>(
    command: CommandOf<T> & { readonly type: T },
    origin?: Origin,
  ): Promise<Recorded<Replies[T]>> {
    const isFirst = this.#batcher.isEmpty;
    if (isFirst) this.#batchMs = performance.now();
    const learnsFrom = this.#learnsFrom(command, isFirst);
    const asked = this.#request(
      command,
      (id) => ({ type: 'command', id, command }),
      command.type === 'check' ? this.#batchMs : UNTIMED,
      origin,
    );
    if (learnsFrom)
      void (asked as Promise<Recorded<Replies['check']>>).then(({ reply }) =>
        this.#learn(command as CheckCommand, reply),
      );
    return asked as Promise<Recorded<Replies[T]>>;
  }

  async call<N extends UseCaseName>(name: N, input: InputOf<N>): Promise<ReplyOf<N>> {
    const { reply } = await this.#request(input, (id) => ({ type: 'call', id, name, input }));
    return reply as ReplyOf<N>;
  }

  /** Sends a message that has no answer. */
  notify(message: Exclude<IoToMain, { readonly type: 'command' | 'call' }>): void {
    this.#batcher.send(message);
  }

  /**
   * Answers every waiting request with this fault, and every later one too: otherwise the rest of a batch would wait
   * forever. Replies that still come are dropped.
   */
  refuseAll(fault: Fault): void {
    this.#finalAnswer = { reply: fail(fault), auditId: undefined };
    this.#openPlaces = 0; // from now on every request takes the path that looks at it
    for (const settle of this.#waiting.takeAll()) settle(this.#finalAnswer);
  }

  #request(
    asked: object,
    messageOf: (id: number) => IoToMain,
    askedMs = UNTIMED,
    origin?: Origin,
  ): Promise<Recorded<unknown>> {
    if (this.#waiting.size >= this.#openPlaces)
      return this.#requestWithinQuota(this.#orgOf(asked), messageOf, askedMs, origin);
    return new Promise((resolve) => this.#batcher.send(messageOf(this.#waiting.add(resolve, askedMs, origin))));
  }

  #requestWithinQuota(
    orgId: string | null,
    messageOf: (id: number) => IoToMain,
    askedMs: number,
    origin: Origin | undefined,
  ): Promise<Recorded<unknown>> {
    if (this.#finalAnswer !== undefined) return Promise.resolve(this.#finalAnswer);
    if (this.#waiting.size >= this.#options.maxPending || !this.#quota.tryAcquire(orgId)) {
      this.#refused += 1;
      return Promise.resolve(REFUSED);
    }
    return new Promise((resolve) => {
      const settle: Settle = (recorded) => {
        this.#quota.release(orgId);
        resolve(recorded);
      };
      this.#batcher.send(messageOf(this.#waiting.add(settle, askedMs, origin)));
    });
  }

  /** The org of the credential; null where none is bound to an org, or none is needed. */
  #orgOf({ principal, bearer, agent, credential }: Asked): string | null {
    if (principal !== undefined) return principal.orgId;
    if (bearer !== undefined) return BEARERS;
    if (agent === undefined && credential === undefined) return null;
    return this.#credentials.orgOf(credential) ?? STRANGERS;
  }

  /**
   * Whether to learn from the answer which org the credential belongs to. The first check of each batch is enough to
   * know, sooner or later, whoever is busy here; when places are scarce, every check is used.
   */
  #learnsFrom(command: Command, isFirst: boolean): boolean {
    if (command.type !== 'check') return false;
    return (
      this.#waiting.size >= this.#openPlaces || (isFirst && this.#credentials.orgOf(command.credential) === undefined)
    );
  }

  /** Notes whether the credential was valid: only then is there an operation. */
  #learn({ credential, agent, dryRun }: CheckCommand, reply: Replies['check']): void {
    if (credential === undefined || !reply.ok || dryRun) return;
    if (reply.value.opState === undefined) this.#credentials.forget(credential);
    else this.#credentials.add(credential, agent.orgId);
  }

  #receive(messages: readonly MainToDoors[]): void {
    const nowMs = performance.now();
    for (const message of messages) {
      if (message.type === 'command-reply')
        this.#settle(message.id, message.reply, undefined, nowMs, message.elsewhere);
      else if (message.type === 'call-reply') this.#settle(message.id, message.reply, undefined, nowMs);
      else if (message.type === 'locate') this.#locate(message.id);
      else this.#options.onMessage(message);
    }
  }

  /** Answered whatever has become of the request: the main thread keeps it until then. */
  #locate(id: number): void {
    const address = this.#waiting.originOf(id)?.address ?? '';
    this.notify({ type: 'located', id, network: address === '' ? '' : networkOf(address) });
  }

  #release(firstId: number, replies: readonly MainToDoors[]): void {
    const nowMs = performance.now();
    for (const message of replies) {
      if (message.type === 'command-reply')
        this.#settle(message.id, message.reply, firstId + message.auditIndex, nowMs);
    }
  }

  #settle(id: number, reply: unknown, auditId: number | undefined, nowMs: number, elsewhere?: Elsewhere): void {
    const askedMs = this.#waiting.markOf(id);
    const settle = this.#waiting.take(id);
    if (settle === undefined) return;
    if (askedMs !== UNTIMED) this.checks.add(nowMs - askedMs);
    settle(elsewhere === undefined ? { reply, auditId } : { reply, ...elsewhere });
  }
}

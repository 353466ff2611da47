import { type AgentIdentity, agentKeyOf, type OpId, type SecretDigest } from '../core/base/ids.ts';
import { assert, fail, ok, type Result } from '../core/base/result.ts';
import type { Command, CommandOf, CommandType, Replies } from '../core/commands.ts';
import type { Fault } from '../core/fault.ts';
import type { OpView } from '../core/ops/op-view.ts';
import type { OpsRegistry } from '../core/ops/ops.ts';
import type { Decided, Membership, Peers, RunId, Unconfirmed } from '../ports/cluster.ts';
import type { Clock } from '../ports/ports.ts';
import { gatherOps } from './op-listing.ts';
import { PerSecond } from './per-second.ts';
import { homeOf } from './run.ts';

/** Finds agents that another gateway has registered. Calls back when a token that is one's is known here. */
export type AgentLookup = {
  isUnknown(credential: SecretDigest): boolean;
  lookFor(credential: SecretDigest, done: () => void): void;
};

/** Locates the entry of an answer, and its operation. */
export type Elsewhere = { readonly home: string; readonly auditId: number | undefined };

export type RoutingOptions = {
  readonly peers: Peers;
  readonly membership: Membership;
  readonly ops: Pick<OpsRegistry, 'find' | 'findAll' | 'ownerOf'>;
  readonly lookup: AgentLookup;
  /** The number under which the other gateways ask: what comes from there is decided here. */
  readonly peersIo: number;
  /** Decides a command here, as one that another gateway has sent. */
  readonly decideHere: (command: Command) => Promise<Decided>;
  /**
   * An order to an operation that nobody has who answers: its gateway is one of those that are `away`, or has ended.
   * Undefined where nothing is known of it.
   */
  readonly orderAbsent: (command: CommandOf<'control-op'>, away: readonly string[]) => Promise<OpReply | undefined>;
  /** Leaves an order that is carried out already for gateways that may have a part of the operation, too. */
  readonly leaveOrder: (command: CommandOf<'control-op'>, away: readonly string[]) => Promise<readonly string[]>;
  /** Has a command decided here that had to wait. */
  readonly resume: (io: number, id: number, command: Command) => void;
  readonly answer: (io: number, id: number, reply: Replies[CommandType], elsewhere: Elsewhere | undefined) => void;
  readonly steadyMs: () => number;
  /** The time of the database. */
  readonly clock: Clock;
  readonly warn: (message: string) => void;
  readonly onError: (error: unknown, doing: string) => void;
};

type Answered = { readonly reply: Replies[CommandType]; readonly elsewhere?: Elsewhere | undefined };
/** An agent's message about an operation of its own. */
type Followup = CommandOf<'complete-op' | 'ack-signal' | 'record-usage'>;
type OfOperator = CommandOf<'get-op' | 'control-op'>;
type OpReply = Replies['get-op'] & Unconfirmed;

/** Beyond that, whoever has an operation is not asked for. */
const ASK_ALL_PER_SECOND = 2_000;
const WARN_EVERY_MS = 60_000;
/** A gateway whose lease has been over for so long is taken for dead if nobody says that an operation lives there. */
const MAY_RETURN_MS = 30_000;
/** Commands that another gateway may have decided here. */
const DECIDED_FOR_OTHERS: ReadonlySet<CommandType> = new Set([
  'check',
  'complete-op',
  'ack-signal',
  'record-usage',
  'get-op',
  'control-op',
  'list-ops',
  'list-agents',
  'topology-overview',
  'topology-tree',
  'topology-stats',
  'topology-team',
  'topology-lineage',
  'list-budgets',
  'list-halts',
  'list-approvals',
] satisfies readonly CommandType[]);

const TOO_MANY: Result<never, Fault> = fail({
  kind: 'overloaded',
  retryAfterSecs: 1,
  what: 'the number of requests without op_home that concern operations at other gateways',
});
const INTERNAL: Result<never, Fault> = fail({ kind: 'internal' });

/**
 * Which gateway decides a command. An operation lives where it began; what concerns it is passed on to there, once, and
 * its answer comes back from there.
 */
export class Routing {
  readonly #options: RoutingOptions;
  readonly #home: string;
  readonly #allowance = new PerSecond(ASK_ALL_PER_SECOND);
  #warnedAtMs = Number.NEGATIVE_INFINITY;
  /** Commands that were passed on, since the start: for the metrics. */
  passedOn = 0;

  constructor(options: RoutingOptions) {
    this.#options = options;
    this.#home = homeOf(options.membership.self);
    for (const kind of ['decide', 'order', 'whose'] as const)
      options.peers.serve(kind, ({ command, ifKnown }) => this.#decideForOther(command, ifKnown));
  }

  /** Whether the command is answered otherwise or later; else it is decided here, now. */
  divert(io: number, id: number, command: Command): boolean {
    const { lookup, peersIo, resume } = this.#options;
    const isOwn = io !== peersIo;
    if (command.type !== 'register-agent' && 'credential' in command) {
      const { credential } = command;
      if (credential !== undefined && lookup.isUnknown(credential)) {
        lookup.lookFor(credential, () => {
          if (!isOwn || !this.#isRouted(io, id, command)) resume(io, id, command);
        });
        return true;
      }
    }
    return isOwn && this.#isRouted(io, id, command);
  }

  async #decideForOther(command: Command, ifKnown: boolean | 'of_anyone'): Promise<Decided> {
    assert(DECIDED_FOR_OTHERS.has(command.type), `${command.type} is decided where it arrives`);
    if (ifKnown !== false && !this.#isKnownHere(command, ifKnown === 'of_anyone')) return {};
    this.passedOn += 1;
    // A cursor of undefined is lost on the way, but its place says that this is a listing.
    return this.#options.decideHere('perPage' in command ? { ...command, cursor: command.cursor } : command);
  }

  #isKnownHere(command: Command, isOfAnyone: boolean): boolean {
    const { ops } = this.#options;
    if (!('opId' in command) || command.opId === undefined) return false;
    if (command.type === 'get-op' || command.type === 'control-op') return ops.findAll(command.opId).length > 0;
    if (!('agent' in command)) return false;
    return isOfAnyone
      ? ops.find(command.opId, command.agent.orgId) !== undefined
      : this.#isOwnHere(command.agent, command.opId);
  }

  /** Another agent may have an operation of the same id at another gateway. */
  #isOwnHere(agent: AgentIdentity, opId: OpId): boolean {
    const { ops } = this.#options;
    const slot = ops.find(opId, agent.orgId);
    return slot !== undefined && ops.ownerOf(slot).key === agentKeyOf(agent);
  }

  #isRouted(io: number, id: number, command: Command): boolean {
    switch (command.type) {
      case 'check': {
        if (command.home === undefined || command.home === this.#home) return false;
        const run = this.#runOf(command.home);
        // An operation of an ended run is gone, and the check begins a new one here.
        if (run === undefined || !this.#isVouchedFor(command)) return false;
        return this.#answerWith(io, id, command, () => this.#passOn(run, command));
      }
      case 'complete-op':
      case 'ack-signal':
      case 'record-usage': {
        const { opId } = command;
        if (opId === undefined || this.#isAlone || this.#isOwnHere(command.agent, opId)) return false;
        if (!this.#isVouchedFor(command)) return false;
        return this.#answerWith(io, id, command, () => this.#followUp(command));
      }
      case 'get-op':
      case 'control-op':
        if (this.#isAlone && command.home === undefined) return false;
        return this.#answerWith(io, id, command, () => this.#ofOperator(command));
      case 'list-ops':
        return this.#answerWith(io, id, command, async () => ({ reply: await this.#listOps(command) }));
      default:
        return this.#isRoutedPage(io, id, command);
    }
  }

  /** The next page is at the gateway that had the one before: places in its registries are its own. */
  #isRoutedPage(io: number, id: number, command: Command): boolean {
    if (!('cursor' in command) || command.cursor === undefined) return false;
    const [home, rest] = command.cursor.split('.');
    const run = rest === undefined || home === undefined || home === this.#home ? undefined : this.#runOf(home);
    if (run === undefined) return false;
    return this.#answerWith(io, id, command, () => this.#passOn(run, command));
  }

  get #isAlone(): boolean {
    return this.#options.membership.others().length === 0;
  }

  /** Requests that would be refused anyway are refused here. */
  #isVouchedFor({ credential, principal }: CommandOf<'check'> | Followup): boolean {
    return credential === undefined ? principal !== undefined : !this.#options.lookup.isUnknown(credential);
  }

  #runOf(home: string): RunId | undefined {
    return this.#options.membership.others().find(({ run }) => homeOf(run) === home)?.run;
  }

  #answerWith(io: number, id: number, command: Command, work: () => Promise<Answered>): true {
    const { answer, onError } = this.#options;
    work().then(
      ({ reply, elsewhere }) => answer(io, id, reply, elsewhere),
      (error: unknown) => {
        onError(error, `${command.type} at another gateway`);
        answer(io, id, INTERNAL, undefined);
      },
    );
    return true;
  }

  async #passOn(run: RunId, command: Command): Promise<Answered> {
    return (await this.#askAt(run, command, false)) ?? { reply: INTERNAL };
  }

  /** Undefined where the operation does not live there, so that nothing was decided. */
  async #askAt(run: RunId, command: Command, ifKnown: boolean): Promise<Answered | undefined> {
    const asked = await this.#options.peers.ask(run, kindOf(command), { command, ifKnown });
    if (!asked.ok) return { reply: asked };
    const { reply, auditId } = asked.value;
    return reply === undefined ? undefined : decidedAt(homeOf(run), reply, auditId);
  }

  /** At the home that it names, else at whoever has the operation, else here, where it is told that nobody has. */
  async #followUp(command: Followup): Promise<Answered> {
    const run = command.home === undefined ? undefined : this.#runOf(command.home);
    const atHome = run === undefined ? undefined : await this.#askAt(run, command, true);
    if (atHome !== undefined) return atHome;
    const refused = this.#refusalToAskAll();
    if (refused !== undefined) return { reply: refused };
    const own = await this.#whereverItIs(command, true);
    if (own !== undefined) return own;
    const { agent, opId } = command;
    if (opId !== undefined && this.#options.ops.find(opId, agent.orgId) !== undefined) return this.#here(command);
    // Nobody has one of this agent: one of another agent refuses it, as at its home.
    return (await this.#whereverItIs(command, 'of_anyone')) ?? this.#here(command);
  }

  async #whereverItIs(command: Followup, ifKnown: true | 'of_anyone'): Promise<Answered | undefined> {
    const asked = { command, ifKnown };
    const gathered = await this.#options.peers.askAll('decide', asked, ({ reply }) => reply !== undefined);
    if (!gathered.ok) return { reply: gathered };
    for (const { from, answer } of gathered.value.answers)
      if (answer.reply !== undefined) return decidedAt(homeOf(from.run), answer.reply, answer.auditId);
    const doubtful = this.#doubtful(gathered.value.missing);
    return doubtful.length === 0 ? undefined : { reply: unreachable(doubtful) };
  }

  async #here(command: Command): Promise<Answered> {
    const { reply, auditId } = await this.#options.decideHere(command);
    assert(reply !== undefined, 'what is decided here has a reply');
    return { reply, elsewhere: { home: this.#home, auditId } };
  }

  async #ofOperator(command: OfOperator): Promise<Answered> {
    if (command.home === this.#home) return this.#here(command);
    if (command.home !== undefined) {
      const known = this.#runOf(command.home);
      const refused = known === undefined ? this.#refusalToAskAll() : undefined;
      if (refused !== undefined) return { reply: refused };
      if (known === undefined) await this.#options.membership.lookAgain(); // it may have just joined
      const run = known ?? this.#runOf(command.home);
      const there = run === undefined ? undefined : await this.#askHome(run, command);
      if (there !== undefined && (command.type === 'get-op' || !isUnanswered(there.reply))) return there;
      const away = there === undefined ? [] : [command.home];
      const left = command.type === 'get-op' ? undefined : await this.#orderAbsent(command, away);
      return left === undefined ? (there ?? { reply: noOp(command.opId) }) : { reply: left };
    }
    const refused = this.#refusalToAskAll();
    if (refused !== undefined) return { reply: refused };
    if (command.type === 'get-op') return { reply: (await this.#gatherOp(command)).reply };
    return { reply: await this.#control(command) };
  }

  /** An order is answered late, once all confirm it: whether its home answers at all is found out first. */
  async #askHome(run: RunId, command: OfOperator): Promise<Answered | undefined> {
    if (command.type === 'get-op') return this.#askAt(run, command, true);
    const { principal, opId, orgId } = command;
    const found = { command: { type: 'get-op', principal, opId, orgId } as const, ifKnown: true };
    const asked = await this.#options.peers.ask(run, 'whose', found);
    return asked.ok ? this.#askAt(run, command, true) : { reply: asked };
  }

  /**
   * An order holds for every operation of this id, within one org: whoever has one carries it out, as soon as it says
   * that it has. Where the order does not say which org, all are heard first, because two orgs may have one.
   */
  async #control(command: CommandOf<'control-op'>): Promise<OpReply> {
    const { principal, opId, orgId } = command;
    const asked = { type: 'get-op', principal, opId, orgId } as const;
    const given = new Map<string, Promise<OpReply>>();
    const give = (home: string, ordered: CommandOf<'control-op'>): Promise<OpReply> => {
      const reply = given.get(home) ?? this.#orderAt(home, ordered);
      given.set(home, reply);
      reply.catch(() => undefined); // it is awaited once the search is over
      return reply;
    };
    const ofOrg = orgId ?? principal.orgId ?? undefined;
    const giveEarly = ofOrg === undefined ? undefined : (home: string) => void give(home, { ...command, orgId: ofOrg });
    const { reply: found, away, missing } = await this.#gatherOp(asked, 'whose', giveEarly);
    if (found.ok) {
      const ordered = { ...command, orgId: ofOrg ?? found.value.agent.orgId };
      const homes = [found.value, ...(found.value.others ?? [])].map(({ home }) => home ?? this.#home);
      // Another part of it may be where nobody answers: there the order is carried out once it goes on.
      const left = this.#options.leaveOrder(ordered, away);
      const replies = await Promise.all(homes.map((home) => give(home, ordered)));
      return mergeOps(ordered, replies, [...missing, ...(await left)]);
    }
    if (found.fault.kind !== 'not_found' && !isUnanswered(found)) return found;
    return (await this.#orderAbsent(command, away)) ?? found;
  }

  /** While the log cannot be written, only the gateways themselves can take an order: they may just be slow. */
  async #orderAbsent(command: CommandOf<'control-op'>, away: readonly string[]): Promise<OpReply | undefined> {
    const left = await this.#options.orderAbsent(command, away);
    if (left === undefined || left.ok || left.fault.kind !== 'store_unreachable' || away.length === 0) return left;
    const late = mergeOps(command, await Promise.all(away.map((home) => this.#orderAt(home, command))), []);
    return late.ok ? late : left;
  }

  async #orderAt(home: string, command: CommandOf<'control-op'>): Promise<OpReply> {
    const run = home === this.#home ? undefined : this.#runOf(home);
    const there = run === undefined ? await this.#here(command) : await this.#askAt(run, command, true);
    return (there?.reply ?? noOp(command.opId)) as OpReply;
  }

  /**
   * `onFound` is told each home that has it, as soon as that is known; `away`: where the operation may be besides, as
   * nobody answers there.
   */
  async #gatherOp(
    command: OfOperator,
    kind: 'decide' | 'whose' = 'decide',
    onFound?: (home: string) => void,
  ): Promise<{ readonly reply: OpReply; readonly away: readonly string[]; readonly missing: readonly string[] }> {
    const noteFound = (reply: Replies[CommandType] | undefined, home: string): boolean => {
      if (reply?.ok === true) onFound?.(home);
      return false;
    };
    const deciding = this.#options.decideHere(command);
    const [here, asked] = await Promise.all([
      deciding.then((decided) => (noteFound(decided.reply, this.#home), decided)),
      this.#options.peers.askAll(kind, { command, ifKnown: true }, ({ reply }, from) =>
        noteFound(reply, homeOf(from.run)),
      ),
    ]);
    // The order to the part that is here is given already: it is left for the others, who could not be asked.
    const isBegun = onFound !== undefined && here.reply?.ok === true;
    const gathered = asked.ok || !isBegun ? asked : ok({ answers: [], missing: this.#namesOfOthers });
    if (!gathered.ok) return { reply: gathered, away: [], missing: [] };
    const there = gathered.value.answers.flatMap(({ from, answer: { reply } }) =>
      reply === undefined ? [] : [withHome(reply, homeOf(from.run)) as OpReply],
    );
    const { missing } = gathered.value;
    const merged = mergeOps(command, [here.reply as OpReply, ...there], missing);
    const doubtful = this.#doubtful(missing);
    const others = this.#options.membership.others().filter(({ name }) => doubtful.includes(name));
    const away = others.map(({ run }) => homeOf(run));
    const isNowhere = !merged.ok && merged.fault.kind === 'not_found';
    return { reply: isNowhere && away.length > 0 ? unreachable(doubtful) : merged, away, missing };
  }

  get #namesOfOthers(): readonly string[] {
    return this.#options.membership.others().map(({ name }) => name);
  }

  /** Picks, from gateways that did not answer, those whose operations may still be there. */
  #doubtful(missing: readonly string[]): readonly string[] {
    const { membership, clock } = this.#options;
    const lostMs = clock.nowMs() - MAY_RETURN_MS;
    const others = membership.others();
    return missing.filter((missed) =>
      others.some(({ name, state, leaseUntilMs }) => name === missed && (state === 'live' || leaseUntilMs > lostMs)),
    );
  }

  async #listOps(command: CommandOf<'list-ops'>): Promise<Replies['list-ops']> {
    const { membership, peers, decideHere } = this.#options;
    return gatherOps(
      { home: this.#home, name: membership.name },
      membership.others().map(({ run, name }) => ({ home: homeOf(run), name, run })),
      command,
      async (at, page) => {
        if (at.run === undefined) return (await decideHere(page)).reply as Replies['list-ops'];
        const asked = await peers.ask(at.run, 'decide', { command: page, ifKnown: false });
        return asked.ok ? withHomes(asked.value.reply as Replies['list-ops'], at.home) : asked;
      },
    );
  }

  #refusalToAskAll(): Result<never, Fault> | undefined {
    const nowMs = this.#options.steadyMs();
    if (this.#allowance.take(nowMs)) return undefined;
    if (nowMs - this.#warnedAtMs >= WARN_EVERY_MS) {
      this.#warnedAtMs = nowMs;
      this.#options.warn(
        'too many requests concern operations at other gateways and do not say where: use a client that returns op_home, or a balancer that keeps an agent at one gateway',
      );
    }
    return TOO_MANY;
  }
}

const kindOf = ({ type }: Command): 'decide' | 'order' => (type === 'control-op' ? 'order' : 'decide');

const noOp = (opId: OpId) => fail({ kind: 'not_found', what: `operation ${opId}` } as const);

const unreachable = (names: readonly string[]): Result<never, Fault> =>
  fail({ kind: 'unreachable_gateway', gateway: names.join(', '), retryAfterSecs: 1 });

const isUnanswered = (reply: Replies[CommandType]): boolean => !reply.ok && reply.fault.kind === 'unreachable_gateway';

const decidedAt = (home: string, reply: Replies[CommandType], auditId: number | undefined): Answered => ({
  reply: withHome(reply, home),
  elsewhere: { home, auditId },
});

/** The operation in an answer says where it lives. */
function withHome(reply: Replies[CommandType], home: string): Replies[CommandType] {
  if (!reply.ok || reply.value === undefined || !('opId' in reply.value)) return reply;
  return { ...reply, value: { ...(reply.value as OpView), home } };
}

const withHomes = (reply: Replies['list-ops'], home: string): Replies['list-ops'] =>
  reply.ok ? ok({ ...reply.value, items: reply.value.items.map((op) => ({ ...op, home })) }) : reply;

/** Merges the answers of all gateways to the same request. */
function mergeOps({ type, opId }: OfOperator, replies: readonly OpReply[], missing: readonly string[]): OpReply {
  const ops = replies.flatMap((reply) => (reply.ok ? [reply.value] : []));
  const orgIds = new Set(ops.map(({ agent }) => agent.orgId));
  for (const reply of replies)
    if (!reply.ok && reply.fault.kind === 'ambiguous') for (const orgId of reply.fault.orgIds) orgIds.add(orgId);
  if (orgIds.size > 1) return fail({ kind: 'ambiguous', opId, orgIds: [...orgIds] });
  const [first, ...others] = ops;
  if (first === undefined) {
    const refused = replies.find((reply) => !reply.ok && reply.fault.kind !== 'not_found');
    return refused ?? noOp(opId);
  }
  if (type === 'get-op') return ok(others.length === 0 ? first : { ...first, others });
  const unconfirmed = new Set([...missing, ...replies.flatMap((reply) => reply.unconfirmed ?? [])]);
  return { ...ok(first), unconfirmed: [...unconfirmed] };
}

/**
 * A gateway, its clients, its disk and its clock, moved in small steps by random numbers from a seed: whatever goes
 * wrong, the same seed shows it again. After every step it is compared with a model of what must hold.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import type { AuditEntry } from '../../src/core/audit/audit.ts';
import { agentKeyOf } from '../../src/core/base/ids.ts';
import type { Command, CommandType, Replies } from '../../src/core/commands.ts';
import { StoreUnwritable } from '../../src/ports/ports.ts';
import { createClock } from '../../src/system/clock.ts';
import type { Recorded } from '../../src/use-cases/use-cases.ts';
import { fragileDisk } from '../support/fragile-disk.ts';
import { ADMIN, digestOf } from '../support/governor.ts';
import { randomOf } from '../support/random.ts';
import { AGENTS, Clients, pick } from './clients.ts';
import { LogOnDisk } from './log.ts';
import { Model } from './model.ts';
import { GatewayRun, type IoThread, type Mutation } from './process.ts';
import { SimulatedStore } from './store.ts';
import { Violation, violation } from './violation.ts';

const START_MS = Date.UTC(2026, 10, 26, 4);
const MINUTE_MS = 60_000;
/** The clock of the machine is never further behind than this: beyond it, it counts as wrong before. */
const MOST_BACK_MS = 100 * MINUTE_MS;
const SETTLING_ROUNDS = 200;

type Asked = { readonly seq: number; readonly command: Command; readonly io: IoThread };

/** Outside of the simulated time. */
const realImmediate = globalThis.setImmediate;
const turn = (): Promise<void> => new Promise((resolve) => realImmediate(resolve));

export class World {
  readonly #random: () => number;
  readonly #clients: Clients;
  readonly #store = new SimulatedStore();
  readonly #model = new Model();
  readonly #folder = mkdtempSync(join(tmpdir(), 'svc-simulated-'));
  readonly #log = new LogOnDisk(join(this.#folder, 'audit'));
  readonly #mutation: Mutation;
  readonly #isStrict: boolean;
  readonly #hasDoorsHere: boolean;
  readonly #open = new Set<Asked>();
  /** Halts whose release was asked for. */
  readonly #released = new Set<string>();
  readonly #digest = createHash('sha256');
  /** How often what has happened. */
  readonly counts: Record<string, number> = {};
  #run: GatewayRun;
  /** The last entry that the audit thread is known to have written. */
  #head = 0;
  #monotonicMs = 0;
  #latestWallMs = START_MS;
  #seq = 0;
  #lastId = 0;
  #auditDeaths = 0;
  /** Thrown where no step could catch it. */
  #broken: Violation | undefined;

  private constructor(seed: number, mutation: Mutation) {
    this.#random = randomOf(seed);
    this.#clients = new Clients(this.#random);
    this.#mutation = mutation;
    this.#isStrict = this.#random() < 0.85;
    this.#hasDoorsHere = this.#random() < 0.4;
    for (const agent of AGENTS) {
      void this.#store.agents.save({
        identity: agent,
        credential: digestOf(agent),
        registeredAtMs: 0,
        parent: undefined,
      });
      this.#store.settle('written');
    }
    this.#run = this.#start();
  }

  /** Plays this many steps and comes to rest. Throws the `Violation` that it finds; the same seed finds the same. */
  static async play(seed: number, steps: number, mutation: Mutation = {}): Promise<WorldOutcome> {
    vi.useFakeTimers({ now: START_MS, toFake: FAKED });
    const world = new World(seed, mutation);
    let step = 0;
    try {
      for (; step < steps; step += 1) await world.#step();
      await world.#settle();
      world.#digest.update(`${world.#log.head}`);
      return { digest: world.#digest.digest('hex'), counts: world.counts };
    } catch (error) {
      if (error instanceof Violation) error.message = `seed ${seed}, step ${step}: ${error.message}`;
      throw error;
    } finally {
      world.#close();
      vi.useRealTimers();
    }
  }

  #start(): GatewayRun {
    fragileDisk.fail({ create: 0, write: 0, cut: 0, flush: 0 });
    const run = new GatewayRun({
      directory: join(this.#folder, 'audit'),
      clock: createClock(Date.now, () => this.#monotonicMs),
      store: this.#store,
      onAuditFailure: this.#isStrict ? 'deny' : 'allow',
      hasDoorsHere: this.#hasDoorsHere,
      newId: () => {
        this.#lastId += 1;
        return `id-${this.#lastId}`;
      },
      mutation: this.#mutation,
      onDefect: (error, doing) => {
        if (!(error instanceof StoreUnwritable))
          this.#fails('defect', `${doing}: ${error instanceof Error ? error.stack : error}`);
      },
    });
    this.#head = run.writer!.head().id;
    return run;
  }

  async #step(): Promise<void> {
    const kind = pick(this.#random, STEPS);
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    const isOfChecks = this.#do(kind);
    if (kind === 'settle') await this.#settle();
    else await this.#ripple(Math.floor(this.#random() * 3));
    this.#verify(isOfChecks === true, !IDLE.includes(kind));
  }

  /** Lets go what waits for the end of the turn, in all threads, and some time pass. */
  async #ripple(ms: number): Promise<void> {
    await turn();
    this.#advance(ms);
  }

  /** True where the main thread has taken checks and nothing else. */
  #do(kind: (typeof STEPS)[number][1]): boolean | void {
    switch (kind) {
      case 'ask':
        return this.#ask();
      case 'main':
        return this.#mainTakes(this.#anyIo());
      case 'audit':
        return this.#auditTakes(1 + Math.floor(this.#random() * 6));
      case 'hear':
        return this.#run.mainHearsAudit();
      case 'io':
        return this.#ioHears(this.#anyIo());
      case 'store':
        return this.#store.settle(pick(this.#random, STORE_OUTCOMES));
      case 'wait':
        this.#startAudit();
        return this.#advance(400 + Math.floor(this.#random() * 1_200));
      case 'clock':
        return this.#setClock();
      case 'disk':
        return this.#breakDisk();
      case 'halt':
        return this.#halt();
      case 'upkeep':
        return this.#upkeep();
      case 'kill-audit':
        return this.#killAudit();
      case 'kill-io':
        return this.#killIo();
      case 'crash':
        return this.#crash();
      default:
        return;
    }
  }

  #anyIo(): IoThread {
    return this.#run.ios[Math.floor(this.#random() * this.#run.ios.length)]!;
  }

  #ask(): void {
    const io = this.#anyIo();
    for (let more = this.#random(); more > 0.3; more = this.#random()) {
      this.#seq += 1;
      const asked = { seq: this.#seq, command: this.#clients.command(), io };
      this.#open.add(asked);
      this.#model.asked(asked.command);
      const answer = io.link.ask(asked.command as never, { address: `192.0.2.${this.#seq % 3}` });
      void answer.then((recorded) => this.#guard(() => this.#answered(asked, recorded as Recorded<Reply>)));
    }
  }

  #mainTakes(io: IoThread): boolean {
    const messages = this.#run.mainTakes(io, 1 + Math.floor(this.#random() * 4));
    const commands = messages.flatMap((message) => (message.type === 'command' ? [message.command] : []));
    const nowMs = this.#nowMs();
    const [{ daily } = {}] = this.#run.governor.budgets.status({ limit: 1 }, nowMs).items;
    for (const command of commands)
      if (command.type === 'record-usage') this.#model.counted(command.usageId!, daily!.periodStartMs);
    return commands.length > 0 && commands.every(({ type }) => type === 'check');
  }

  #auditTakes(most: number): void {
    this.#run.auditTakes(most);
    if (this.#run.writer !== undefined) this.#head = this.#run.writer.head().id;
  }

  #ioHears(io: IoThread): void {
    if (this.#random() < 0.5) this.#run.ioHearsMain(io);
    else this.#run.ioLooks(io);
  }

  /** Time goes on, and with it all timers. */
  #advance(ms: number): void {
    this.#monotonicMs += ms;
    vi.advanceTimersByTime(ms);
    this.#latestWallMs = Math.max(this.#latestWallMs, Date.now());
    // A timer of the audit thread may have met the disk.
    if (this.#run.writer !== undefined) this.#head = this.#run.writer.head().id;
  }

  /** Somebody sets the clock of the machine: a little, to another day or month, or back. */
  #setClock(): void {
    const chance = this.#random();
    const hours = chance < 0.4 ? this.#random() : chance < 0.9 ? 24 * this.#random() : 24 * 40 * this.#random();
    const isBack = this.#random() < 0.4;
    const toMs = isBack ? Date.now() - this.#random() * 2 * MOST_BACK_MS : Date.now() + hours * 60 * MINUTE_MS;
    vi.setSystemTime(Math.floor(Math.max(toMs, this.#latestWallMs - MOST_BACK_MS)));
    this.#latestWallMs = Math.max(this.#latestWallMs, Date.now());
    this.#model.clockSet();
  }

  #breakDisk(): void {
    const times = 1 + Math.floor(this.#random() * 3);
    fragileDisk.fail(
      { write: times, cut: this.#random() < 0.4 ? 1 : 0, create: this.#random() < 0.2 ? 1 : 0 },
      'ENOSPC',
    );
  }

  #halt(): void {
    const { halts, governor } = this.#run;
    const standing = [...governor.halts.all()].filter(({ released }) => released === undefined);
    if (standing.length > 2 || (standing.length > 0 && this.#random() < 0.5)) {
      const { id } = standing[Math.floor(this.#random() * standing.length)]!;
      this.#model.halts.delete(id);
      this.#released.add(id);
      return void halts.release(ADMIN, id, 'over');
    }
    const { scope, covers } = this.#clients.scope();
    const run = this.#run;
    const mode = this.#random() < 0.3 ? 'terminate' : 'pause';
    const asked = { scope, mode, actions: ['*'], reason: 'simulated', expiresAtMs: undefined } as const;
    void halts.create(ADMIN, asked).then((created) => {
      if (!created.ok || run !== this.#run) return;
      const { id } = created.value.halt;
      // Its release was asked for before the answer to its creation arrived.
      if (!this.#released.has(id)) this.#model.halts.set(id, { covers, sinceSeq: this.#seq });
    });
  }

  #upkeep(): void {
    const { commands, governor } = this.#run;
    governor.sweep(this.#nowMs());
    commands.reportUnauthenticated();
    void commands.ask({ type: 'tick-approvals', most: 5 });
  }

  #killAudit(): void {
    if (!this.#run.hasAudit) return;
    this.#auditDeaths += 1;
    this.#run.killAudit();
  }

  #startAudit(): void {
    if (this.#run.hasAudit) return;
    fragileDisk.fail({ create: 0, write: 0, cut: 0, flush: 0 });
    this.#run.startAudit();
    // Whole lines of a failed write that could not be cut off either: in the log, though they were refused.
    this.#readTo(this.#head);
    this.#head = this.#run.writer!.head().id;
    this.#log.readTo(this.#head);
  }

  #killIo(): void {
    const at = Math.floor(this.#random() * this.#run.ios.length);
    const dead = this.#run.ios[at];
    this.#run.killIo(at);
    for (const asked of this.#open) {
      if (asked.io !== dead) continue;
      this.#open.delete(asked);
      this.#model.lost(asked.command);
    }
    this.#run.startIo();
  }

  /** kill -9, and another start. Pending writes of the store may be on the disk. */
  #crash(): void {
    for (let more = this.#random(); more < 0.5 && this.#store.waiting > 0; more = this.#random())
      this.#store.settle('unheard');
    this.#run.crash();
    this.#store.crash();
    this.#open.clear();
    this.#run = this.#start();
    this.#log.reread(this.#head);
    this.#model.restarted(this.#run);
  }

  #nowMs(): number {
    return this.#run.clock.nowMs();
  }

  #guard(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#broken ??= error as Violation;
    }
  }

  #fails(...what: Parameters<typeof violation>): void {
    this.#guard(() => violation(...what));
  }

  #answered(asked: Asked, { reply, auditId }: Recorded<Reply>): void {
    const { command, seq } = asked;
    if (!this.#open.delete(asked)) violation('answer', `request ${seq} was answered without being open`);
    this.#digest.update(`${seq} ${reply.ok ? 'ok' : reply.fault.kind} ${auditId}\n`);
    if (this.#isStrict) this.#expectRecorded(command, seq, reply, auditId);
    switch (command.type) {
      case 'check': {
        const { decision, cause } = reply.ok ? (reply.value as { decision: string; cause: unknown }) : {};
        return this.#model.checked(command, seq, decision, cause);
      }
      case 'record-usage':
        return this.#model.usageAnswered(command.usageId!, reply.ok);
      case 'register-agent':
      case 'deregister-agent': {
        const outcome = reply.ok ? 'done' : UNDONE.includes(reply.fault.kind) ? 'failed' : 'refused';
        const credential = command.type === 'register-agent' ? command.credential : undefined;
        return this.#model.registrationAnswered(agentKeyOf(command.agent), credential, outcome);
      }
      case 'complete-op':
      case 'control-op':
        return reply.ok || !UNDONE.includes(reply.fault.kind) ? this.#model.endAnswered(command.opId) : undefined;
      default:
        return;
    }
  }

  /** No answer before its record: what it says stands on the disk, under the number that it has. */
  #expectRecorded(command: Command, seq: number, reply: Reply, auditId: number | undefined): void {
    const opId = 'opId' in command ? command.opId : undefined;
    const decision = reply.ok ? (reply.value as { decision?: string } | undefined)?.decision : undefined;
    if (auditId !== undefined) {
      if (auditId > this.#head)
        violation('record', `request ${seq} has entry ${auditId}, and the log ends with ${this.#head}`);
      this.#readTo(auditId);
      const entry = this.#log.get(auditId);
      const isIts = opId === undefined || entry?.op_id === opId;
      const isSaid = decision === undefined || decision === 'pending' || entry?.decision === decision;
      if (!isIts || !isSaid) violation('record', `entry ${auditId} is not what request ${seq} was answered`);
    } else if (decision === 'allow' && (command as { dryRun?: boolean }).dryRun !== true) {
      // Its number is lost with the audit thread, the entry is not.
      this.#readTo(this.#head);
      const isThere = ({ op_id, decision: said }: AuditEntry): boolean => op_id === opId && said === 'allow';
      if (this.#auditDeaths === 0 || this.#log.find(isThere) === undefined)
        violation('record', `request ${seq} was allowed, and the log does not say so`);
    }
  }

  #readTo(id: number): void {
    const entries = this.#log.readTo(id);
    // With `allow`, some of what happens is in no log.
    if (this.#isStrict) for (const entry of entries) this.#model.replay(entry);
  }

  #verify(isOfChecks: boolean, mayHaveMoved: boolean): void {
    if (this.#broken !== undefined) throw this.#broken;
    const nowMs = this.#nowMs();
    this.#model.expectMoney(this.#run, nowMs, isOfChecks);
    if (!mayHaveMoved || !this.#isStrict || this.#run.audit.entriesInFlight > 0) return;
    this.#readTo(this.#head);
    this.#model.compare(this.#run, nowMs, this.#latestWallMs);
  }

  /** Lets everything that is under way come to its end: then nobody waits any more. */
  async #settle(): Promise<void> {
    this.#startAudit();
    fragileDisk.fail({ create: 0, write: 0, cut: 0, flush: 0 });
    for (let round = 0; round < SETTLING_ROUNDS && !this.#isQuiet(); round += 1) {
      this.#advance(600);
      for (const io of this.#run.ios) {
        while (io.toMain.length > 0) this.#mainTakes(io);
        while (io.fromMain.length > 0) this.#run.ioHearsMain(io);
        this.#run.ioLooks(io);
      }
      this.#auditTakes(1_000);
      while (this.#run.auditToMain.length > 0) this.#run.mainHearsAudit();
      while (this.#store.waiting > 0) {
        this.#store.settle('written');
        await turn();
      }
      await this.#ripple(0);
    }
    this.#verify(false, true);
    const [waiting] = this.#open;
    if (waiting !== undefined) violation('answer', `request ${waiting.seq} (${waiting.command.type}) has no answer`);
    this.#model.prune((opId) => this.#clients.isNamed(opId), this.#nowMs());
  }

  #isQuiet(): boolean {
    const { audit, auditToMain, ios, toAudit } = this.#run;
    const isStill = (io: IoThread): boolean => io.toMain.length + io.fromMain.length === 0;
    return (
      this.#open.size === 0 &&
      this.#store.waiting === 0 &&
      auditToMain.length + toAudit.length === 0 &&
      audit.isWritable &&
      ios.every(isStill)
    );
  }

  #close(): void {
    this.#run.crash();
    vi.clearAllTimers();
    rmSync(this.#folder, { recursive: true, force: true });
    rmSync(`${this.#folder}/audit.key`, { force: true });
  }
}

type Reply = Replies[CommandType];
type FakeTimers = NonNullable<NonNullable<Parameters<typeof vi.useFakeTimers>[0]>['toFake']>;

export type WorldOutcome = {
  /** The digest of all answers, in their order. */
  readonly digest: string;
  readonly counts: Readonly<Record<string, number>>;
};

const FAKED = [
  'setImmediate',
  'clearImmediate',
  'setInterval',
  'clearInterval',
  'setTimeout',
  'clearTimeout',
  'Date',
] satisfies FakeTimers;

/** The change was made and taken back. */
const UNDONE: readonly string[] = ['audit_unavailable', 'store_unreachable', 'internal'];

const STEPS = [
  [300, 'ask'],
  [220, 'main'],
  [170, 'audit'],
  [90, 'hear'],
  [130, 'io'],
  [60, 'store'],
  [16, 'wait'],
  [3, 'clock'],
  [4, 'disk'],
  [6, 'halt'],
  [4, 'upkeep'],
  [1, 'kill-audit'],
  [1, 'kill-io'],
  [1, 'crash'],
  [2, 'settle'],
] as const;

/** Neither the main thread nor the log moves with them. */
const IDLE: readonly string[] = ['ask', 'io', 'clock', 'disk'];

const STORE_OUTCOMES = [
  [85, 'written'],
  [7, 'repeated'],
  [8, 'failed'],
] as const;

/** Invariants of the gateway, stated once more and by other means: from the log on the disk, and from the answers. */
import type { AuditEntry } from '../../src/core/audit/audit.ts';
import { type AgentIdentity, agentKeyOf } from '../../src/core/base/ids.ts';
import type { Command } from '../../src/core/commands.ts';
import type { OpState } from '../../src/core/ops/op-state.ts';
import { DAILY_CAP, type GatewayRun, SWEEP_TTL_MS } from './process.ts';
import { violation } from './violation.ts';

/** The table once more (docs/spec.md, States and transitions). */
const MOVES: Readonly<Record<string, { readonly from: readonly string[]; readonly to: OpState }>> = {
  OpRegistered: { from: ['unknown'], to: 'pending' },
  OpPaused: { from: ['running'], to: 'paused' },
  OpResumed: { from: ['paused'], to: 'running' },
  OpTerminated: { from: ['pending', 'running', 'paused'], to: 'terminated' },
  OpCompleted: { from: ['running'], to: 'completing' },
};
const RESERVED_MS = 10 * 60_000;
/** Denials that no operation is begun for, or ended by. */
const WITHOUT_OP: readonly unknown[] = ['halt', 'operation_state', 'credential', 'unrecorded'];

/** They wait for people: what becomes of them is not modelled. */
const isOfPeople = (opId: string): boolean => opId.startsWith('w');

type Op = {
  readonly agent: AgentIdentity;
  state: OpState | 'unknown';
  finishedAtMs: number;
  held: { microUsd: number; untilMs: number };
  /** Checks that have no answer yet, or were answered that they could not be recorded. */
  unanswered: number;
  hasUnrecorded: boolean;
  /**
   * Completions and orders without an answer, or carried out and taken back: swept in between, the operation cannot
   * come back.
   */
  unrecordedEnds: number;
  /** Since its last entry the clock was set: what happened to it unrecorded may have been swept at once. */
  isClockSet: boolean;
};
type Usage = { readonly costMicroUsd: number; readonly days: Set<number>; isAnswered: boolean };
type StandingHalt = { readonly covers: (agent: AgentIdentity) => boolean; readonly sinceSeq: number };
/** `isSure`: it was answered, and nothing else was asked meanwhile. `isStored`: a restart must find the same. */
type Credential = {
  value: string | undefined;
  open: number;
  isMixed: boolean;
  isStored: boolean;
  isSure: boolean;
};

export class Model {
  readonly ops = new Map<string, Op>();
  /** Halts whose creation was answered, and whose release nobody has asked for. */
  readonly halts = new Map<string, StandingHalt>();
  readonly #usages = new Map<string, Usage>();
  /** By the beginning of the day: what was answered for sure, and all that was ever counted. */
  readonly #answered = new Map<number, number>();
  readonly #counted = new Map<number, number>();
  readonly #credentials = new Map<string, Credential>();
  #heldMicroUsd = 0;

  // Takes an entry of the log.

  replay(entry: AuditEntry): void {
    const op = entry.op_id === null ? undefined : this.ops.get(entry.op_id);
    if (op === undefined) return;
    op.isClockSet = false;
    const atMs = Date.parse(entry.timestamp);
    const isChecked = entry.payload.action !== undefined && entry.payload.dry_run !== true;
    const begins = isChecked ? !WITHOUT_OP.includes(entry.cause) : entry.event_type === 'OpRegistered';
    if (begins && this.#isSwept(op, atMs)) op.state = 'unknown';
    const move = MOVES[entry.event_type];
    if (move !== undefined) return this.#move(op, entry, move, atMs);
    if (!isChecked) return;
    if (entry.decision === 'allow') this.#allow(op, entry, atMs);
    else if (begins && (op.state === 'unknown' || op.state === 'pending')) this.#end(op, 'terminated', atMs);
  }

  #move(op: Op, { id, event_type, op_id }: AuditEntry, move: (typeof MOVES)[string], atMs: number): void {
    if (!move.from.includes(op.state))
      violation('operation', `entry ${id} says ${event_type} of ${op_id}, which was ${op.state}`);
    if (move.to === 'terminated' || move.to === 'completing') return this.#end(op, move.to, atMs);
    op.state = move.to;
  }

  #allow(op: Op, { id, op_id, payload }: AuditEntry, atMs: number): void {
    if (op.state !== 'unknown' && op.state !== 'pending' && op.state !== 'running')
      violation('operation', `entry ${id} allows an action of ${op_id}, which was ${op.state}`);
    op.state = 'running';
    const estimated = Math.round(Number(payload.estimated_cost_usd ?? 0) * 1e6);
    if (estimated === 0) return;
    const held = op.held.untilMs > atMs ? op.held.microUsd : 0;
    op.held = { microUsd: Math.max(estimated, held), untilMs: atMs + RESERVED_MS };
  }

  #end(op: Op, state: 'terminated' | 'completing', atMs: number): void {
    op.state = state;
    op.finishedAtMs = atMs;
    op.held = { microUsd: 0, untilMs: 0 };
  }

  #isSwept({ state, finishedAtMs }: Op, atMs: number): boolean {
    return (state === 'terminated' || state === 'completing') && atMs - finishedAtMs >= SWEEP_TTL_MS;
  }

  /**
   * Compares with the gateway, of which nothing is on its way to the log. `latestMs`: the latest time that its clock
   * has ever had.
   */
  compare(run: GatewayRun, nowMs: number, latestMs: number): void {
    run.governor.budgets.expire(nowMs);
    let heldMicroUsd = 0;
    for (const [opId, op] of this.ops) {
      this.#compareOp(run, opId, op, nowMs, latestMs);
      if (op.held.untilMs > nowMs) heldMicroUsd += op.held.microUsd;
    }
    const { microUsd } = run.governor.budgets.reservations;
    if (microUsd !== heldMicroUsd)
      violation('rollback', `${microUsd} micro-dollars are held, and by the log it should be ${heldMicroUsd}`);
    for (const [key, { value, open, isSure }] of this.#credentials) {
      if (open === 0 && isSure && run.credentialOf(key) !== value)
        violation('agent', `${key} has ${run.credentialOf(key)}, and was answered ${value}`);
    }
  }

  #compareOp({ governor }: GatewayRun, opId: string, op: Op, nowMs: number, latestMs: number): void {
    const slot = governor.ops.find(opId as never, op.agent.orgId);
    const state = slot === undefined ? 'unknown' : governor.ops.stateOf(slot);
    // Nobody has the Allow that began it: it is over, since when the log does not say.
    const isUnrecorded = op.unanswered > 0 || op.hasUnrecorded;
    const isBegunAnew = op.state === 'unknown' || op.isClockSet || this.#isSwept(op, latestMs);
    if (state === 'terminated' && isUnrecorded && isBegunAnew) this.#end(op, 'terminated', 0);
    if (state === 'unknown' && (op.unrecordedEnds > 0 || (isUnrecorded && op.isClockSet))) op.state = 'unknown';
    if (state !== op.state && (state !== 'unknown' || !this.#isSwept(op, nowMs)))
      violation('rollback', `${opId} is ${state}, and by the log it should be ${op.state}`);
    if (state === 'running') this.#expectNotHalted(opId, op.agent);
    const untilMs = slot === undefined ? 0 : governor.budgets.heldUntilMs(slot);
    if (op.held.untilMs > nowMs && untilMs !== op.held.untilMs)
      violation('rollback', `${opId} holds money until ${untilMs}, and by the log it should be ${op.held.untilMs}`);
  }

  #expectNotHalted(opId: string, agent: AgentIdentity): void {
    for (const [id, halt] of this.halts)
      if (halt.covers(agent)) violation('halt', `${opId} runs, although halt ${id} covers its agent`);
  }

  clockSet(): void {
    for (const op of this.ops.values()) op.isClockSet = true;
  }

  // Takes a command that waits for its answer.

  asked(command: Command): void {
    if (command.type === 'check' && !isOfPeople(command.opId)) this.#opOf(command.opId, command.agent).unanswered += 1;
    if (command.type === 'register-op') this.#opOf(command.opId, command.agent);
    const ended = command.type === 'complete-op' || command.type === 'control-op' ? command.opId : undefined;
    const op = ended === undefined ? undefined : this.ops.get(ended);
    if (op !== undefined) op.unrecordedEnds += 1;
    if (command.type === 'record-usage')
      this.#usages.set(
        command.usageId!,
        this.#usages.get(command.usageId!) ?? {
          costMicroUsd: command.costMicroUsd,
          days: new Set(),
          isAnswered: false,
        },
      );
    if (command.type !== 'register-agent' && command.type !== 'deregister-agent') return;
    const credential = this.#credentialOf(agentKeyOf(command.agent));
    credential.open += 1;
    if (credential.open > 1) credential.isMixed = true;
  }

  #opOf(opId: string, agent: AgentIdentity): Op {
    let op = this.ops.get(opId);
    if (op === undefined) {
      const held = { microUsd: 0, untilMs: 0 };
      op = {
        agent,
        state: 'unknown',
        finishedAtMs: 0,
        held,
        unanswered: 0,
        hasUnrecorded: false,
        unrecordedEnds: 0,
        isClockSet: false,
      };
      this.ops.set(opId, op);
    }
    return op;
  }

  #credentialOf(key: string): Credential {
    let credential = this.#credentials.get(key);
    if (credential === undefined) {
      credential = { value: undefined, open: 0, isMixed: false, isStored: true, isSure: true };
      this.#credentials.set(key, credential);
    }
    return credential;
  }

  /** A check has its answer. `seq` counts the requests. */
  checked(command: Extract<Command, { type: 'check' }>, seq: number, decision: string | undefined, cause: unknown) {
    const op = this.ops.get(command.opId);
    if (op !== undefined) op.unanswered -= 1;
    if (op !== undefined && (decision === undefined || cause === 'unrecorded')) op.hasUnrecorded = true;
    if (decision !== 'allow' || command.dryRun) return;
    for (const [id, { covers, sinceSeq }] of this.halts)
      if (seq > sinceSeq && covers(command.agent))
        violation('halt', `${command.opId} is allowed ${command.action}, although halt ${id} covers its agent`);
  }

  /** Notes that the possible end of an operation is recorded, or was refused. */
  endAnswered(opId: string): void {
    const op = this.ops.get(opId);
    if (op !== undefined) op.unrecordedEnds -= 1;
  }

  /** The main thread has counted it, on the day that it is there now. */
  counted(usageId: string, day: number): void {
    const usage = this.#usages.get(usageId)!;
    if (!usage.days.has(day)) this.#counted.set(day, (this.#counted.get(day) ?? 0) + usage.costMicroUsd);
    usage.days.add(day);
  }

  usageAnswered(usageId: string, isOk: boolean): void {
    const usage = this.#usages.get(usageId)!;
    const [day, ...others] = usage.days;
    // A retry on another day may be the one that counts.
    if (!isOk || usage.isAnswered || day === undefined || others.length > 0) return;
    usage.isAnswered = true;
    this.#answered.set(day, (this.#answered.get(day) ?? 0) + usage.costMicroUsd);
  }

  registrationAnswered(key: string, credential: string | undefined, outcome: 'done' | 'refused' | 'failed'): void {
    const known = this.#credentialOf(key);
    known.open -= 1;
    if (known.open > 0) return;
    // Several at once end in the order of the log, not in that of their answers.
    if (known.isMixed) Object.assign(known, { isMixed: false, isSure: false, isStored: false });
    else if (outcome === 'done') Object.assign(known, { value: credential, isSure: true, isStored: true });
    // A change that was rolled back here may be in the store.
    else if (outcome === 'failed') known.isStored = false;
  }

  /** The main thread knows nothing of requests whose I/O thread is gone: neither does anybody else. */
  lost(command: Command): void {
    const op = command.type === 'check' ? this.ops.get(command.opId) : undefined;
    if (op !== undefined) Object.assign(op, { unanswered: op.unanswered - 1, hasUnrecorded: true });
    if (command.type !== 'register-agent' && command.type !== 'deregister-agent') return;
    const credential = this.#credentialOf(agentKeyOf(command.agent));
    Object.assign(credential, {
      open: credential.open - 1,
      isMixed: credential.open > 1,
      isSure: false,
      isStored: false,
    });
  }

  // Invariants at any time.

  /** After every step. `isOfChecks`: the main thread has taken checks and nothing else in it. */
  expectMoney(run: GatewayRun, nowMs: number, isOfChecks: boolean): void {
    const [{ daily } = {}] = run.governor.budgets.status({ limit: 1 }, nowMs).items;
    const { spentMicroUsd, periodStartMs } = daily!;
    const least = this.#answered.get(periodStartMs) ?? 0;
    const most = this.#counted.get(periodStartMs) ?? 0;
    if (spentMicroUsd < least) violation('budget', `${spentMicroUsd} are spent, and ${least} were answered`);
    if (spentMicroUsd > most) violation('budget', `${spentMicroUsd} are spent, and ${most} were reported`);
    const { microUsd } = run.governor.budgets.reservations;
    if (isOfChecks && microUsd > this.#heldMicroUsd && spentMicroUsd + microUsd > DAILY_CAP)
      violation('cap', `${microUsd} are held and ${spentMicroUsd} spent of ${DAILY_CAP}`);
    this.#heldMicroUsd = microUsd;
  }

  /** The process has ended, and another has begun: operations are gone, what was answered and is stored is not. */
  restarted(run: GatewayRun): void {
    this.ops.clear();
    for (const id of this.halts.keys()) {
      if (run.governor.halts.get(id)?.released !== undefined || run.governor.halts.get(id) === undefined)
        violation('halt', `halt ${id} is not in force after a restart`);
    }
    for (const [key, known] of this.#credentials) {
      if (known.open === 0 && known.isStored && run.credentialOf(key) !== known.value)
        violation('agent', `after a restart ${key} has ${run.credentialOf(key)}, and was answered ${known.value}`);
      Object.assign(known, { value: run.credentialOf(key), open: 0, isMixed: false, isSure: true, isStored: true });
    }
  }

  /** Lets go of operations that nobody will name again. */
  prune(isNamed: (opId: string) => boolean, nowMs: number): void {
    for (const [opId, { unanswered, held }] of this.ops)
      if (unanswered === 0 && held.untilMs <= nowMs && !isNamed(opId)) this.ops.delete(opId);
  }
}

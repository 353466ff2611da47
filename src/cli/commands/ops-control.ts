import type { ControlTrigger } from '../../core/ops/op-state.ts';
import { nextState, OP_STATES, type OpState } from '../../core/ops/op-state.ts';
import { CliError, EXIT, type ExitStatus, RefusedError, renderError, usageError } from '../errors.ts';
import type { Globals, Invocation, Run } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { note, show, tolerateClosedPipe, writeLines } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { confirmed, interruptible } from '../terminal/prompt.ts';
import { type Row, valueAt } from '../terminal/table.ts';
import { padded } from '../terminal/width.ts';
import { counted } from '../terminal/words.ts';
import { type AgentFilter, agentFilter, agentText } from './listing.ts';
import { OpNames, type OpPlace } from './op-name.ts';
import { pathOf, stateText, whereIn } from './ops.ts';

/** The states in which the trigger changes something: terminating twice changes nothing. */
const statesBefore = (trigger: ControlTrigger): readonly OpState[] =>
  OP_STATES.filter((state) => (nextState(state, trigger) ?? state) !== state);

/** Requests that wait for an answer at once. */
const AT_ONCE = 16;
/** Operations shown before the question. */
const MAX_SHOWN = 10;

export const control =
  (trigger: ControlTrigger): Run =>
  async (invocation) => {
    const { args, options } = invocation;
    const selectors = ['org', 'team', 'agent'].filter((name) => options.text(name) !== undefined);
    // With ids, an org only says whose they are.
    const isChosen = options.isSet('all') || selectors.length > 0;
    if (args.length > 0 && (options.isSet('all') || selectors.some((name) => name !== 'org')))
      throw usageError('give either operation ids or options that select operations, not both');
    if (args.length === 0 && options.text('opHome') !== undefined)
      throw usageError('--op-home names the gateway of an operation given by its id', 'Give its id.');
    if (args.length === 0 && !isChosen)
      throw usageError(
        `no operations to ${trigger} given`,
        'Give their ids, or select them with --agent, --team, --org or --all.',
      );
    const api = await Api.of(invocation, { isPatient: true });
    return args.length > 0 ? controlNamed(api, trigger, invocation) : controlChosen(api, trigger, invocation);
  };

/**
 * Tries every id, whatever happened to those before: when many are stopped at once, one failure must not leave the
 * others running.
 */
async function controlNamed(api: Api, trigger: ControlTrigger, invocation: Invocation): Promise<ExitStatus> {
  const { args, globals, options } = invocation;
  const [only = ''] = args;
  const where = whereIn(options);
  const names = new OpNames(api, where);
  const order = (text: string) => names.ask(text, (opId) => api.post(verbPath(opId, trigger, where), 'state'));
  if (args.length > 1) return controlEach(args, { order, globals, isFine: () => false });
  const op = await order(only);
  await show(globals.output, op, () => [outcomeLine(op)]);
  return EXIT.done;
}

/** An operation that ended between the listing and its turn needs no change. */
const isPast = ({ refusal: { code } }: RefusedError): boolean => code === 'not_found' || code === 'invalid_transition';

async function controlChosen(api: Api, trigger: ControlTrigger, invocation: Invocation): Promise<ExitStatus> {
  const { options, globals } = invocation;
  const filter = agentFilter(options);
  const ops = await listed(api, trigger, filter);
  if (ops.length === 0) {
    note(`There are no operations to ${trigger}.`);
    if (globals.output !== 'table') await show(globals.output, [], () => []);
    return EXIT.done;
  }
  if (!options.isSet('yes')) await ask(trigger, ops);
  const order = (op: Row) => api.post(verbPath(String(op.op_id), trigger, placeOf(op)), 'state');
  const status = await controlEach(ops, { order, globals, isFine: isPast });
  if (status !== EXIT.done) return status;
  const seen = new Set(ops.map(keyOf));
  const fresh = (await listed(api, trigger, filter)).filter((op) => !seen.has(keyOf(op)));
  if (fresh.length > 0)
    note(
      `${counted(fresh.length, 'more operation')} started in the meantime; run the command again. To keep the agent from starting more, deny it everything by policy; after \`svc agents rm\` it would receive no signals, and may register again.`,
    );
  return status;
}

async function listed(api: Api, trigger: ControlTrigger, filter: AgentFilter): Promise<readonly Row[]> {
  const ops = new Map<string, Row>(); // one that is paused between two of these listings is in both
  for (const state of statesBefore(trigger)) {
    for (const op of (await api.list('/api/v1/ops', 'ops', { query: { ...filter, state } })).rows)
      ops.set(keyOf(op), op);
  }
  return [...ops.values()];
}

/** Rejects when they are not meant. */
async function ask(trigger: ControlTrigger, ops: readonly Row[]): Promise<void> {
  const these = counted(ops.length, 'operation');
  if (process.stdin.isTTY !== true)
    throw usageError(`this would ${trigger} ${these}`, 'There is no terminal for confirmation; add --yes to go ahead.');
  noteCounts(groupsOf(ops), 'agent');
  if (
    !(await confirmed(
      `${trigger.charAt(0).toUpperCase()}${trigger.slice(1)} ${ops.length === 1 ? 'this operation' : `these ${these}`}?`,
    ))
  )
    throw new CliError('cancelled; nothing was changed');
}

/** Whose operations are meant, and how many each has. */
export function noteCounts(groups: readonly (readonly [string, number])[], what: string): void {
  const width = String(groups.reduce((sum, [, count]) => sum + count, 0)).length;
  for (const [name, count] of groups.slice(0, MAX_SHOWN)) note(`  ${String(count).padStart(width)}  ${name}`);
  if (groups.length > MAX_SHOWN)
    note(`  ${padded('', width)}  and ${counted(groups.length - MAX_SHOWN, `more ${what}`)}`);
}

/** Agents and how many operations they have, those with the most first. */
function groupsOf(ops: readonly Row[]): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const { agent } of ops) {
    const name = agentText(agent) ?? '-';
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort(([, a], [, b]) => b - a);
}

export const outcomeLine = (op: Row): string => printable(`${String(op.op_id)} is ${stateText(op)}.`);

/** The place of a listed operation; a gateway outside a cluster has no `op_home`. */
const placeOf = (op: Row): OpPlace => ({
  org_id: String(valueAt(op, 'agent.org_id') ?? ''),
  op_home: op.op_home === undefined ? undefined : String(op.op_home),
});
const keyOf = (op: Row): string => `${JSON.stringify(placeOf(op))} ${String(op.op_id)}`;

export function verbPath(opId: string, trigger: ControlTrigger, place: OpPlace): string {
  const given = Object.entries(place).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`],
  );
  return `${pathOf(opId)}/${trigger}${given.length === 0 ? '' : `?${given.join('&')}`}`;
}

/** The work to do, and the test for its completion. */
type Job<T> = {
  readonly order: (op: T) => Promise<Row>;
  readonly globals: Globals;
  /** A refusal that is reported but is not a failure. */
  readonly isFine: (refusal: RefusedError) => boolean;
};

/**
 * Goes on if the reader of the output leaves: the operations must be stopped anyway. A signal ends it between two
 * rounds, with a full report.
 */
function controlEach<T extends string | Row>(ops: readonly T[], job: Job<T>): Promise<ExitStatus> {
  tolerateClosedPipe();
  return interruptible((signal) => controlInRounds(ops, job, signal));
}

/**
 * Works in rounds and reports in order. If a whole round fails without a decision, because the gateway is gone for
 * instance, all others would too, so it stops and reports that once.
 */
async function controlInRounds<T extends string | Row>(
  ops: readonly T[],
  job: Job<T>,
  signal: AbortSignal,
): Promise<ExitStatus> {
  const { order, globals } = job;
  const report = new Report(job);
  let tried = 0;
  for (let isDecided = true; tried < ops.length && isDecided && !signal.aborted; ) {
    const round = ops.slice(tried, tried + AT_ONCE);
    const outcomes = await Promise.allSettled(round.map(order));
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') report.changed(outcome.value);
      else report.refused(nameOf(round[index]), outcome.reason);
    }
    tried += round.length;
    isDecided = outcomes.some((outcome) => outcome.status === 'fulfilled' || outcome.reason instanceof RefusedError);
  }
  const untried = ops.length - tried;
  if (untried > 0)
    note(
      `${signal.aborted ? 'Interrupted: ' : ''}${counted(untried, 'more operation was', 'more operations were')} not tried.`,
    );
  if (globals.output !== 'table') await show(globals.output, report.done, () => []);
  for (const sentence of report.advice) note(sentence); // once, however many it is for
  if (signal.aborted && untried > 0) return EXIT.interrupted;
  return report.failed === 0 ? EXIT.done : EXIT.failed;
}

const nameOf = (op: string | Row | undefined): string => (typeof op === 'string' ? op : String(op?.op_id));

/** The outcome of each operation, printed as it comes. */
class Report {
  readonly done: Row[] = [];
  readonly advice = new Set<string>();
  failed = 0;
  readonly #job: Pick<Job<never>, 'globals' | 'isFine'>;

  constructor(job: Pick<Job<never>, 'globals' | 'isFine'>) {
    this.#job = job;
  }

  changed(op: Row): void {
    this.done.push(op);
    if (this.#job.globals.output === 'table') writeLines([outcomeLine(op)]);
  }

  refused(opId: string, error: unknown): void {
    if (!(error instanceof CliError)) throw error;
    const named = withName(error, opId);
    if (error instanceof RefusedError && this.#job.isFine(error)) return note(named.message);
    this.failed += 1;
    if (error.advice !== undefined) this.advice.add(error.advice);
    process.stderr.write(renderError(named, this.#job.globals.debug === true));
  }
}

const withName = (error: CliError, opId: string): CliError =>
  new CliError(error.message.includes(opId) ? error.message : `${opId}: ${error.message}`, undefined, {
    status: error.status,
    cause: error,
  });

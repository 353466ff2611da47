/** `svc ops pause|resume|terminate|complete`: operations by their ids, or all that an agent, a team, an org or everybody has. */
import { Api } from '../api.ts';
import { CliError, EXIT, RefusedError, renderError, usageError, type ExitStatus } from '../errors.ts';
import type { Invocation, Run } from '../invocation.ts';
import { note, outliveReader, show, writeLines } from '../output.ts';
import { padded, printable } from '../printable.ts';
import { confirmed } from '../prompt.ts';
import type { Row } from '../table.ts';
import { interruptible } from '../whole-file.ts';
import { counted } from '../words.ts';
import { agentFilter, agentText, type AgentFilter } from './agent-names.ts';
import { pathOf } from './ops.ts';

type Trigger = 'pause' | 'resume' | 'terminate' | 'complete';

/** In which states a trigger changes something (spec: States and transitions). */
const FROM: Readonly<Record<Trigger, readonly string[]>> = { pause: ['running'], resume: ['paused'], terminate: ['pending', 'running', 'paused'], complete: ['running'] };

/** Requests that wait for an answer at once. */
const AT_ONCE = 16;
/** What a person is shown before being asked. */
const MAX_AGENTS_SHOWN = 10;

export const control = (trigger: Trigger): Run => async (invocation) => {
  const { args, options } = invocation;
  const isChosen = options.isSet('all') || ['org', 'team', 'agent'].some((name) => options.text(name) !== undefined);
  if (args.length > 0 && isChosen) throw usageError('give the ids of operations or options that select them, not both');
  if (args.length === 0 && !isChosen) throw usageError(`no operations to ${trigger} were given`, 'Give their ids, or select them with --agent, --team, --org or --all.');
  const api = await Api.of(invocation, { isPatient: true });
  return isChosen ? controlChosen(api, trigger, invocation) : controlNamed(api, trigger, invocation);
};

/** Tries every id, whatever happened to those before: when many are stopped at once, one failure must not leave the others running. */
async function controlNamed(api: Api, trigger: Trigger, invocation: Invocation): Promise<ExitStatus> {
  const { args, globals } = invocation;
  const [only = ''] = args;
  if (args.length > 1) return controlEach(api, trigger, args, invocation, () => false);
  const op = await api.post(`${pathOf(only)}/${trigger}`, 'state');
  await show(globals.output, op, () => [outcomeLine(op)]);
  return EXIT.done;
}

/** What has ended between the listing and its turn is as it should be. */
const isPast = ({ refusal: { code } }: RefusedError): boolean => code === 'not_found' || code === 'invalid_transition';

async function controlChosen(api: Api, trigger: Trigger, invocation: Invocation): Promise<ExitStatus> {
  const { options, globals } = invocation;
  const filter = agentFilter(options);
  const ops = await listed(api, trigger, filter);
  if (ops.length === 0) {
    note(`There is no operation to ${trigger}.`);
    if (globals.output !== 'table') await show(globals.output, [], () => []);
    return EXIT.done;
  }
  if (!options.isSet('yes')) await ask(trigger, ops);
  const status = await controlEach(api, trigger, ops.map(({ op_id: id }) => String(id)), invocation, isPast);
  if (status !== EXIT.done) return status;
  const seen = new Set(ops.map(({ op_id: id }) => id));
  const fresh = (await listed(api, trigger, filter)).filter(({ op_id: id }) => !seen.has(id));
  if (fresh.length > 0) note(`${counted(fresh.length, 'more operation')} started meanwhile: run the command again. Removing the agent with \`svc agents rm\` keeps it from starting more.`);
  return status;
}

async function listed(api: Api, trigger: Trigger, filter: AgentFilter): Promise<readonly Row[]> {
  const ops = new Map<unknown, Row>(); // one that is paused between two of these listings is in both
  for (const state of FROM[trigger]) {
    for (const op of (await api.list('/api/v1/ops', 'ops', { ...filter, state }, Number.MAX_SAFE_INTEGER)).rows) ops.set(op.op_id, op);
  }
  return [...ops.values()];
}

/** Rejects when they are not meant. */
async function ask(trigger: Trigger, ops: readonly Row[]): Promise<void> {
  const these = counted(ops.length, 'operation');
  if (process.stdin.isTTY !== true) throw usageError(`this would ${trigger} ${these}`, 'There is no terminal to ask on: add --yes if these are meant.');
  const byAgent = groupsOf(ops);
  const width = String(ops.length).length;
  for (const [agent, count] of byAgent.slice(0, MAX_AGENTS_SHOWN)) note(`  ${String(count).padStart(width)}  ${agent}`);
  if (byAgent.length > MAX_AGENTS_SHOWN) note(`  ${padded('', width)}  and ${counted(byAgent.length - MAX_AGENTS_SHOWN, 'more agent')}`);
  if (!(await confirmed(`${trigger.charAt(0).toUpperCase()}${trigger.slice(1)} ${ops.length === 1 ? 'this operation' : `these ${these}`}?`))) throw new CliError('nothing was changed');
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

const outcomeLine = (op: Row): string => printable(`${String(op.op_id)} is ${String(op.state)}.`);

/** Whoever reads along may leave: what is to be stopped is stopped all the same. A signal ends it between two rounds, so that what was done is told. */
function controlEach(api: Api, trigger: Trigger, opIds: readonly string[], invocation: Invocation, isFine: (refusal: RefusedError) => boolean): Promise<ExitStatus> {
  outliveReader();
  return interruptible((signal) => controlInRounds(api, trigger, opIds, invocation, isFine, signal));
}

/**
 * Some at a time, told in their order. A refusal that `isFine` is told, but is no failure. What keeps a whole round from being
 * decided, such as a gateway that is gone or a credential that does not suffice, would keep all others too: that is told once.
 */
async function controlInRounds(api: Api, trigger: Trigger, opIds: readonly string[], { globals }: Invocation, isFine: (refusal: RefusedError) => boolean, signal: AbortSignal): Promise<ExitStatus> {
  const done: Row[] = [];
  const advice = new Set<string>();
  let failed = 0;
  let untried = 0;
  for (let at = 0; at < opIds.length; at += AT_ONCE) {
    const some = opIds.slice(at, at + AT_ONCE);
    const outcomes = await Promise.allSettled(some.map((opId) => api.post(`${pathOf(opId)}/${trigger}`, 'state')));
    for (const [index, outcome] of outcomes.entries()) {
      if (outcome.status === 'fulfilled') {
        done.push(outcome.value);
        if (globals.output === 'table') writeLines([outcomeLine(outcome.value)]);
        continue;
      }
      const { reason: error } = outcome as { reason: unknown };
      if (!(error instanceof CliError)) throw error;
      const told = withName(error, some[index] ?? '');
      if (error instanceof RefusedError && isFine(error)) {
        note(told.message);
        continue;
      }
      failed += 1;
      if (error.advice !== undefined) advice.add(error.advice);
      process.stderr.write(renderError(told, globals.debug === true));
    }
    if (signal.aborted || outcomes.every((outcome) => outcome.status === 'rejected' && !(outcome.reason instanceof RefusedError))) {
      untried = opIds.length - at - some.length;
      break;
    }
  }
  if (untried > 0) note(`${signal.aborted ? 'Interrupted: ' : ''}${counted(untried, 'more operation was', 'more operations were')} not tried.`);
  if (globals.output !== 'table') await show(globals.output, done, () => []);
  for (const sentence of advice) note(sentence); // once, however many it is for
  if (signal.aborted && untried > 0) return EXIT.interrupted;
  return failed === 0 ? EXIT.done : EXIT.failed;
}

const withName = (error: CliError, opId: string): CliError =>
  new CliError(error.message.includes(opId) ? error.message : `${opId}: ${error.message}`, undefined, error.status, error);

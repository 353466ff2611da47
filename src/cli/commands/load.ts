/** `svc load`: how long agents wait for a gateway at a given rate (docs/performance.md, Measure your own gateway). */
import { writeFileSync } from 'node:fs';
import { messageOf } from '../../core/base/text.ts';
import { htmlReport } from '../../load/html-report.ts';
import { HttpLane } from '../../load/http-lane.ts';
import { type Answer, failed, type Lane } from '../../load/lane.ts';
import type { Second } from '../../load/measurements.ts';
import { loadOpenly, type Measured } from '../../load/open-loop.ts';
import { msText, type Verdict, verdictOf } from '../../load/verdict.ts';
import { CliError, EXIT, type ExitStatus } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { note, show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { progressLine } from '../terminal/progress.ts';
import { fieldLines } from '../terminal/table.ts';
import { counted } from '../terminal/words.ts';
import { askedOf, figuresOf, valueOf } from './load-figures.ts';
import { type Fleet, fleetOf } from './load-fleet.ts';
import { grpcUrlOf, type LoadPlan, planOf } from './load-options.ts';

const CHECK_PATH = '/svc.governance.v1.PolicyService/CheckAction';
const FIRST_ANSWER_MS = 10_000;
/** An HTTP port may take a connection of gRPC without a word. */
const DOUBT_AFTER_MS = 1_000;
const PROBE_MS = 2_000;
/** Numbers of the checks before the load, one on each connection. */
const FIRST_CHECK = 1_000_000_000_000;

export async function run(invocation: Invocation): Promise<ExitStatus> {
  const plan = planOf(invocation.options);
  const api = await Api.of(invocation, { isPatient: true });
  const { apiUrl, proxy } = api.target;
  if (proxy !== undefined)
    throw new CliError(
      `${proxy.variable} sends requests to ${apiUrl} through a proxy, which would be measured as well`,
      'Exempt the gateway with NO_PROXY.',
    );
  const ended = new AbortController();
  const stop = (): void => {
    // The second time, nothing is tidied up any more.
    if (ended.signal.aborted) process.exit(EXIT.interrupted);
    note('Stopping; press Ctrl-C again to leave the agents of the load behind.');
    ended.abort();
  };
  process.on('SIGINT', stop).on('SIGTERM', stop);
  const fleet = fleetOf(api, plan);
  const lanes = await lanesOf(invocation, plan, fleet, apiUrl);
  let measured: Measured | undefined;
  try {
    await fleet.register(ended.signal).catch((error: unknown) => {
      throw withOrgAdvice(error, invocation);
    });
    await openAll(
      lanes,
      { plan, grpcUrl: plan.protocol === 'connect' ? undefined : grpcUrlOf(invocation, apiUrl) },
      ended.signal,
    );
    if (!ended.signal.aborted) measured = await loadWith(lanes, plan, ended.signal);
  } finally {
    for (const lane of lanes) lane.close();
    await tidyUp(fleet, plan, measured);
    process.off('SIGINT', stop).off('SIGTERM', stop);
  }
  if (measured === undefined) return EXIT.interrupted;
  return report(invocation, plan, { apiUrl, measured, wasStopped: ended.signal.aborted });
}

/** A key of one org may not register agents in the org that is the default. */
const withOrgAdvice = (error: unknown, { options }: Invocation): unknown =>
  error instanceof CliError && error.advice === undefined && options.text('org') === undefined
    ? new CliError(error.message, 'Name the org of the credential with --org <org>.', { cause: error })
    : error;

async function lanesOf(invocation: Invocation, plan: LoadPlan, fleet: Fleet, apiUrl: string): Promise<readonly Lane[]> {
  const many = (make: () => Lane): readonly Lane[] => Array.from({ length: plan.connections }, make);
  if (plan.protocol === 'connect') {
    const target = { url: new URL(`${apiUrl}${CHECK_PATH}`), bodyOf: fleet.checks.bodyOf };
    return many(() => new HttpLane(target));
  }
  const { CallLane, StreamLane } = await import('../../load/grpc-lane.ts');
  const target = { url: grpcUrlOf(invocation, apiUrl), checkOf: fleet.checks.checkOf };
  return many(() => (plan.protocol === 'grpc' ? new CallLane(target) : new StreamLane(target)));
}

type Opened = { readonly plan: LoadPlan; readonly grpcUrl: string | undefined };

/** Sends a check on every connection, so that none is opened within the load, and a wrong address is told at once. */
async function openAll(lanes: readonly Lane[], { plan, grpcUrl }: Opened, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const timers: NodeJS.Timeout[] = [];
  const late = new Promise<Answer>((resolve) => {
    timers.push(setTimeout(() => resolve(failed('no answer')), FIRST_ANSWER_MS));
    const doubt = async (url: string): Promise<void> => {
      if (await answersHttp(url)) resolve(failed(`${new URL(url).host} is an HTTP port, not that of gRPC`));
    };
    if (grpcUrl !== undefined) timers.push(setTimeout(() => void doubt(grpcUrl), DOUBT_AFTER_MS));
    signal.addEventListener('abort', () => resolve({ kind: 'allow', reason: '' }), { once: true });
  });
  const answers = await Promise.all(
    lanes.map((lane, nth) =>
      Promise.race([late, new Promise<Answer>((resolve) => lane.send(FIRST_CHECK + nth, resolve))]),
    ),
  );
  for (const timer of timers) clearTimeout(timer);
  const wrong = answers.find(({ kind }) => kind === 'error');
  if (wrong !== undefined)
    throw new CliError(
      `the first check was not decided: ${wrong.reason}`,
      plan.protocol === 'connect'
        ? 'Check the URL: it must be the HTTP address of svc-gateway, without a proxy that refuses.'
        : 'Name the gRPC address of the gateway with --grpc <host:port>.',
    );
  const [first] = answers.filter(({ kind }) => kind !== 'allow');
  if (first !== undefined)
    note(
      `warning: such checks are not allowed (${first.kind}): ${first.reason}. Name others with --org, --action and --resource.`,
    );
}

/** The health of a gateway is nothing that a port of gRPC tells over HTTP/1.1. */
const answersHttp = (url: string): Promise<boolean> =>
  fetch(`${url}/healthz`, { signal: AbortSignal.timeout(PROBE_MS) }).then(
    ({ ok }) => ok,
    () => false,
  );

async function loadWith(lanes: readonly Lane[], plan: LoadPlan, signal: AbortSignal): Promise<Measured> {
  const line = progressLine();
  line?.draw(`Load begins: ${plan.rate.toLocaleString('en')} checks/s …`);
  let errors = 0;
  const onSecond = (second: Second, elapsedSecs: number): void => {
    errors += second.errors;
    line?.draw(liveText(second, { elapsedSecs, seconds: plan.seconds, errors }));
  };
  const measured = await loadOpenly({ lanes, rate: plan.rate, seconds: plan.seconds, signal, onSecond });
  line?.clear();
  return measured;
}

const liveText = (
  { answered, waiting, p50, p99, longest }: Second,
  { elapsedSecs, seconds, errors }: { readonly elapsedSecs: number; readonly seconds: number; readonly errors: number },
): string =>
  [
    `${elapsedSecs} of ${seconds} s`,
    `${answered.toLocaleString('en')}/s`,
    `p50 ${msText(p50)}`,
    `p99 ${msText(p99)}`,
    `longest ${msText(longest)}`,
    `${waiting.toLocaleString('en')} waiting`,
    counted(errors, 'error'),
  ].join('  ');

/** Leaves nothing of the load at the gateway but its audit log, and says what it could not take away. */
async function tidyUp(fleet: Fleet, plan: LoadPlan, measured: Measured | undefined): Promise<void> {
  const firsts = Array.from({ length: plan.connections }, (_, nth) => FIRST_CHECK + nth);
  const numbers = [...firsts, ...Array.from({ length: measured?.sent ?? 0 }, (_, nth) => nth)];
  // Completing stops at the next Ctrl-C, which ends the process.
  if (measured !== undefined && measured.decisions.allow > 0) {
    const line = progressLine();
    line?.draw(`Completing ${counted(numbers.length, 'operation')} …`);
    await fleet.complete(numbers, Math.min(64, plan.connections * 16));
    line?.clear();
  }
  const left = await fleet.remove();
  const [agent] = left;
  if (agent !== undefined)
    note(
      `warning: ${counted(left.length, 'agent')} of the load ${left.length === 1 ? 'is' : 'are'} still registered; remove such as ${printable(`${agent.orgId}/${agent.teamId}/${agent.agentId}`)} with \`svc agents rm\`.`,
    );
}

type Outcome = { readonly apiUrl: string; readonly measured: Measured; readonly wasStopped: boolean };

async function report(
  { globals }: Invocation,
  plan: LoadPlan,
  { apiUrl, measured, wasStopped }: Outcome,
): Promise<ExitStatus> {
  const verdict = verdictOf(measured, plan);
  const asked = askedOf(plan, apiUrl);
  const figures = figuresOf(measured);
  if (plan.html !== undefined) writeReport(plan.html, htmlReport({ asked, figures, missed: verdict.missed, measured }));
  await show(globals.output, valueOf(plan, apiUrl, { measured, verdict, wasStopped }), () =>
    fieldLines(figures.map(([name, text]) => [name, text])),
  );
  if (verdict.isClientLate)
    note(
      `warning: this client came up to ${msText(measured.client.lateP99Ms)} late itself: that much of the waits is its own.`,
    );
  if (wasStopped) return EXIT.interrupted;
  if (verdict.missed.length > 0) throw new CliError(verdict.missed.join('; '), adviceOn(verdict));
  return EXIT.done;
}

function writeReport(path: string, html: string): void {
  try {
    writeFileSync(path, html);
  } catch (error) {
    note(`warning: the report cannot be written: ${messageOf(error)}`);
  }
}

function adviceOn({ limit }: Verdict): string | undefined {
  switch (limit) {
    case 'client':
      return 'Ask for a lower --rate, use a machine of its own, or run `svc load` on several and add up.';
    case 'gateway':
      return 'Try a lower --rate to find the one that it bears, or more --connections if the network is slow.';
    case undefined:
      return undefined;
  }
}

/** Reports a load of `svc load` to people and to programs. */
import type { Measured } from '../../load/open-loop.ts';
import { msText, percentText, type Verdict } from '../../load/verdict.ts';
import type { LoadPlan } from './load-options.ts';

type Fields = readonly (readonly [name: string, text: string])[];

const shown = (count: number): string => count.toLocaleString('en');

export const askedOf = (plan: LoadPlan, apiUrl: string): Fields => [
  ['gateway', apiUrl],
  ['rate', `${shown(plan.rate)} checks/s for ${plan.seconds} s`],
  ['over', `${plan.protocol}, ${shown(plan.connections)} connections`],
  ['agents', shown(plan.agents)],
  ['check', `${plan.action} on ${plan.resource}`],
  ['goals', goalsText(plan)],
  ['at', new Date().toISOString().replace(/\.\d+/, '')],
];

const goalsText = ({ goals: { p99Ms, errors } }: LoadPlan): string =>
  [
    ...(p99Ms === undefined ? [] : [`p99 at most ${p99Ms} ms`]),
    ...(errors === undefined ? [] : [`at most ${shown(errors)} errors`]),
  ].join(', ') || 'none';

export function figuresOf({ due, answered, decisions, errors, reasons, waits, perSecond, client }: Measured): Fields {
  const most = reasons.find(({ kind }) => kind === 'error');
  return [
    ['checks', `${shown(due)} due, ${shown(answered)} answered, ${shown(Math.round(perSecond))}/s`],
    [
      'decisions',
      `${shown(decisions.allow)} allow, ${shown(decisions.deny)} deny, ${shown(decisions.pending)} pending`,
    ],
    ['errors', `${shown(errors)}${most === undefined ? '' : `, most: ${most.reason}`}`],
    ['p50', msText(waits.p50)],
    ['p90', msText(waits.p90)],
    ['p99', msText(waits.p99)],
    ['p99.9', msText(waits.p999)],
    ['p99.99', msText(waits.p9999)],
    ['longest', msText(waits.longest)],
    ['client', `busy ${percentText(client.busy)}, itself ${msText(client.lateP99Ms)} late at p99`],
  ];
}

type Outcome = { readonly measured: Measured; readonly verdict: Verdict; readonly wasStopped: boolean };

export const valueOf = (plan: LoadPlan, apiUrl: string, { measured, verdict, wasStopped }: Outcome) => ({
  gateway: apiUrl,
  rate: plan.rate,
  duration_secs: measured.durationSecs,
  protocol: plan.protocol,
  connections: plan.connections,
  agents: plan.agents,
  stopped: wasStopped,
  due: measured.due,
  answered: measured.answered,
  answered_per_sec: measured.perSecond,
  unsent: measured.unsent,
  decisions: measured.decisions,
  errors: measured.errors,
  reasons: measured.reasons,
  wait_ms: measured.waits,
  client: { busy: measured.client.busy, late_p99_ms: measured.client.lateP99Ms },
  goals: { p99_ms: plan.goals.p99Ms ?? null, errors: plan.goals.errors ?? null },
  limit: verdict.limit ?? null,
  missed: verdict.missed,
  seconds: measured.seconds,
});

/** `svc stats`: what was checked, denied and spent in the last minutes to the last month. */
import type { Invocation } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { show, styledTable } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { type Column, isRows, type Row, valueAt } from '../terminal/table.ts';
import { agentText } from './listing.ts';

const DENIES: Column = { title: 'DENIES', cell: 'count', isWhole: true };
const OTHERS = '(others)';

const TABLES: readonly { readonly path: string; readonly columns: readonly Column[] }[] = [
  { path: 'denies.by_cause', columns: [DENIES, { title: 'CAUSE', cell: 'cause' }] },
  {
    path: 'denies.by_rule',
    columns: [
      DENIES,
      { title: 'POLICY', cell: (row) => row.policy ?? OTHERS },
      { title: 'RULE', cell: (row) => row.rule_id ?? '' },
    ],
  },
  {
    path: 'top.spenders',
    columns: [
      { title: 'SPENT', cell: (row) => usd(row.spend_usd), isWhole: true },
      { title: 'AGENT', cell: (row) => agentText(row) ?? OTHERS },
    ],
  },
  {
    path: 'top.agents',
    columns: [
      { title: 'CHECKS', cell: 'checks', isWhole: true },
      { title: 'DENIED', cell: 'denies', isWhole: true },
      { title: 'AGENT', cell: (row) => agentText(row) ?? OTHERS },
    ],
  },
  { path: 'denies.by_agent', columns: [DENIES, { title: 'AGENT', cell: (row) => agentText(row) ?? OTHERS }] },
  {
    path: 'orgs',
    columns: [
      { title: 'ORG', cell: 'org_id', isWhole: true },
      { title: 'ALLOWED', cell: 'allow', isWhole: true },
      { title: 'DENIED', cell: 'deny', isWhole: true },
      { title: 'PENDING', cell: 'pending', isWhole: true },
      { title: 'SPENT', cell: (row) => usd(row.spend_usd) },
    ],
  },
];
/** Rows of a table; all of them are in the other formats. */
const MOST_ROWS = 10;

export async function run(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const query = { window: options.text('since'), org_id: options.text('org') };
  const answer = await (await Api.of(invocation)).get('/api/v1/stats', 'checks', query);
  await show(globals.output, answer, () => [
    ...summaryOf(answer),
    ...TABLES.flatMap(({ path, columns }) => {
      const rows = valueAt(answer, path);
      return isRows(rows) && rows.length > 0 ? ['', ...styledTable(columns, rows.slice(0, MOST_ROWS))] : [];
    }),
  ]);
}

function summaryOf(answer: Row): readonly string[] {
  const number = (path: string): string => Number(valueAt(answer, path) ?? 0).toLocaleString('en-US');
  const p50 = valueAt(answer, 'latency_ms.p50');
  const checks = `${number('checks.allow')} allowed, ${number('checks.deny')} denied, ${number('checks.pending')} left to people`;
  return [
    printable(`Since ${String(answer.from)}: ${checks}; ${usd(answer.spend_usd)} spent.`),
    ...(typeof p50 === 'number'
      ? [`Half of the checks took at most ${p50} ms, 99 % at most ${number('latency_ms.p99')} ms.`]
      : []),
    ...(answer.incomplete === true ? ['There were too many orgs to count each by itself.'] : []),
  ];
}

const usd = (value: unknown): string =>
  `$${Number(value ?? 0).toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;

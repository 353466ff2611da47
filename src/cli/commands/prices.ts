/** `svc prices show <model>`: what its tokens cost. */
import type { Invocation } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import type { Row } from '../terminal/table.ts';

const RATES = [
  ['input', 'input_mtok'],
  ['output', 'output_mtok'],
  ['cache read', 'cache_read_mtok'],
  ['cache write', 'cache_write_mtok'],
] as const;
const SOURCES: Readonly<Record<string, string>> = {
  file: "the operator's file",
  table: 'the table of this release',
  highest: 'the highest price of any model: this one is unknown',
};

export async function run(invocation: Invocation): Promise<void> {
  const { options, globals } = invocation;
  const [model = ''] = invocation.args;
  const api = await Api.of(invocation);
  const answer = await api.get('/api/v1/prices', 'source', { model, provider: options.text('provider') });
  const by = typeof answer.provider === 'string' ? ` of ${answer.provider}` : '';
  await show(globals.output, answer, () => [
    printable(`${String(answer.model)}${by}, in US dollars per million tokens (${SOURCES[String(answer.source)]}):`),
    ...RATES.flatMap(([title, key]) => {
      const rate = rateText(answer[key]);
      return rate === undefined ? [] : [`  ${title.padEnd(12)}${rate}`];
    }),
  ]);
}

function rateText(rate: unknown): string | undefined {
  if (typeof rate === 'number') return String(rate);
  if (typeof rate !== 'object' || rate === null) return undefined;
  const { base, tiers } = rate as { readonly base: number; readonly tiers: readonly Row[] };
  return [String(base), ...tiers.map(({ start, price }) => `${String(price)} above ${String(start)} of input`)].join(
    '; ',
  );
}

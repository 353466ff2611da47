/** Routes for token prices of models (docs/spec.md, Prices). */
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import type { Price } from '../../core/prices/price.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { isLongerThan, MAX_LABEL_BYTES } from '../shared/limits.ts';
import { priceShape } from './shapes.ts';

async function show({ query }: Authorized, link: Link): Promise<HttpReply> {
  const model = query.get('model') ?? '';
  const provider = query.get('provider') ?? undefined;
  if (model === '') return invalid('model', 'is required');
  if (isLongerThan(model, MAX_LABEL_BYTES)) return invalid('model', `must be at most ${MAX_LABEL_BYTES} bytes`);
  if (provider === '' || isLongerThan(provider ?? '', MAX_LABEL_BYTES))
    return invalid('provider', `must be 1 to ${MAX_LABEL_BYTES} bytes`);
  const found = await link.call('findPrice', { model, provider });
  return found.ok ? ok({ status: 200, body: priceView(found.value) }) : found;
}

const priceView = ({ model, provider, rates, source }: Price) => ({
  model,
  provider: provider ?? null,
  input_mtok: rates.input_mtok ?? null,
  output_mtok: rates.output_mtok ?? null,
  cache_read_mtok: rates.cache_read_mtok ?? null,
  cache_write_mtok: rates.cache_write_mtok ?? null,
  source,
});

export const priceRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/api/v1/prices',
    access: { scope: 'read' },
    summary: 'Shows the token prices of a model',
    query: ['model', 'provider'],
    answers: { 200: priceShape },
    handle: show,
  },
];

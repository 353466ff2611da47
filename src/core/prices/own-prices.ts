/** The operator's own prices: `models:` of the file at `SVC_PRICES_PATH`, checked key by key. */
import { type DocumentProblem, isMapping, MappingReader } from '../base/mapping.ts';
import { compileGlob, type Glob, isLiteral, MAX_GLOB_LENGTH } from '../policy/glob.ts';
import { RATES, type RateName, type Rates } from './price.ts';

const MAX_MODELS = 10_000;
/** US dollars per million tokens: no token costs more than a dollar. */
const MAX_RATE = 1_000_000;
const REQUIRED: readonly RateName[] = ['input_mtok', 'output_mtok'];

export class OwnPrices {
  readonly #exact = new Map<string, Rates>();
  /** In the order in which they are written. */
  readonly #globs: { readonly glob: Glob; readonly rates: Rates }[] = [];

  constructor(models: readonly (readonly [pattern: string, rates: Rates])[]) {
    for (const [pattern, rates] of models) {
      if (isLiteral(pattern)) this.#exact.set(pattern, rates);
      else this.#globs.push({ glob: compileGlob(pattern), rates });
    }
  }

  /** A model's own name decides, else the first pattern that matches it. */
  find(model: string): Rates | undefined {
    return this.#exact.get(model) ?? this.#globs.find(({ glob }) => glob.matches(model))?.rates;
  }

  *all(): Iterable<Rates> {
    yield* this.#exact.values();
    for (const { rates } of this.#globs) yield rates;
  }
}

export const NO_OWN_PRICES = new OwnPrices([]);

/** Reads a parsed YAML document. Reports every mistake, not only the first; use the prices only without any. */
export function parseOwnPrices(raw: unknown): {
  readonly prices: OwnPrices;
  readonly problems: readonly DocumentProblem[];
} {
  const problems: DocumentProblem[] = [];
  const file = new MappingReader(isMapping(raw) ? raw : {}, [], problems);
  if (!isMapping(raw)) file.note({ path: [], problem: 'must be a mapping with the key models' });
  file.refuseKeysExcept(['models']);
  const { models } = file.raw;
  if (models === undefined) {
    if (isMapping(raw)) file.missing('models');
    return { prices: NO_OWN_PRICES, problems };
  }
  if (!isMapping(models)) {
    file.refuse('models', 'must be a mapping of models, or patterns such as "my-model-*", to their prices');
    return { prices: NO_OWN_PRICES, problems };
  }
  const entries = Object.entries(models);
  if (entries.length > MAX_MODELS) file.refuse('models', `has ${entries.length} models; the maximum is ${MAX_MODELS}`);
  const read = entries.slice(0, MAX_MODELS).map(([model, rates]) => [model, readRates(file, model, rates)] as const);
  return { prices: new OwnPrices(read), problems };
}

function readRates(file: MappingReader, model: string, raw: unknown): Rates {
  const path = ['models', model];
  if (model === '' || model.length > MAX_GLOB_LENGTH)
    file.note({ path, problem: `must be a name or pattern of 1 to ${MAX_GLOB_LENGTH} characters`, onKey: true });
  if (!isMapping(raw)) {
    file.note({ path, problem: `must be a mapping with the keys ${RATES.join(', ')}` });
    return {};
  }
  const reader = file.within(path, raw);
  reader.refuseKeysExcept(RATES);
  const rates: Partial<Record<RateName, number>> = {};
  for (const name of RATES) {
    const value = raw[name];
    if (typeof value === 'number' && value >= 0 && value <= MAX_RATE) rates[name] = value;
    else if (value !== undefined) reader.refuse(name, `must be US dollars per million tokens, from 0 to ${MAX_RATE}`);
    else if (REQUIRED.includes(name)) reader.missing(name);
  }
  return rates;
}

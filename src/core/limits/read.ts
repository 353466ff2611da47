/** The `limits:` section of a policy document. Mistakes are noted at the reader. */
import { DAY_MS, durationMs } from '../base/duration.ts';
import { isMapping, type MappingReader } from '../base/mapping.ts';
import { capToMicro } from '../base/money.ts';
import { MAX_LIMIT_USD } from '../budget/config.ts';
import { kindOf, readGlobs, readName, refuseTwins } from '../policy/readers.ts';
import {
  ENDING_PERS,
  LIMIT_PERS,
  LIMIT_UNITS,
  type Limit,
  type LimitPer,
  type LimitUnit,
  ON_EXCEED,
  type OnExceed,
} from './limit.ts';

export const MAX_LIMITS = 100;
/** Limits calls and tokens: sums of them stay exact. */
export const MAX_LIMIT_COUNT = 1_000_000_000_000;
const LEAST_EVERY_MS = 10_000;
const MOST_EVERY_MS = 31 * DAY_MS;

export const LIMIT_KEYS = ['id', 'per', ...LIMIT_UNITS, 'every', 'actions', 'resources', 'on_exceed', 'step'] as const;

export function readLimits(document: MappingReader): readonly Limit[] {
  const { limits } = document.raw;
  if (limits === undefined) return [];
  if (!Array.isArray(limits))
    return document.refuse('limits', `must be a list of limits; this is ${kindOf(limits)}`) ?? [];
  if (limits.length > MAX_LIMITS)
    return document.refuse('limits', `has ${limits.length} limits; the maximum per document is ${MAX_LIMITS}`) ?? [];
  const read = limits.flatMap((raw: unknown, index) => readLimit(document, index, raw) ?? []);
  refuseTwins(document, 'limits', limits);
  return read;
}

function readLimit(document: MappingReader, index: number, raw: unknown): Limit | undefined {
  const path = ['limits', index];
  if (!isMapping(raw))
    return document.note({
      path,
      problem: `a limit must be a mapping with the keys ${LIMIT_KEYS.join(', ')}; this is ${kindOf(raw)}`,
    });
  const from = document.within(path, raw);
  from.refuseKeysExcept(LIMIT_KEYS);
  const id = readName(from, 'id');
  const per = readPer(from);
  const unit = readUnit(from);
  const max = unit === undefined ? undefined : readAmount(from, unit, unit);
  const everyMs = readEvery(from, per);
  const actions = readGlobs(from, 'actions');
  const resources = readGlobs(from, 'resources');
  const onExceed = readOnExceed(from);
  const step = readStep(from, unit, onExceed) ?? max;
  if (id === undefined || per === undefined || unit === undefined || max === undefined || step === undefined)
    return undefined;
  return { id, per, unit, max, everyMs, actions, resources, onExceed, step };
}

function readPer(from: MappingReader): LimitPer | undefined {
  const { per } = from.raw;
  if (per === undefined) return from.missing('per');
  return LIMIT_PERS.find((known) => known === per) ?? from.refuse('per', `must be one of ${LIMIT_PERS.join(', ')}`);
}

function readUnit(from: MappingReader): LimitUnit | undefined {
  const [unit, ...others] = LIMIT_UNITS.filter((each) => from.raw[each] !== undefined);
  if (unit === undefined) return from.note({ path: [], problem: `one of ${LIMIT_UNITS.join(', ')} is missing` });
  for (const other of others)
    from.note({ path: [other], onKey: true, problem: `a limit has one maximum, and ${unit} is one already` });
  return unit;
}

function readAmount(from: MappingReader, key: string, unit: LimitUnit): number | undefined {
  const value = from.raw[key];
  if (unit === 'usd') {
    const micro = typeof value === 'number' ? capToMicro(value, MAX_LIMIT_USD) : undefined;
    return micro !== undefined && micro > 0
      ? micro
      : from.refuse(key, `must be an amount in US dollars above 0, up to ${MAX_LIMIT_USD}`);
  }
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_LIMIT_COUNT
    ? value
    : from.refuse(key, `must be a whole number from 1 to ${MAX_LIMIT_COUNT}; to allow none, deny by a rule`);
}

function readEvery(from: MappingReader, per: LimitPer | undefined): number | undefined {
  const { every } = from.raw;
  if (every === undefined)
    return per === undefined || ENDING_PERS.has(per)
      ? undefined
      : from.note({ path: [], problem: `every is missing; only limits per session or lineage may leave it out` });
  const ms = durationMs(every);
  return ms !== undefined && ms >= LEAST_EVERY_MS && ms <= MOST_EVERY_MS
    ? ms
    : from.refuse('every', 'must be a duration such as 30s, 10m, 1h or 1d, from 10s to 31d');
}

function readOnExceed(from: MappingReader): OnExceed {
  const { on_exceed: value = 'deny' } = from.raw;
  return ON_EXCEED.find((known) => known === value) ?? from.refuse('on_exceed', 'must be deny or ask') ?? 'deny';
}

function readStep(from: MappingReader, unit: LimitUnit | undefined, onExceed: OnExceed): number | undefined {
  if (from.raw.step === undefined || unit === undefined) return undefined;
  if (onExceed !== 'ask')
    return from.note({ path: ['step'], onKey: true, problem: 'is only for limits whose on_exceed is ask' });
  return readAmount(from, 'step', unit);
}

/** Options that commands of several kinds have. */
import type { OptionRow } from './command-row.ts';

export const ORG: OptionRow = { flags: '--org <org>', meaning: 'only this org' };
export const LIMIT: OptionRow = { flags: '--limit <count>', meaning: 'show at most this many (default: 100)' };

/** Options that commands of several kinds have. */
import type { OptionRow } from './command-row.ts';

export const ORG: OptionRow = { flags: '--org <org>', meaning: 'only this org' };
export const TEAM: OptionRow = { flags: '--team <team>', meaning: 'only this team' };
export const AGENT: OptionRow = {
  flags: '--agent <agent>',
  meaning: 'only this agent: its id, or <org>/<team>/<agent>',
};
export const LIMIT: OptionRow = { flags: '--limit <count>', meaning: 'show at most this many (default: 100)' };

/** Options that describe a check. */
export const CHECKED: readonly OptionRow[] = [
  { flags: '--agent <agent>', meaning: '<org>/<team>/<agent>, or /<team>/<agent>', isRequired: true },
  { flags: '--action <action>', meaning: 'such as tool.call or file.write', isRequired: true },
  { flags: '--resource <resource>', meaning: 'a tool, a model, a path, a host' },
  { flags: '--attr <name=value...>', meaning: 'an attribute; the value is JSON, or else plain text' },
  { flags: '--cost <usd>', meaning: 'expected cost' },
  { flags: '--caller <agent>', meaning: 'the agent that calls this one' },
];

export const DECIDED_BY: readonly OptionRow[] = [
  { flags: '--action <glob>', meaning: "only these actions, such as 'file.*'" },
  { flags: '--resource <glob>', meaning: 'only these resources' },
  { flags: '--policy <name>', meaning: 'only what this policy decided' },
  { flags: '--rule <id>', meaning: 'only what this rule decided' },
];

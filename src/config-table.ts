import { VARIABLES } from './config.ts';

/** Their defaults depend on the machine, so the table says how. */
const DEFAULT_IN_WORDS: Readonly<Record<string, string>> = {
  SVC_IO_THREADS: 'cores − 1, from 1 to 64',
  SVC_CRYPTO_THREADS: 'cores − 1, from 1 to 64',
  SVC_MAX_OPS: '1,000 for each MiB of memory, at most 4,000,000',
  SVC_MAX_ORG_OPS: '500 for each MiB of memory, at most 2,000,000',
  SVC_MAX_AGENTS: '300 for each MiB of memory, at most 1,000,000',
  SVC_MAX_ORG_AGENTS: '150 for each MiB of memory, at most 500,000',
};

/** The README's table of variables, in Markdown. */
export function configTable(): string {
  const rows = Object.entries(VARIABLES).map(([name, { fallback, meaning }]) => {
    const shown = DEFAULT_IN_WORDS[name] ?? (fallback === undefined || fallback === '' ? 'unset' : `\`${fallback}\``);
    return `| \`${name}\` | ${shown} | ${meaning.replaceAll('|', '\\|')} |\n`;
  });
  return `| variable | default | meaning |\n| --- | --- | --- |\n${rows.join('')}`;
}

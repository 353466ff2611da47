import { VARIABLES } from './config.ts';

/** The table of variables in docs/configuration.md, in Markdown. */
export function configTable(): string {
  const rows = Object.entries(VARIABLES).map(([name, { fallback, fallbackRule, meaning }]) => {
    const shown = fallbackRule ?? (fallback === undefined || fallback === '' ? 'unset' : `\`${fallback}\``);
    return `| \`${name}\` | ${shown} | ${meaning.replaceAll('|', '\\|')} |\n`;
  });
  return `| variable | default | meaning |\n| --- | --- | --- |\n${rows.join('')}`;
}

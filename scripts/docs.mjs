// Writes what is generated into the documents, between its markers. Run it after a change of the settings or errors:
// npm run docs
import { readFileSync, writeFileSync } from 'node:fs';
import { configTable } from '../dist/src/config-table.js';
import { errorTable } from '../dist/src/error-table.js';

/** Replaces what stands between `<!-- name -->` and `<!-- /name -->`. */
function fill(document, name, content) {
  const file = new URL(`../docs/${document}`, import.meta.url);
  const [before, rest] = readFileSync(file, 'utf8').split(`<!-- ${name} -->\n`);
  const after = rest.slice(rest.indexOf(`<!-- /${name} -->`));
  writeFileSync(file, `${before}<!-- ${name} -->\n${content}${after}`);
}

fill('configuration.md', 'config', configTable());
fill('errors.md', 'errors', errorTable());

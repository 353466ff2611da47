// Writes the table of variables into the README, between its markers. Run it after a change of src/config.ts: npm run
// docs
import { readFileSync, writeFileSync } from 'node:fs';
import { configTable } from '../dist/src/config-table.js';

const README = new URL('../README.md', import.meta.url);
const text = readFileSync(README, 'utf8');
writeFileSync(
  README,
  text.replace(/(<!-- config -->\n)[\s\S]*?(<!-- \/config -->)/, (_, open, close) => `${open}${configTable()}${close}`),
);

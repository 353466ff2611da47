// Writes what is generated: into the documents, between its markers, and the schemas of policy files. Run it after a
// change of the settings, the errors or what may stand in policies: npm run docs
import { readFileSync, writeFileSync } from 'node:fs';
import { configTable } from '../dist/src/config/table.js';
import { POLICY_SCHEMA, POLICY_TEST_SCHEMA } from '../dist/src/core/policy/schema.js';
import { describeApi } from '../dist/src/doors/api/openapi.js';
import { routesOf } from '../dist/src/doors/api/routes.js';
import { toolTables } from '../dist/src/doors/coding-agents/tool-page.js';
import { errorTable } from '../dist/src/doors/error-table.js';

/** The types of the API's answers, by the compiler that the generator asks for. */
async function writeTypes() {
  const { default: openapiTS, astToString } = await import('../web/node_modules/openapi-typescript/dist/index.mjs');
  const ast = await openapiTS(new URL('../docs/openapi.json', import.meta.url));
  const head = '/** Generated from docs/openapi.json: npm run docs */\n';
  writeFileSync(new URL('../web/src/base/schema.d.ts', import.meta.url), head + astToString(ast));
}

/** Replaces what stands between `<!-- name -->` and `<!-- /name -->`. */
function fill(document, name, content) {
  const file = new URL(`../docs/${document}`, import.meta.url);
  const [before, rest] = readFileSync(file, 'utf8').split(`<!-- ${name} -->\n`);
  const after = rest.slice(rest.indexOf(`<!-- /${name} -->`));
  writeFileSync(file, `${before}<!-- ${name} -->\n${content}${after}`);
}

const rows = routesOf({
  hasAccountStore: true,
  maxLogins: 100,
  ownOrigins: [],
  httpHost: '127.0.0.1',
  opsTtlSecs: 60,
});
writeFileSync(new URL('../docs/openapi.json', import.meta.url), `${JSON.stringify(describeApi(rows), null, 2)}\n`);

await writeTypes(); // of the dashboard

fill('configuration.md', 'config', configTable());
fill('errors.md', 'errors', errorTable());
fill('hook-tools.md', 'tools', toolTables());

const writeSchema = (name, schema) =>
  writeFileSync(new URL(`../schemas/${name}.schema.json`, import.meta.url), `${JSON.stringify(schema, null, 2)}\n`);

writeSchema('policy', POLICY_SCHEMA);
writeSchema('policy-test', POLICY_TEST_SCHEMA);

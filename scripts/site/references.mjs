// References made from what they describe, as Markdown: the HTTP API, the protocol buffers and the commands of `svc`.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const inLine = (text = '') => text.replaceAll('|', '\\|').replaceAll(/\s*\n\s*/g, ' ');
/** Without what would be HTML. */
const cell = (text) => inLine(text).replaceAll('<', '&lt;');
const code = (text) => `\`${inLine(text)}\``;
const table = (head, rows) =>
  rows.length === 0
    ? ''
    : `| ${head.join(' | ')} |\n|${' --- |'.repeat(head.length)}\n${rows.map((row) => `| ${row.join(' | ')} |`).join('\n')}\n`;

/** `#/components/schemas/Op` → `Op` */
const nameOf = (ref) => ref.slice(ref.lastIndexOf('/') + 1);

function typeOf(schema = {}) {
  if (schema.$ref !== undefined) return `[${nameOf(schema.$ref)}](#${nameOf(schema.$ref).toLowerCase()})`;
  const options = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (options !== undefined) return options.map(typeOf).join(' or ');
  if (schema.enum !== undefined) return schema.enum.map((each) => code(JSON.stringify(each))).join(' ');
  if (schema.const !== undefined) return code(JSON.stringify(schema.const));
  if (schema.type === 'array') return `list of ${typeOf(schema.items)}`;
  return [schema.type ?? 'any'].flat().join(' or ');
}

function fieldsOf(schema = {}) {
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => [
    code(name) + (schema.required?.includes(name) ? '' : '?'),
    typeOf(field),
    cell(field.description),
  ]);
  return table(['field', 'type', ''], rows);
}

function operationOf({ path, method, operation }, shared) {
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
  const answers = Object.entries(operation.responses).map(([status, answer]) => {
    const { content = {}, description } = answer.$ref === undefined ? answer : shared[nameOf(answer.$ref)];
    const schema = Object.values(content)[0]?.schema;
    return [code(status), cell(description), schema === undefined ? '' : typeOf(schema)];
  });
  const parameters = (operation.parameters ?? []).map((each) => [
    code(each.name) + (each.required ? '' : '?'),
    each.in ?? '',
    typeOf(each.schema),
    cell(each.description ?? each.schema?.description),
  ]);
  return [
    `### ${method.toUpperCase()} ${path}\n`,
    `${operation.summary ?? ''}. ${operation.description ?? ''}\n`,
    table(['parameter', 'in', 'type', ''], parameters),
    body === undefined ? '' : `Body: ${body.properties === undefined ? typeOf(body) : `\n\n${fieldsOf(body)}`}\n`,
    table(['status', '', 'body'], answers),
  ].join('\n');
}

export function httpReference(root) {
  const api = JSON.parse(readFileSync(join(root, 'docs', 'openapi.json'), 'utf8'));
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const parts = api.tags.map(({ name, description }) => {
    const own = operations.filter(({ operation }) => operation.tags?.[0] === name);
    return `## ${name}\n\n${description}\n\n${own.map((each) => operationOf(each, api.components.responses)).join('\n')}`;
  });
  const schemas = Object.entries(api.components.schemas).map(
    ([name, schema]) => `### ${name}\n\n${schema.description ?? ''}\n\n${fieldsOf(schema) || typeOf(schema)}\n`,
  );
  return `# HTTP reference\n\nMade from [openapi.json](../docs/openapi.json).\n\n${parts.join('\n')}\n## Schemas\n\n${schemas.join('\n')}`;
}

export function grpcReference(root) {
  const folder = join(root, 'proto', 'svc', 'governance', 'v1');
  const files = readdirSync(folder).filter((name) => name.endsWith('.proto'));
  const parts = files.map((name) => `## ${name}\n\n\`\`\`proto\n${readFileSync(join(folder, name), 'utf8')}\`\`\`\n`);
  return `# gRPC reference\n\nThe services and messages, as they are compiled.\n\n${parts.join('\n')}`;
}

export async function commandReference(root) {
  const { COMMANDS, GROUPS } = await import(join(root, 'dist', 'src', 'cli', 'commands.js'));
  const commandOf = ({ synopsis, summary, options = [], example }) =>
    [
      `### svc ${cell(synopsis)}\n`,
      `${cell(summary[0].toUpperCase() + summary.slice(1))}.\n`,
      table(
        ['option', ''],
        options.map(({ flags, meaning, choices }) => [
          code(flags),
          cell(meaning + (choices === undefined ? '' : ` (${choices.join(', ')})`)),
        ]),
      ),
      `\`\`\`sh\n${example}\n\`\`\`\n`,
    ].join('\n');
  const parts = GROUPS.map(({ name, summary }) => {
    const own = COMMANDS.filter(({ synopsis }) => synopsis.split(' ')[0] === name);
    return `## ${name}\n\nsvc ${name}: ${summary}.\n\n${own.map(commandOf).join('\n')}`;
  });
  return `# Command reference\n\nWhat \`svc <command> --help\` says.\n\n${parts.join('\n')}`;
}

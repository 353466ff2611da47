import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAst } from 'rolldown/parseAst';
import { describe, expect, it } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

type Node = { readonly type: string; readonly [key: string]: unknown };

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';

/** Whether a call begins at the library's `z`, as `z.string()` and `z.array(…).min(1)` do. */
function isSchemaCall(node: Node): boolean {
  let callee = node.type === 'CallExpression' ? node.callee : undefined;
  while (isNode(callee)) {
    if (callee.type === 'Identifier') return callee.name === 'z';
    callee =
      callee.type === 'MemberExpression' ? callee.object : callee.type === 'CallExpression' ? callee.callee : undefined;
  }
  return false;
}

/** A function with a body of statements runs at every request; one that is a single expression only names a schema. */
const runsStatements = (node: Node): boolean =>
  /Function/.test(node.type) && isNode(node.body) && node.body.type === 'BlockStatement';

function schemasMadeInFunctions(code: string): readonly string[] {
  const found: string[] = [];
  const visit = (value: unknown, isInside: boolean): void => {
    if (Array.isArray(value)) for (const each of value) visit(each, isInside);
    if (!isNode(value)) return;
    // A recursive schema names itself in a getter, which the library asks once.
    if (value.kind === 'get') return;
    if (isInside && isSchemaCall(value)) {
      found.push(code.slice(value.start as number, value.end as number).slice(0, 60));
      return;
    }
    const within = isInside || runsStatements(value);
    for (const [key, child] of Object.entries(value)) if (key !== 'type') visit(child, within);
  };
  visit(parseAst(code, { lang: 'ts' }), false);
  return found.filter((text) => !text.startsWith('z.toJSONSchema('));
}

describe('schemas of requests', () => {
  it('recognizes a schema that each call of a function compiles anew', () => {
    const code =
      'const a = z.string(); const named = (s: string) => z.literal(s);\nfunction read(b: unknown) { return z.object({ a }).min(1).parse(b); }';
    expect(schemasMadeInFunctions(code)).toEqual(['z.object({ a }).min(1).parse(b)']);
  });

  it('are made once, when the doors are loaded', () => {
    const doors = join(PACKAGE_ROOT, 'src', 'doors');
    const files = readdirSync(doors, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
    expect(files.length).toBeGreaterThan(80);
    expect(
      files.flatMap((file) =>
        schemasMadeInFunctions(readFileSync(join(doors, file), 'utf8')).map((schema) => `${file}: ${schema}`),
      ),
    ).toEqual([]);
  });
});

/** An example for a schema, made from it, so that it always fits: a table says what a name stands for. */
import { DIGITS } from '../connect/describe.ts';

type Schema = Readonly<Record<string, unknown>>;

const TIME = '2026-01-31T12:00:00Z';

/** By the name of the property. */
const VALUES: Readonly<Record<string, unknown>> = {
  org_id: 'acme',
  orgId: 'acme',
  team_id: 'search',
  teamId: 'search',
  agent_id: 'crawler',
  agentId: 'crawler',
  op_id: '4bf92f3577b34da6:00f067aa0ba902b7',
  opId: '4bf92f3577b34da6:00f067aa0ba902b7',
  trace_id: '4bf92f3577b34da6',
  traceId: '4bf92f3577b34da6',
  span_id: '00f067aa0ba902b7',
  spanId: '00f067aa0ba902b7',
  action: 'tool.call',
  resource: 'web_search',
  reason: 'web tools only',
  policy: 'search-team',
  rule_id: 'web-only',
  ruleId: 'web-only',
  credential_token: 'svcagent_a-token-of-32-characters-or-more',
  credentialToken: 'svcagent_a-token-of-32-characters-or-more',
  email: 'ada@example.com',
  password: 'correct horse battery staple',
  actor: 'key:2f6c9a',
  parent: 'acme/search/lead',
  timestamp: TIME,
  gateway: 'gateway-1',
  hash: '6dae92a9a7cb5ed6a6b6b7ec57c5e6ca2ac81a4e8c7e7f6ce8b13a4d9d6c9a0f',
  signature: `${'b3xD'.repeat(21)}Ag`,
  code: 'invalid_argument',
  cursor: null,
  next_cursor: null,
};

export function exampleOf(schema: Schema, defs: Readonly<Record<string, unknown>>, name = '', depth = 0): unknown {
  const { $ref, anyOf, type, properties } = schema as Record<string, any>;
  if (typeof $ref === 'string') return exampleOf((defs[$ref.split('/').at(-1)!] ?? {}) as Schema, defs, name, depth);
  if ('const' in schema) return schema['const'];
  if (Array.isArray(schema['enum'])) return schema['enum'][0];
  if (Array.isArray(anyOf)) return exampleOf(anyOf[0] as Schema, defs, name, depth);
  if (properties !== undefined) {
    const shown = Object.entries(properties as Record<string, Schema>).filter(
      ([key]) => depth < 3 || (schema['required'] as readonly string[] | undefined)?.includes(key),
    );
    return Object.fromEntries(shown.map(([key, inner]) => [key, exampleOf(inner, defs, key, depth + 1)]));
  }
  if (type === 'array') return depth > 6 ? [] : [exampleOf(schema['items'] as Schema, defs, name, depth + 1)];
  if (type === 'object') return {};
  return leafOf(schema, name);
}

function leafOf({ type, format, minimum, pattern }: Schema, name: string): unknown {
  if (pattern === DIGITS) return '1';
  if (type === 'boolean') return false;
  if (type === 'integer' || type === 'number') return Math.max(1, Number(minimum ?? 1));
  if (format === 'date-time') return TIME;
  const known = VALUES[name];
  if (type === 'string')
    return typeof known === 'string' ? known : name === '' ? 'text' : `a ${name.replaceAll('_', ' ')}`;
  return known ?? null;
}

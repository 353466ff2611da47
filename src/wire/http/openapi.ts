/** The description of the API (OpenAPI 3.1), made from the table of routes, so that it is always complete. */
import { z } from 'zod';
import { QUERY, type QueryName } from './query-names.ts';
import { HTTP_STATUS } from './reply.ts';
import type { Answer, Route } from './route.ts';

type Json = Readonly<Record<string, unknown>>;

const OPENAPI_VERSION = '3.1.0';

export function describeApi(rows: readonly Route[]): Json {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const row of rows) (paths[templateOf(row.path)] ??= {})[row.method] = operationOf(row);
  const { document, schemas } = liftDefinitions({
    openapi: OPENAPI_VERSION,
    info: { title: 'svc-gateway', version: 'v1', summary: 'Governs software agents: policy, operations in flight, budgets, audit.' },
    servers: [{ url: '/' }],
    paths,
  });
  return {
    ...document,
    components: {
      schemas: { ...schemas, Problem: PROBLEM },
      responses: { Problem: { description: 'A problem document (RFC 9457)', content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } } } },
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key, or an access token.' },
        ticket: { type: 'apiKey', in: 'query', name: 'ticket', description: 'Of POST /api/v1/auth/ws-ticket; opens one stream.' },
      },
    },
  };
}

/** `/a/:id` as the description writes it: `/a/{id}`. */
export const templateOf = (path: string): string => path.replaceAll(/:(\w+)/g, '{$1}');

const PROBLEM: Json = {
  type: 'object',
  required: ['type', 'title', 'status', 'detail', 'code'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    detail: { type: 'string', description: 'One sentence for a human.' },
    code: { enum: Object.keys(HTTP_STATUS), description: 'One word for a program.' },
    field: { type: 'string', description: 'Which part of the request does not fit.' },
  },
};

function operationOf(row: Route): Json {
  const { access, summary, body } = row;
  const security = access === 'public' ? [] : [{ bearer: [] }, ...(row.query?.includes('ticket') === true ? [{ ticket: [] }] : [])];
  return {
    operationId: operationIdOf(row),
    summary,
    tags: [tagOf(row.path)],
    ...(access === 'public' ? {} : { description: `Needs the \`${access.scope}\` scope.` }),
    security,
    parameters: [...pathParameters(row.path), ...(row.query ?? []).map(queryParameter)],
    ...(body === undefined ? {} : { requestBody: { required: !body.safeParse({}).success, content: { 'application/json': { schema: schemaOf(body, 'input') } } } }),
    responses: responsesOf(row),
  };
}

/** `get /api/v1/ops/:id` is `get_ops_id`; a path that is served twice has its prefix in the name. */
const operationIdOf = ({ method, path }: Route): string => `${method}_${path.replace('/api/v1/', '').replaceAll(/[^A-Za-z0-9]+/g, '_').replaceAll(/^_|_$/g, '')}${path.startsWith('/api/v1/') ? '' : '_root'}`;

const tagOf = (path: string): string => (path.startsWith('/api/v1/') ? path.split('/')[3] : path.split('/')[1]?.replaceAll('.', '')) || 'root';

const pathParameters = (path: string): readonly Json[] =>
  [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } }));

const queryParameter = (name: QueryName): Json => ({ name, in: 'query', required: false, schema: schemaOf(QUERY[name], 'input') });

const PROBLEM_RESPONSE = { $ref: '#/components/responses/Problem' };

function responsesOf({ access, limit, path, body, query, answers, refusals }: Route): Json {
  const problems = [
    ...(body !== undefined || query !== undefined || path.includes('/:') ? [400] : []),
    ...(access === 'public' ? [] : [401, 403]),
    ...(path.includes('/:') ? [404] : []),
    ...(body === undefined ? [] : [413]),
    ...(limit === 'none' ? [] : [429, 503]),
    ...(refusals ?? []),
  ];
  return {
    ...Object.fromEntries(Object.entries(answers ?? { 200: ANYTHING }).map(([status, answer]) => [status, responseOf(answer)])),
    ...Object.fromEntries(problems.map((status) => [status, PROBLEM_RESPONSE])),
    default: PROBLEM_RESPONSE,
  };
}

const ANYTHING: Answer = z.unknown();

function responseOf(answer: Answer): Json {
  if (answer === 'empty') return { description: 'Done' };
  if ('mediaTypes' in answer) return { description: 'Text', content: Object.fromEntries(answer.mediaTypes.map((type) => [type, { schema: { type: 'string' } }])) };
  return { description: 'The answer', content: { 'application/json': { schema: schemaOf(answer, 'output') } } };
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' }) as Json;
  return rest;
}

/** A schema that refers to itself has its own definitions, which are moved to the components. */
function liftDefinitions(document: Json): { readonly document: Json; readonly schemas: Json } {
  const schemas: Record<string, unknown> = {};
  const text = JSON.stringify(document, (_key, value: unknown) => {
    if (typeof value !== 'object' || value === null || !('$defs' in value)) return value;
    const { $defs, ...rest } = value;
    Object.assign(schemas, $defs);
    return rest;
  });
  const lifted = (json: string): Json => JSON.parse(json.replaceAll('"#/$defs/', '"#/components/schemas/')) as Json;
  return { document: lifted(text), schemas: lifted(JSON.stringify(schemas)) };
}

/** The description of the API (OpenAPI 3.1), made from the table of routes, so that it is always complete. */
import { z } from 'zod';
import { SCOPES } from '../../core/identity/roles.ts';
import { OP_STATES, OP_TRIGGERS } from '../../core/ops/op-state.ts';
import { HTTP_STATUS } from '../engine/reply.ts';
import { type AnswerShape, QUERY, type QueryName, type Route } from '../engine/route.ts';
import { type HttpStatus, STATUS_TEXT } from '../shared/http-answer.ts';
import { REFRESH_COOKIE } from './accounts.ts';

type Json = Readonly<Record<string, unknown>>;

const OPENAPI_VERSION = '3.1.0';
const PREFIX = '/api/v1/';

export function describeApi(rows: readonly Route[]): Json {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const row of rows) (paths[templateOf(row.path)] ??= {})[row.method] = operationOf(row);
  const { document, schemas } = liftDefinitions({
    openapi: OPENAPI_VERSION,
    info: {
      title: 'svc-gateway',
      version: 'v1',
      summary: 'Governs software agents: policy, operations in flight, budgets, audit.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths,
  });
  return {
    ...document,
    components: {
      schemas: { ...schemas, Problem: PROBLEM },
      headers: HEADERS,
      responses: problemResponses(rows.flatMap(problemsOf)),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key or an access token.' },
        agent_token: { type: 'http', scheme: 'bearer', description: "An agent's own token." },
        ticket: {
          type: 'apiKey',
          in: 'query',
          name: 'ticket',
          description: 'From POST /api/v1/auth/ws-ticket; opens one stream.',
        },
        refresh_cookie: {
          type: 'apiKey',
          in: 'cookie',
          name: REFRESH_COOKIE,
          description: 'Set by POST /api/v1/auth/login and renewed by POST /api/v1/auth/refresh.',
        },
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
    detail: { type: 'string', description: 'One sentence for people.' },
    code: { type: 'string', enum: Object.keys(HTTP_STATUS), description: 'A stable code for programs.' },
    field: { type: 'string', description: 'With `invalid_argument`: the part of the request that is wrong.' },
    needed_scope: { type: 'string', enum: SCOPES, description: 'With `insufficient_scope`.' },
    op_id: { type: 'string', description: 'With `invalid_transition`.' },
    from: { type: 'string', enum: OP_STATES, description: 'With `invalid_transition`: the state of the operation.' },
    trigger: { type: 'string', enum: OP_TRIGGERS, description: 'With `invalid_transition`: the requested action.' },
    problems: {
      type: 'array',
      items: { type: 'string' },
      description: 'With `policy_invalid`: each mistake and its file.',
    },
    retry_after_secs: { type: 'integer', description: 'Same as the header `Retry-After`.' },
  },
};

const header = (description: string, type = 'string'): Json => ({ description, schema: { type } });

/** What answers may carry, besides the headers of every answer. */
const HEADERS = {
  'WWW-Authenticate': header('`Bearer`; includes the required scope if the credential lacks it.'),
  'Retry-After': header('Seconds to wait before retrying.', 'integer'),
  RateLimit: header('Remaining requests, and seconds until there are more.'),
  'RateLimit-Policy': header('Quota of requests, and its window in seconds.'),
  Upgrade: header('`websocket`'),
  'Sec-WebSocket-Version': header('`13`'),
  'Set-Cookie': header('Sets, renews or clears the refresh cookie.'),
  'Content-Disposition': header('File name for saving the response.'),
} as const;
type HeaderName = keyof typeof HEADERS;

const headersOf = (names: readonly HeaderName[] = []): Json =>
  names.length === 0
    ? {}
    : { headers: Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])) };

const PROBLEM_HEADERS: Readonly<Partial<Record<HttpStatus, readonly HeaderName[]>>> = {
  401: ['WWW-Authenticate'],
  403: ['WWW-Authenticate'],
  423: ['Retry-After'],
  426: ['Upgrade', 'Sec-WebSocket-Version'],
  429: ['Retry-After', 'RateLimit', 'RateLimit-Policy'],
  503: ['Retry-After'],
};

const problemResponse = (description: string, headers?: readonly HeaderName[]): Json => ({
  description,
  ...headersOf(headers),
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
});

/** By the name of the status, `NotFound`; `Problem` is any of them. */
const nameOfProblem = (status: HttpStatus): string => STATUS_TEXT[status].replaceAll(' ', '');

const problemResponses = (statuses: readonly HttpStatus[]): Json => ({
  Problem: problemResponse('A problem document (RFC 9457)'),
  ...Object.fromEntries(
    statuses.map((status) => [nameOfProblem(status), problemResponse(STATUS_TEXT[status], PROBLEM_HEADERS[status])]),
  ),
});

function operationOf(row: Route): Json {
  const { access, summary, body } = row;
  return {
    operationId: operationIdOf(row),
    summary,
    tags: [tagOf(row.path)],
    ...(access === 'public' ? {} : { description: descriptionOf(access) }),
    security: securityOf(row),
    parameters: [...pathParameters(row.path), ...(row.query ?? []).map(queryParameter)],
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: !body.safeParse({}).success,
            content: { 'application/json': { schema: schemaOf(body, 'input') } },
          },
        }),
    responses: responsesOf(row),
  };
}

const descriptionOf = (access: Exclude<Route['access'], 'public'>): string =>
  access === 'agent'
    ? 'Needs the token of an agent, or a key with the `write` scope and `x-svc-agent: <org>/<team>/<agent>`.'
    : `Needs the \`${access.scope}\` scope.`;

/** The list beside `bearer` says which scope it needs. */
function securityOf({ access, query, credentials = [] }: Route): readonly Json[] {
  if (access === 'agent') return [{ bearer: ['write'] }, { agent_token: [] }];
  if (access === 'public') return credentials.map((name) => (name === 'none' ? {} : { [name]: [] }));
  return [{ bearer: [access.scope] }, ...(query?.includes('ticket') === true ? [{ ticket: [] }] : [])];
}

/** `get /api/v1/ops/:id` is `get_ops_id`; a path that is served twice has its prefix in the name. */
function operationIdOf({ method, path }: Route): string {
  const words = path
    .replace(PREFIX, '')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '');
  return [method, ...words, ...(path.startsWith(PREFIX) ? [] : ['root'])].join('_');
}

/** The first word of the path behind the prefix. */
const tagOf = (path: string): string => path.replace(PREFIX, '/').split('/')[1]?.replaceAll('.', '') || 'root';

const pathParameters = (path: string): readonly Json[] =>
  [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({ name, in: 'path', required: true, schema: { type: 'string' } }));

const queryParameter = (name: QueryName): Json => ({
  name,
  in: 'query',
  required: false,
  schema: schemaOf(QUERY[name], 'input'),
});

const problemNamed = (name: string): Json => ({ $ref: `#/components/responses/${name}` });

/** The statuses that follow from a row's input and its access, and those that only it has. */
const problemsOf = ({ access, limit, path, body, query, refusals }: Route): readonly HttpStatus[] => [
  ...where(body !== undefined || query !== undefined || path.includes('/:'), 400),
  ...where(access !== 'public', 401, 403),
  ...where(path.includes('/:'), 404),
  ...where(body !== undefined, 413, 415),
  ...where(limit !== 'none', 429, 503),
  ...(refusals ?? []),
];

const where = (holds: boolean, ...statuses: readonly HttpStatus[]): readonly HttpStatus[] => (holds ? statuses : []);

function responsesOf(row: Route): Json {
  return {
    ...Object.fromEntries(
      Object.entries(row.answers ?? { 200: ANYTHING }).map(([status, answer]) => [
        status,
        { ...responseOf(answer), ...headersOf(row.headers) },
      ]),
    ),
    ...Object.fromEntries(problemsOf(row).map((status) => [status, problemNamed(nameOfProblem(status))])),
    default: problemNamed('Problem'),
  };
}

const ANYTHING: AnswerShape = z.unknown();

function responseOf(answer: AnswerShape): Json {
  if (answer === 'empty') return { description: 'Done' };
  if ('mediaTypes' in answer)
    return {
      description: 'Text',
      content: Object.fromEntries(answer.mediaTypes.map((type) => [type, { schema: { type: 'string' } }])),
    };
  return { description: 'The answer', content: { 'application/json': { schema: schemaOf(answer, 'output') } } };
}

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io,
    unrepresentable: 'any',
    ...(io === 'output' && { override: leaveOpen }),
  });
  return rest;
}

/**
 * An answer may have more fields in a later release. Clients generated from one that is closed would refuse it then.
 */
const leaveOpen = ({ jsonSchema }: { jsonSchema: { additionalProperties?: unknown } }): void => {
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
};

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

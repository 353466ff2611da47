/** The description of the API (OpenAPI 3.1), made from the table of routes, so that it is always complete. */
import { z } from 'zod';
import { APPROVAL_STATES, APPROVAL_TRIGGERS } from '../../core/approvals/approval.ts';
import { SCOPES, type Scope } from '../../core/identity/roles.ts';
import { OP_STATES, OP_TRIGGERS } from '../../core/ops/op-state.ts';
import { describeMethods } from '../connect/describe.ts';
import { HTTP_STATUS } from '../engine/reply.ts';
import { type AnswerShape, QUERY, type QueryName, type Route } from '../engine/route.ts';
import { type HttpStatus, STATUS_TEXT } from '../shared/http-answer.ts';
import { exampleOf } from './openapi-examples.ts';
import { REFRESH_COOKIE } from './sign-in.ts';

type Json = Readonly<Record<string, unknown>>;

const OPENAPI_VERSION = '3.1.0';
const PREFIX = '/api/v1/';

export function describeApi(rows: readonly Route[]): Json {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const row of rows) (paths[templateOf(row.path)] ??= {})[row.method] = operationOf(row);
  const methods = describeMethods();
  const { document, schemas: own } = liftDefinitions({
    openapi: OPENAPI_VERSION,
    info: {
      title: 'svc-gateway',
      version: 'v1',
      summary: 'Governs software agents: policy, operations in flight, budgets, audit.',
      description: INFO,
      contact: { name: 'The maintainers of svc-gateway' },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: tagsOf(operationsIn({ paths: { ...paths, ...methods.paths } })),
    paths: { ...paths, ...methods.paths },
  });
  const schemas = { ...own, ...methods.schemas, Problem: PROBLEM };
  return {
    ...withExamples(named(document, schemas), schemas),
    components: {
      schemas,
      headers: HEADERS,
      responses: {
        ...problemResponses(rows.flatMap(problemsOf)),
        Connect: {
          description: 'An error of Connect; the header `svc-code` has the stable word for it',
          content: { 'application/json': { schema: { $ref: '#/components/schemas/ConnectError' } } },
        },
      },
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key or an access token. `x-required-scope` of a route is the scope that it must hold.',
          'x-scopes': SCOPE_MEANING,
        },
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

const INFO = [
  'Agents ask before each action (`CheckAction`), operators watch and stop them.',
  'Routes of the HTTP API answer errors as problem documents (RFC 9457); those of other protocols in their own words.',
  'Times are RFC 3339 in UTC, unless a field says otherwise.',
].join(' ');

/** Each contains those before it. */
const SCOPE_MEANING: Readonly<Record<Scope, string>> = {
  read: 'See agents, operations, budgets, policies and the log.',
  write: 'Register and control agents and operations, and act for agents.',
  admin: 'Manage keys, accounts and policies.',
};

const TAGS: Readonly<Record<string, string>> = {
  PolicyService: 'Checks of agents, over Connect.',
  AgentService: "The agents' other calls, over Connect.",
  ApprovalService: 'Waiting for the decision of a person, over Connect.',
  auth: 'Signing in, tokens and invites.',
  iam: 'API keys and signing keys.',
  accounts: 'People who use the dashboard.',
  ops: 'Operations in flight.',
  halts: 'Stops that hold.',
  approvals: 'Actions that wait for a person.',
  webhooks: 'Notifications over HTTP.',
  changes: 'Changes made by people and files.',
  stats: 'Checks, denies, spend and latency, of the last minutes to the last month.',
  cluster: 'Several gateways.',
  hooks: 'Coding agents that ask before and after each tool.',
  agents: 'Registered agents.',
  budgets: 'Spend and caps.',
  limits: 'Counts of the limits of policies.',
  prices: 'Token prices of models.',
  usage: 'What was spent.',
  policies: 'Rules in force.',
  stream: 'Live events.',
  logs: 'The audit log.',
  audit: 'Checkpoints of the audit logs of other gateways.',
  topology: 'Orgs, teams, agents and who started whom.',
  access: 'AuthZEN 1.0.',
  data: "OPA's Data API.",
  monitoring: 'Probes, metrics and descriptions.',
};

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
    op_id: { type: 'string', description: 'With `invalid_transition` of an operation, and with `ambiguous`.' },
    approval_id: { type: 'string', description: 'With `invalid_transition` of an approval.' },
    from: {
      type: 'string',
      enum: [...new Set([...OP_STATES, ...APPROVAL_STATES])],
      description: 'With `invalid_transition`: the state of the operation or approval.',
    },
    trigger: {
      type: 'string',
      enum: [...new Set([...OP_TRIGGERS, ...APPROVAL_TRIGGERS])],
      description: 'With `invalid_transition`: the requested action.',
    },
    org_ids: {
      type: 'array',
      items: { type: 'string' },
      description: 'With `ambiguous`: the orgs that have an operation of this id.',
    },
    problems: {
      type: 'array',
      items: { type: 'string' },
      description: 'With `policy_invalid`: each mistake and its file.',
    },
    retry_after_secs: { type: 'integer', description: 'Same as the header `Retry-After`.' },
  },
};

const header = (description: string, type = 'string'): Json => ({ description, schema: { type } });

/** Headers that answers may carry, besides the headers of every answer. */
const HEADERS = {
  'WWW-Authenticate': header('`Bearer`; includes the required scope if the credential lacks it.'),
  'Retry-After': header('Seconds to wait before retrying.', 'integer'),
  RateLimit: header('Remaining requests, and seconds until there are more.'),
  'RateLimit-Policy': header('Quota of requests, and its window in seconds.'),
  Upgrade: header('`websocket`'),
  'Sec-WebSocket-Version': header('`13`'),
  'Set-Cookie': header('Sets, renews or clears the refresh cookie.'),
  'Content-Disposition': header('File name for saving the response.'),
  'svc-incomplete': header('In a cluster: gateways that did not answer, so that their rows are missing.'),
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
    description: descriptionOf(access),
    ...(typeof access === 'object' && { 'x-required-scope': access.scope }),
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

const descriptionOf = (access: Route['access']): string =>
  access === 'public'
    ? 'Needs no scope.'
    : access === 'agent'
      ? 'Needs the token of an agent, or a key with the `write` scope and `x-svc-agent: <org>/<team>/<agent>`.'
      : `Needs the \`${access.scope}\` scope.`;

function securityOf(row: Route): readonly Json[] {
  const { access, query, credentials = [] } = row;
  if (access === 'agent') return [{ bearer: [] }, { agent_token: [] }];
  if (access === 'public') return credentials.map((name) => (name === 'none' ? {} : { [name]: [] }));
  if ('handleOwn' in row) return [{ bearer: [] }, { agent_token: [] }];
  return [{ bearer: [] }, ...(query?.includes('ticket') === true ? [{ ticket: [] }] : [])];
}

/** `get /api/v1/ops/:id` is `get_ops_id`; a path that is served twice has its prefix in the name. */
function operationIdOf({ method, path }: Route): string {
  const words = path
    .replace(PREFIX, '')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '');
  return [method, ...words, ...(path.startsWith(PREFIX) ? [] : ['root'])].join('_');
}

/** Returns the tags in use, in the order of the table. */
function tagsOf(operations: readonly Node[]): readonly Json[] {
  const used = new Set(operations.flatMap(({ tags }) => tags as readonly string[]));
  return Object.entries(TAGS).flatMap(([name, description]) => (used.has(name) ? [{ name, description }] : []));
}

/** The first word of the path behind the prefix; for what lies elsewhere, a word that is a tag. */
function tagOf(path: string): string {
  const words = path.replace(PREFIX, '/').split('/').slice(1);
  const isOwn = path.startsWith(PREFIX);
  return (isOwn ? words[0] : words.find((word) => Object.hasOwn(TAGS, word))) ?? 'monitoring';
}

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
const problemsOf = ({ access, limit, path, body, refusals }: Route): readonly HttpStatus[] => [
  400, // also for a second Authorization header
  ...where(access !== 'public', 401, 403),
  ...where(path.includes('/:'), 404),
  ...where(body !== undefined, 413),
  ...where(body !== undefined && access !== 'agent', 415),
  ...where(limit !== 'none', 429),
  ...where(limit !== 'none' || access === 'agent', 503),
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
    ...Object.fromEntries(problemsOf(row).map((status) => [status, failureOf(row, status)])),
    default: problemNamed('Problem'),
  };
}

const failureOf = ({ failure }: Route, status: HttpStatus): Json =>
  failure === undefined
    ? problemNamed(nameOfProblem(status))
    : {
        description: STATUS_TEXT[status],
        ...headersOf(PROBLEM_HEADERS[status]),
        content: { 'application/json': { schema: schemaOf(failure, 'output') } },
      };

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

type Node = Record<string, any>;

const contentsOf = (operation: Node): readonly (readonly [word: string, content: Node])[] => {
  const answers = Object.entries<Node>(operation['responses']).map(
    ([status, answer]) => [status.startsWith('2') ? 'Answer' : 'Failure', answer['content']] as const,
  );
  return [['Request', operation['requestBody']?.content] as const, ...answers].flatMap(([word, content]) => {
    const json = content?.['application/json'];
    return json === undefined ? [] : [[word, json] as const];
  });
};

const operationsIn = (document: Json): readonly Node[] =>
  Object.values(document['paths'] as Record<string, Node>).flatMap((methods) => Object.values<Node>(methods));

/** Gives each schema of a request or an answer a name among the components; equal ones share the first. */
function named(document: Json, schemas: Record<string, unknown>): Json {
  const names = new Map<string, string>();
  for (const operation of operationsIn(document))
    for (const [word, json] of contentsOf(operation)) {
      if (json['schema'].$ref !== undefined || Object.keys(json['schema']).length === 0) continue;
      const text = JSON.stringify(json['schema']);
      const name = names.get(text) ?? pascal(operation['operationId']) + word;
      if (!names.has(text)) schemas[name] = json['schema'];
      names.set(text, name);
      json['schema'] = { $ref: `#/components/schemas/${name}` };
    }
  return document;
}

const pascal = (words: string): string =>
  words.replaceAll(/(?:^|[^A-Za-z0-9])([a-z0-9])/g, (_, first) => first.toUpperCase());

function withExamples(document: Json, schemas: Json): Json {
  for (const operation of operationsIn(document))
    for (const [, json] of contentsOf(operation)) json['example'] = exampleOf(json['schema'], schemas);
  return document;
}

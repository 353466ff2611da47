import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { describeApi, templateOf } from '../../../src/doors/api/openapi.ts';
import { routesOf } from '../../../src/doors/api/routes.ts';
import { Holds } from '../../../src/doors/coding-agents/holds.ts';
import type { Route } from '../../../src/doors/engine/route.ts';
import { methodShapes } from '../../../src/doors/proto/schema.ts';
import { ControlSwitch } from '../../../src/doors/rpc/control-switch.ts';
import { PACKAGE_ROOT } from '../../../src/system/package-files.ts';

const holds = new Holds(new ControlSwitch(() => undefined));
const rows = routesOf({
  hasAccountStore: true,
  maxLogins: 100,
  httpHost: '127.0.0.1',
  opsTtlSecs: 60,
  holds,
});
const api = JSON.parse(JSON.stringify(describeApi(rows))) as any;
/** Resolves the schema of the JSON in a request body or an answer. */
const schemaOf = (part: any) => {
  const { schema } = part.content['application/json'];
  return schema.$ref === undefined ? schema : api.components.schemas[schema.$ref.split('/').at(-1)];
};
const operations: any[] = Object.values(api.paths).flatMap((methods) => Object.values(methods as object));

describe('openapi', () => {
  test('every row of the API is described, and nothing else is', () => {
    const described = Object.entries(api.paths).flatMap(([path, methods]) =>
      Object.keys(methods as object).map((method) => `${method} ${path}`),
    );
    const methods = methodShapes
      .filter(({ requestStream, responseStream }) => !requestStream && !responseStream)
      .map(({ path }) => `post ${path}`);
    expect(described.sort()).toEqual(
      [...rows.map(({ method, path }) => `${method} ${templateOf(path)}`), ...methods].sort(),
    );
  });

  test('it is OpenAPI 3.1 in every part that client generators rely on', () => {
    expect(api.openapi).toBe('3.1.0');
    expect(Object.keys(api.info)).toEqual(expect.arrayContaining(['title', 'version']));
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
    for (const [path, methods] of Object.entries(api.paths)) {
      for (const operation of Object.values(methods as Record<string, any>)) {
        const declared = operation.parameters
          .filter((parameter: any) => parameter.in === 'path')
          .map(({ name }: any) => name);
        expect(declared).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name));
        for (const parameter of operation.parameters) {
          expect(parameter.schema).toBeTypeOf('object');
          if (parameter.in === 'path') expect(parameter.required).toBe(true);
        }
        expect(
          Object.keys(operation.responses).every((status) => status === 'default' || /^[1-5]\d\d$/.test(status)),
        ).toBe(true);
        expect(Object.keys(operation.responses).some((status) => /^[12]/.test(status))).toBe(true);
        for (const response of Object.values(operation.responses) as any[])
          expect(response.$ref ?? response.description).toBeTypeOf('string');
        for (const requirement of operation.security)
          for (const scheme of Object.keys(requirement)) expect(api.components.securitySchemes).toHaveProperty(scheme);
      }
    }
  });

  test('every reference resolves', () => {
    const references = [...JSON.stringify(api).matchAll(/"\$ref":"([^"]+)"/g)].map(([, reference]) => reference!);
    expect(references.length).toBeGreaterThan(100);
    for (const reference of new Set(references)) {
      const found = reference
        .slice(2)
        .split('/')
        .reduce<any>((at, step) => at?.[step], api);
      expect({ reference, type: typeof found }).toEqual({ reference, type: 'object' });
    }
  });

  test('a row that accepts a body describes it, and one that answers JSON does too', () => {
    expect(schemaOf(api.paths['/api/v1/usage'].post.requestBody)).toMatchObject({
      type: 'object',
      required: ['agent'],
      additionalProperties: false,
    });
    expect(schemaOf(api.paths['/api/v1/topology/tree'].get.responses[200]).properties.orgs.type).toBe('array');
    const undescribed = rows.filter(({ answers, path }) => answers === undefined && path !== '/openapi.json');
    expect(undescribed.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
  });

  test.each([
    ['post', '/api/v1/auth/token', ['200', '400', '401', '403', '413', '415', '429', '503']],
    ['post', '/api/v1/auth/register', ['201', '400', '403', '409', '413', '415', '422', '429', '503']],
    ['post', '/api/v1/auth/login', ['200', '400', '401', '413', '415', '423', '429', '503']],
    ['post', '/api/v1/auth/refresh', ['200', '400', '401', '403', '409', '429', '503']],
    ['post', '/api/v1/auth/logout', ['204', '400', '403', '429', '503']],
    ['post', '/api/v1/auth/invite', ['201', '400', '401', '403', '409', '413', '415', '429', '503']],
    ['post', '/api/v1/auth/invite/accept', ['201', '400', '409', '413', '415', '422', '429', '503']],
    ['get', '/api/v1/auth/invites', ['200', '400', '401', '403', '429', '503']],
    ['post', '/api/v1/auth/invites/{id}/revoke', ['204', '400', '401', '403', '404', '409', '429', '503']],
    ['post', '/api/v1/auth/password/reset', ['202', '400', '413', '415', '429', '503']],
    ['post', '/api/v1/auth/password/reset/confirm', ['204', '400', '413', '415', '422', '429', '503']],
    ['post', '/api/v1/ops', ['200', '201', '400', '401', '403', '409', '413', '415', '429', '503']],
    ['post', '/api/v1/ops/{id}/pause', ['200', '400', '401', '403', '404', '409', '429', '503']],
    ['post', '/api/v1/ops/{id}/complete', ['200', '400', '401', '403', '404', '409', '413', '415', '429', '503']],
    ['get', '/api/v1/ops/{id}', ['200', '400', '401', '403', '404', '409', '429', '503']],
    ['post', '/api/v1/agents', ['200', '201', '400', '401', '403', '409', '413', '415', '429', '503']],
    ['post', '/api/v1/policies/reload', ['200', '400', '401', '403', '409', '429', '503']],
    ['get', '/api/v1/stream', ['101', '200', '400', '401', '403', '426', '429', '503']],
    ['get', '/healthz', ['200', '400']],
    ['get', '/readyz', ['200', '400', '503']],
  ])('%s %s lists every status it answers with', (method, path, statuses) => {
    expect(Object.keys(api.paths[path][method].responses).sort()).toEqual([...statuses, 'default']);
  });

  test('the methods over Connect list every status they answer with', () => {
    const described = Object.entries<any>(api.paths).filter(([path]) => path.startsWith('/svc.governance.v1.'));
    expect(described).toHaveLength(9);
    for (const [path, { post }] of described)
      expect([path, Object.keys(post.responses)]).toEqual([
        path,
        ['200', '400', '401', '403', '404', '413', '415', '429', '503', 'default'],
      ]);
  });

  test("an agent's own refusals must be JSON", () => {
    expect(Object.keys(api.paths['/api/v1/agents/self/refusals'].post.responses)).toContain('415');
  });

  test('a decision of the OPA door and its errors have schemas of their own', () => {
    const { responses } = api.paths['/v1/data/svc/authz/decision'].post;
    expect(Object.keys(schemaOf(responses[200]).properties)).toEqual(['result']);
    expect(Object.keys(schemaOf(responses[401]).properties)).toEqual(['code', 'message']);
  });

  test('a problem says what cannot be done to an operation, and to an approval', () => {
    const { properties } = api.components.schemas.Problem;
    expect(properties.from.enum).toEqual([
      'pending',
      'running',
      'paused',
      'completing',
      'terminated',
      'approved',
      'denied',
      'expired',
      'cancelled',
      'used',
    ]);
    expect(properties.trigger.enum).toEqual(
      expect.arrayContaining(['pause', 'terminate', 'approve', 'deny', 'cancel']),
    );
    expect(Object.keys(properties)).toEqual(expect.arrayContaining(['op_id', 'approval_id', 'org_ids']));
  });

  test('a later added answer field breaks no generated client; unknown input is refused', () => {
    const closed = (part: unknown): boolean => /"additionalProperties":false/.test(JSON.stringify(part));
    const answers = Object.entries(api.components.schemas).filter(([name]) => !name.endsWith('Request'));
    expect(answers.filter(([, schema]) => closed(schema)).map(([name]) => name)).toEqual([]);
    // Other protocols' requests may have members that we do not know.
    const own = rows.filter(({ access, body }) => access !== 'agent' && body !== undefined);
    const bodyOf = ({ method, path }: Route) => schemaOf(api.paths[templateOf(path)][method].requestBody);
    expect(own.filter((row) => !closed(bodyOf(row)))).toEqual([]);
  });

  test('an optional body is not required', () => {
    expect(api.paths['/api/v1/auth/token'].post.requestBody.required).toBe(false);
    expect(api.paths['/api/v1/usage'].post.requestBody.required).toBe(true);
  });

  test("a generated client knows each route's credential", () => {
    const securityOf = (path: string) => api.paths[path].post.security;
    expect(securityOf('/api/v1/auth/token')).toEqual([{ bearer: [] }]);
    expect(securityOf('/api/v1/auth/refresh')).toEqual([{ refresh_cookie: [] }]);
    expect(securityOf('/api/v1/auth/logout')).toEqual([{ refresh_cookie: [] }, {}]);
    expect(securityOf('/api/v1/auth/login')).toEqual([]);
    expect(securityOf('/api/v1/agents')).toEqual([{ bearer: [] }]);
    expect(api.paths['/api/v1/agents'].post['x-required-scope']).toBe('write');
    expect(securityOf('/access/v1/evaluation')).toEqual([{ bearer: [] }, { agent_token: [] }]);
    expect(api.components.securitySchemes.refresh_cookie).toMatchObject({
      type: 'apiKey',
      in: 'cookie',
      name: 'svc_refresh',
    });
  });

  test('a rule of a field is described with it', () => {
    const { properties } = schemaOf(api.paths['/api/v1/usage'].post.requestBody);
    expect(properties.agent.properties.team_id).toEqual({
      type: 'string',
      description:
        'must be 1 to 256 bytes in Unicode normalization form C, without whitespace, control or invisible characters, or "/", and must not be "." or ".."',
    });
    expect(properties.cost_usd.anyOf[0]).toEqual({ type: 'number', minimum: 0, maximum: 1_000_000 });
  });

  test('the stream opens with a bearer or with a ticket', () => {
    expect(api.paths['/api/v1/stream'].get.security).toEqual([{ bearer: [] }, { ticket: [] }]);
    expect(api.components.securitySchemes.ticket).toMatchObject({ type: 'apiKey', in: 'query', name: 'ticket' });
  });

  test('the API is described alike without an account store', async () => {
    const options = { maxLogins: 100, httpHost: '127.0.0.1', opsTtlSecs: 60 };
    const described = async (hasAccountStore: boolean): Promise<any> => {
      const reply = await routesOf({ hasAccountStore, ...options, holds })
        .find(({ path }) => path === '/openapi.json')!
        .handle({} as never, {} as never);
      return reply.ok ? JSON.parse(JSON.stringify(reply.value.body)) : reply;
    };
    const without = await described(false);
    expect(without).toEqual(await described(true));
    const login = without.paths['/api/v1/auth/login'].post;
    expect(login.security).toEqual([]);
    expect(Object.keys(schemaOf(login.requestBody).properties)).toEqual(['email', 'password', 'remember_me']);
    expect(Object.keys(login.responses)).toEqual(expect.arrayContaining(['200', '401', '423', '503']));
    expect(Object.keys(without.paths['/api/v1/auth/password/reset'].post.responses)).toContain('202');
    expect(without.paths['/api/v1/accounts'].get).toMatchObject({
      security: [{ bearer: [] }],
      'x-required-scope': 'admin',
      description: 'Needs the `admin` scope.',
    });
    expect(Object.keys(without.paths['/api/v1/accounts'].get.responses)).toEqual(
      expect.arrayContaining(['401', '403', '503']),
    );
  });

  test('docs/openapi.json is what the code says', () => {
    const committed = readFileSync(join(PACKAGE_ROOT, 'docs', 'openapi.json'), 'utf8');
    expect(committed, 'run `npm run docs`').toBe(`${JSON.stringify(api, null, 2)}\n`);
  });

  // The recommended rules of Redocly are run by `npm run lint:api` before the tests; these are some of Spectral's,
  // which `npm run lint:api:spectral` runs whole.

  test('everything has a description, and each tag is declared', () => {
    expect(api.info).toMatchObject({ description: expect.any(String), contact: { name: expect.any(String) } });
    const declared = api.tags.map(({ name }: any) => name);
    for (const { operationId, description, summary, tags } of operations) {
      expect(description, operationId).toMatch(/./);
      expect(summary, operationId).toMatch(/./);
      expect(declared).toEqual(expect.arrayContaining(tags));
    }
    expect(declared.filter((name: string) => !operations.some(({ tags }) => tags.includes(name)))).toEqual([]);
  });

  test('each operation has an answer, an error, and no scope that its scheme lacks', () => {
    for (const { operationId, responses, security } of operations) {
      const statuses = Object.keys(responses).join(' ');
      expect(statuses, operationId).toMatch(/\b[23]\d\d\b/);
      expect(statuses, operationId).toMatch(/\b4\d\d\b/);
      expect(security.flatMap((each: object) => Object.values(each).flat())).toEqual([]);
    }
  });

  test('each JSON body and answer has a named schema and an example', () => {
    const bodies = operations.flatMap(({ operationId, requestBody, responses }) =>
      [requestBody, ...(Object.values(responses) as any[])].flatMap((part) => {
        const json = part?.content?.['application/json'];
        return json === undefined ? [] : [{ operationId, ...json }];
      }),
    );
    expect(bodies.length).toBeGreaterThan(80);
    for (const { operationId, schema, example } of bodies) {
      expect(example, operationId).toBeDefined();
      if (operationId !== 'get_openapi_json_root')
        expect(schema.$ref, operationId).toMatch(/^#\/components\/schemas\/\w+$/);
    }
  });

  test('each example of a request is one that its route takes', () => {
    const refused = rows.flatMap(({ method, path, body }) => {
      const { example } = api.paths[templateOf(path)][method].requestBody?.content['application/json'] ?? {};
      const read = body?.safeParse(example);
      return read === undefined || read.success ? [] : [{ path, issues: read.error.issues }];
    });
    expect(refused).toEqual([]);
  });
});

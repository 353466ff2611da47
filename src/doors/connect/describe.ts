import { type FieldShape, type MessageShape, methodShapes } from '../proto/schema.ts';

type Json = Readonly<Record<string, unknown>>;

/** Matches a uint64, which is text in the JSON of protobuf. */
export const DIGITS = '^\\d+$';

const refTo = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

/** The paths, and the components they refer to. */
export type DescribedMethods = { readonly paths: Json; readonly schemas: Json };

export function describeMethods(): DescribedMethods {
  const schemas: Record<string, Json> = { ConnectError: CONNECT_ERROR };
  const paths: Record<string, Json> = {};
  for (const { path, name, service, request, response, requestStream, responseStream } of methodShapes) {
    if (requestStream || responseStream) continue;
    for (const message of [request, response]) addMessage(message, schemas);
    paths[path] = {
      post: {
        operationId: name,
        summary: `${name}, over Connect`,
        description: `The method of \`${service}\` as JSON (Connect, unary); see its .proto file for the fields.`,
        tags: [service.split('.').at(-1)],
        security: [{}, { bearer: [] }],
        parameters: [],
        requestBody: { required: true, content: { 'application/json': { schema: refTo(request.name) } } },
        responses: {
          200: { description: 'The answer', content: { 'application/json': { schema: refTo(response.name) } } },
          ...Object.fromEntries(
            ['400', '401', '403', '404', '413', '415', '429', '503'].map((status) => [
              status,
              { $ref: '#/components/responses/Connect' },
            ]),
          ),
          default: { $ref: '#/components/responses/Connect' },
        },
      },
    };
  }
  return { paths, schemas };
}

const CONNECT_ERROR: Json = {
  type: 'object',
  required: ['code', 'message'],
  properties: {
    code: { type: 'string', description: 'The code of gRPC in the spelling of Connect.' },
    message: { type: 'string', description: 'One sentence for people.' },
  },
};

function addMessage(message: MessageShape, schemas: Record<string, Json>): void {
  if (Object.hasOwn(schemas, message.name)) return;
  schemas[message.name] = {}; // taken, in case it contains itself
  schemas[message.name] = {
    type: 'object',
    properties: Object.fromEntries(
      message.fields.map((field) => {
        const schema = schemaOf(field, schemas);
        return [field.name, field.repeated ? { type: 'array', items: schema } : schema];
      }),
    ),
  };
}

function schemaOf(field: FieldShape, schemas: Record<string, Json>): Json {
  switch (field.kind) {
    case 'string':
      return { type: 'string' };
    case 'bool':
      return { type: 'boolean' };
    case 'double':
      return { type: 'number' };
    case 'uint32':
      return { type: 'integer', minimum: 0 };
    case 'uint64':
      return { type: 'string', pattern: DIGITS, description: 'A whole number, as text.' };
    case 'struct':
      return { type: 'object' };
    case 'timestamp':
      return { type: 'string', format: 'date-time' };
    case 'enum':
      return { type: 'string', enum: field.shape.values.map(({ name }) => name) };
    case 'message':
      addMessage(field.shape, schemas);
      return refTo(field.shape.name);
  }
}

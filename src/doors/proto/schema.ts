/**
 * The schema of `proto/`, parsed once per thread, as plain tables for the codecs to walk. The .proto files are the only
 * description of the messages: field numbers, names and enum values are stated nowhere else but in the hand-written
 * codec of the check, which is tested against these tables.
 */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';
import { assert, ok, type Result } from '../../core/base/result.ts';
import { type Fault, invalid } from '../../core/fault.ts';
import { MAX_BATCH_ITEMS } from '../shared/limits.ts';

/** Thrown by decoders out of their recursion. It never leaves this folder: `attempt` turns it into a value. */
export class Malformed extends Error {
  readonly field: string;
  readonly problem: string;
  constructor(field: string, problem: string) {
    super(`${field}: ${problem}`);
    this.field = field;
    this.problem = problem;
  }
}

export const tooMany = (field: string): Malformed => new Malformed(field, `must have 1 to ${MAX_BATCH_ITEMS} items`);

/** Runs a decoder; what it found malformed is a fault that names the field. */
export function attempt<T>(decode: () => T): Result<T, Fault> {
  try {
    return ok(decode());
  } catch (error) {
    return malformed(error);
  }
}

/** The fault of a caught `Malformed`; anything else is a defect and is thrown on. */
export function malformed(error: unknown): Result<never, Fault> {
  if (!(error instanceof Malformed)) throw error;
  return invalid(error.field, error.problem);
}

const PACKAGE = 'svc.governance.v1';
const FILES = [
  'svc/governance/v1/policy_service.proto',
  'svc/governance/v1/agent_service.proto',
  'svc/governance/v1/approval_service.proto',
] as const;

export type EnumShape = {
  /** Proto name to number and to the word used inside the gateway: DECISION_ALLOW, 1, `allow`. */
  readonly values: readonly { readonly name: string; readonly number: number; readonly word: string }[];
  readonly wordByNumber: ReadonlyMap<number, string>;
  readonly numberByWord: ReadonlyMap<string, number>;
  readonly nameByWord: ReadonlyMap<string, string>;
  readonly wordByName: ReadonlyMap<string, string>;
};

type FieldBase = {
  /** lowerCamelCase: the property of the message, and its name in JSON. */
  readonly name: string;
  /** snake_case, as in the .proto file; also accepted in JSON. */
  readonly protoName: string;
  readonly number: number;
  readonly repeated: boolean;
  /** True where absent and default differ: `undefined` stands for absent. */
  readonly hasPresence: boolean;
};
export type FieldShape = FieldBase &
  (
    | { readonly kind: 'string' | 'bool' | 'double' | 'uint32' | 'uint64' | 'struct' | 'timestamp' }
    | { readonly kind: 'enum'; readonly shape: EnumShape }
    | { readonly kind: 'message'; readonly shape: MessageShape }
  );

export type MessageShape = {
  readonly name: string;
  readonly fields: readonly FieldShape[];
  readonly byNumber: ReadonlyMap<number, FieldShape>;
  /** By both spellings of the name. */
  readonly byName: ReadonlyMap<string, FieldShape>;
};

export type MethodShape = {
  readonly service: string;
  readonly name: string;
  /** `/svc.governance.v1.PolicyService/CheckAction`. */
  readonly path: string;
  readonly request: MessageShape;
  readonly response: MessageShape;
  readonly requestStream: boolean;
  readonly responseStream: boolean;
};

/**
 * The package is found by its proto folder, which lies beside src/ in a checkout and beside dist/ where it is
 * installed.
 */
export function protoFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'proto', FILES[0]))) {
    const parent = dirname(folder);
    assert(parent !== folder, 'the package ships its proto folder');
    folder = parent;
  }
  return join(folder, 'proto');
}

function load(): protobuf.Root {
  const folder = protoFolder();
  const root = new protobuf.Root();
  // Google's own files come with the library.
  root.resolvePath = (_from, file) => (file.startsWith('google/') ? null : join(folder, file));
  root.loadSync([...FILES]);
  root.resolveAll();
  return root;
}

/** The library's own view of the schema: for reflection, and as the reference that the codecs are tested against. */
export const protoRoot = load();

function shapeEnum(source: protobuf.Enum): EnumShape {
  const prefix = `${source.name.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase()}_`;
  const values = Object.entries(source.values).map(([name, number]) => {
    assert(name.startsWith(prefix), 'an enum value is prefixed with the name of its enum');
    return { name, number, word: name.slice(prefix.length).toLowerCase() };
  });
  return {
    values,
    wordByNumber: new Map(values.map(({ number, word }) => [number, word])),
    numberByWord: new Map(values.map(({ number, word }) => [word, number])),
    nameByWord: new Map(values.map(({ name, word }) => [word, name])),
    wordByName: new Map(values.map(({ name, word }) => [name, word])),
  };
}

function shapeField(field: protobuf.Field): FieldShape {
  const base = {
    name: field.name,
    protoName: field.protoName ?? field.name,
    number: field.id,
    repeated: field.repeated,
    hasPresence: !field.repeated && (field.resolvedType instanceof protobuf.Type || field.partOf !== null),
  };
  const { resolvedType } = field;
  if (resolvedType instanceof protobuf.Enum) return { ...base, kind: 'enum', shape: shapeEnum(resolvedType) };
  if (resolvedType?.fullName === '.google.protobuf.Struct') return { ...base, kind: 'struct' };
  if (resolvedType?.fullName === '.google.protobuf.Timestamp') return { ...base, kind: 'timestamp' };
  if (resolvedType instanceof protobuf.Type) return { ...base, kind: 'message', shape: shapeMessage(resolvedType) };
  switch (field.type) {
    case 'string':
    case 'bool':
    case 'double':
    case 'uint32':
    case 'uint64':
      return { ...base, kind: field.type };
    default:
      throw new Error(`no codec for ${field.type} (${field.fullName})`);
  }
}

const shapes = new Map<string, MessageShape>();

function shapeMessage(type: protobuf.Type): MessageShape {
  const known = shapes.get(type.name);
  if (known !== undefined) return known;
  const fields = type.fieldsArray.map((field) => shapeField(field.resolve()));
  const shape: MessageShape = {
    name: type.name,
    fields,
    byNumber: new Map(fields.map((field) => [field.number, field])),
    byName: new Map(
      fields.flatMap((field) => [
        [field.name, field],
        [field.protoName, field],
      ]),
    ),
  };
  shapes.set(type.name, shape);
  return shape;
}

/** The table of a message of the package, by its short name: `CheckActionRequest`. */
export const messageShape = (name: string): MessageShape => shapeMessage(protoRoot.lookupType(`${PACKAGE}.${name}`));

function shapeService(service: string): readonly MethodShape[] {
  return protoRoot.lookupService(service).methodsArray.map((method) => {
    method.resolve();
    assert(
      method.resolvedRequestType !== null && method.resolvedResponseType !== null,
      'the messages of a method are declared',
    );
    return {
      service,
      name: method.name,
      path: `/${service}/${method.name}`,
      request: shapeMessage(method.resolvedRequestType),
      response: shapeMessage(method.resolvedResponseType),
      requestStream: method.requestStream === true,
      responseStream: method.responseStream === true,
    };
  });
}

export const SERVICES = ['PolicyService', 'AgentService', 'ApprovalService'].map((name) => `${PACKAGE}.${name}`);

/** Every method of every service. */
export const methodShapes: readonly MethodShape[] = SERVICES.flatMap(shapeService);

/**
 * The descriptors of the services, as a table for reflection: which file has which symbol, and which others it needs.
 * They are in `proto/descriptors.binpb`, which `npm run proto` makes of the .proto files, comments included: those that
 * protobufjs can derive by itself lack the imports, and other clients refuse them.
 */
import { type BytesFields, fieldsOf, textOf } from '../proto/fields.ts';

/** The numbers of the fields that count, of the messages in google/protobuf/descriptor.proto. */
const FILE = { name: 1, package: 2, dependency: 3, message: 4, enum: 5, service: 6 } as const;
const MESSAGE = { nested: 3, enum: 4 } as const;
const SERVICE = { method: 2 } as const;

const NAME = 1;

type DescribedFile = { readonly bytes: Buffer; readonly dependencies: readonly string[] };

export class Descriptors {
  readonly #files = new Map<string, DescribedFile>();
  /** The name of the file with each message, enum, service and method. */
  readonly #fileOf = new Map<string, string>();
  readonly #messages = new Set<string>();

  /** `set` is a FileDescriptorSet: its only field, number 1, repeats a file. */
  constructor(set: Buffer) {
    for (const bytes of fieldsOf(set, 1).get(1) ?? []) this.#add(bytes);
  }

  hasMessage(symbol: string): boolean {
    return this.#messages.has(symbol);
  }

  /** The file of that name, and all it needs. */
  withName(name: string): readonly Buffer[] | undefined {
    if (!this.#files.has(name)) return undefined;
    const names = new Set([name]);
    for (const each of names) for (const needed of this.#files.get(each)?.dependencies ?? []) names.add(needed);
    return [...names].flatMap((each) => this.#files.get(each)?.bytes ?? []);
  }

  /** The file that has the symbol, and all it needs. */
  withSymbol(symbol: string): readonly Buffer[] | undefined {
    return this.withName(this.#fileOf.get(symbol) ?? '');
  }

  #add(bytes: Buffer): void {
    const file = fieldsOf(bytes, ...Object.values(FILE));
    const name = textOf(file, FILE.name);
    const scope = textOf(file, FILE.package);
    const dependencies = (file.get(FILE.dependency) ?? []).map(String);
    this.#files.set(name, { bytes, dependencies });
    for (const message of file.get(FILE.message) ?? []) this.#addMessage(message, scope, name);
    for (const each of file.get(FILE.enum) ?? []) this.#addSymbol(fieldsOf(each, NAME), scope, name);
    for (const each of file.get(FILE.service) ?? []) {
      const service = fieldsOf(each, NAME, SERVICE.method);
      const symbol = this.#addSymbol(service, scope, name);
      for (const method of service.get(SERVICE.method) ?? []) this.#addSymbol(fieldsOf(method, NAME), symbol, name);
    }
  }

  #addMessage(bytes: Buffer, scope: string, file: string): void {
    const message = fieldsOf(bytes, NAME, MESSAGE.nested, MESSAGE.enum);
    const symbol = this.#addSymbol(message, scope, file);
    this.#messages.add(symbol);
    for (const nested of message.get(MESSAGE.nested) ?? []) this.#addMessage(nested, symbol, file);
    for (const each of message.get(MESSAGE.enum) ?? []) this.#addSymbol(fieldsOf(each, NAME), symbol, file);
  }

  #addSymbol(fields: BytesFields, scope: string, file: string): string {
    const name = textOf(fields, NAME);
    const symbol = scope === '' ? name : `${scope}.${name}`;
    this.#fileOf.set(symbol, file);
    return symbol;
  }
}

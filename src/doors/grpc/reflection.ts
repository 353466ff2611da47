/**
 * Server reflection, so that a generic client can talk to the gateway without the .proto files.
 *
 * It serves `proto/*.binpb`, which `npm run proto` makes of the .proto files, comments included, and of that of the
 * health service; a test keeps them together. The descriptors that protobufjs can derive by itself lack the imports,
 * and other clients refuse them.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Server, ServerDuplexStream, ServiceDefinition } from '@grpc/grpc-js';
import { ReflectionService } from '@grpc/reflection';
import { BinaryReader } from '../proto/binary-reader.ts';
import { protoFolder, SERVICES } from '../proto/schema.ts';

export function addReflection(server: Server): void {
  // The library reads nothing but the descriptors from the values of this object.
  const definition = {
    files: { fileDescriptorProtos: [...readDescriptors('descriptors.binpb'), ...readDescriptors('health.binpb')] },
  };
  const reflection = new ReflectionService(
    definition as unknown as ConstructorParameters<typeof ReflectionService>[0],
    {
      services: [...SERVICES, 'grpc.health.v1.Health'],
    },
  );
  reflection.addToServer({
    addService: (service: ServiceDefinition, { ServerReflectionInfo }: Handlers) =>
      server.addService(service, { ServerReflectionInfo: withBackpressure(ServerReflectionInfo) }),
  } as Server);
}

type Handle = (call: ServerDuplexStream<unknown, unknown>) => void;
type Handlers = { readonly ServerReflectionInfo: Handle };

/** Limits unread answers: the library itself would keep answering a client that keeps asking and reads nothing. */
const withBackpressure =
  (handle: Handle): Handle =>
  (call) => {
    const write = call.write.bind(call) as (message: unknown) => boolean;
    call.write = (message: unknown) => {
      const isTaken = write(message);
      if (!isTaken) call.pause();
      return isTaken;
    };
    call.on('drain', () => call.resume());
    handle(call);
  };

/** The files of a FileDescriptorSet: its only field, number 1, repeats a message. */
function readDescriptors(name: string): readonly Buffer[] {
  const bytes = readFileSync(join(protoFolder(), name));
  const reader = new BinaryReader(bytes);
  const files: Buffer[] = [];
  while (reader.position < reader.end) {
    reader.uint32();
    const { from, to } = reader.span();
    files.push(bytes.subarray(from, to));
  }
  return files;
}

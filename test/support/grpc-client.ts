/** A gRPC client for tests: any unary method of the service, with the messages of the product's own proto. */
import { Client, credentials, Metadata, type ServiceError, status } from '@grpc/grpc-js';
import { binaryCodec, emptyMessage } from '../../src/doors/proto/binary.ts';
import type { MessageName, Messages } from '../../src/doors/proto/messages.ts';
import { messageShape, methodShapes } from '../../src/doors/proto/schema.ts';

export type GrpcAnswer = {
  readonly code: string;
  readonly details: string;
  readonly message: Record<string, unknown> | undefined;
  readonly trailers: Metadata;
};

export type GrpcClient = {
  /** `more`: further metadata. Fields that are left out are empty. Never rejects: a refusal is an answer with another code than OK. */
  call(method: string, fields: object, bearer?: string, more?: Readonly<Record<string, string>>): Promise<GrpcAnswer>;
  close(): void;
};

export function grpcClient(address: string): GrpcClient {
  const client = new Client(address, credentials.createInsecure());
  return {
    call: (name, fields, bearer, more = {}) => {
      const shape = methodShapes.find((candidate) => candidate.name === name);
      if (shape === undefined) throw new Error(`there is no method ${name}`);
      const request = {
        ...(emptyMessage(messageShape(shape.request.name as MessageName)) as object),
        ...fields,
      } as Messages[MessageName];
      const metadata = new Metadata();
      if (bearer !== undefined) metadata.set('authorization', `Bearer ${bearer}`);
      for (const [key, value] of Object.entries(more)) metadata.set(key, value);
      return new Promise((resolve) => {
        const encode = (message: Messages[MessageName]): Buffer =>
          binaryCodec(shape.request.name as MessageName).encode(message as never) as Buffer;
        const decode = (bytes: Buffer): object => {
          const message = binaryCodec(shape.response.name as MessageName).decode(bytes);
          if (!message.ok) throw new Error(JSON.stringify(message.fault));
          return message.value;
        };
        let message: Record<string, unknown> | undefined;
        const call = client.makeUnaryRequest(
          shape.path,
          encode,
          decode,
          request,
          metadata,
          { deadline: Date.now() + 30_000 },
          (_: ServiceError | null, value?: object) => {
            message = value as Record<string, unknown> | undefined;
          },
        );
        // Comes last, of an error too.
        call.on('status', ({ code, details, metadata: trailers }) =>
          resolve({ code: status[code] ?? '', details: code === status.OK ? '' : details, message, trailers }),
        );
      });
    },
    close: () => client.close(),
  };
}

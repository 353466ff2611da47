/** A client of somebody else's gRPC service, made of its messages as protobufjs reads them. */
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import protobuf from 'protobufjs';

export type ForeignClient = {
  call(
    path: string,
    request: string,
    response: string,
    message: object,
    metadata?: Record<string, string>,
  ): Promise<any>;
  /** Sends bytes as they are. */
  raw(path: string, response: string, bytes: Buffer): Promise<any>;
  close(): void;
};

/** `proto`: the messages, without imports. Enums come back as their names. */
export function foreignClient(address: string, proto: string): ForeignClient {
  const { root } = protobuf.parse(proto, { keepCase: true });
  const client = new Client(address, credentials.createInsecure());
  const send = (path: string, response: string, bytes: Buffer, metadata: Record<string, string> = {}): Promise<any> => {
    const head = new Metadata();
    for (const [name, value] of Object.entries(metadata)) head.set(name, value);
    const type = root.lookupType(response);
    const decode = (answer: Buffer) => type.toObject(type.decode(answer), { enums: String, oneofs: true });
    return new Promise((resolve, reject) =>
      client.makeUnaryRequest(
        path,
        (sent: Buffer) => sent,
        decode,
        bytes,
        head,
        (error, answer) => (error === null ? resolve(answer) : reject(error)),
      ),
    );
  };
  return {
    call: (path, request, response, message, metadata) => {
      const type = root.lookupType(request);
      return send(path, response, Buffer.from(type.encode(type.fromObject(message)).finish()), metadata);
    },
    raw: (path, response, bytes) => send(path, response, bytes),
    close: () => client.close(),
  };
}

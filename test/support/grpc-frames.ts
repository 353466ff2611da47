/**
 * A message as gRPC puts it on a stream. `flag` 1 says that it is compressed; `length` is the one that its prefix
 * tells.
 */
export function framed(message: Buffer, { flag = 0, length = message.length } = {}): Buffer {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt8(flag);
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

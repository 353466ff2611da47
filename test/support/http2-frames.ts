/** Frames of HTTP/2, written out: the client of Node.js sends only what is allowed (RFC 9113, RFC 7541). */

export const FRAME = { DATA: 0, HEADERS: 1, RESET: 3, SETTINGS: 4, PING: 6, WINDOW: 8, CONTINUATION: 9 } as const;
export const END_STREAM = 1;
export const END_HEADERS = 4;

export function h2(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** A field of a head as a literal without index; name and value have less than 127 bytes each (RFC 7541, 6.2.2). */
export const literal = (name: string, value: string): Buffer =>
  Buffer.concat([Buffer.from([0]), text(name), text(value)]);

const text = (value: string): Buffer => Buffer.concat([Buffer.from([Buffer.byteLength(value)]), Buffer.from(value)]);

/** The bytes with which a client begins a connection. */
export const START = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), h2(FRAME.SETTINGS, 0, 0)]);

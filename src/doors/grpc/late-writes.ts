import type { ServerHttp2Stream } from 'node:http2';

type Done = (error?: Error | null) => void;

/**
 * Drops what is written to a stream that has been ended. The library ends one for a status of its own, such as a
 * deadline's, while messages may still come from the gateway. For a write behind the end Node.js never sends that end,
 * and the client waits for ever.
 */
export function dropLateWrites(stream: ServerHttp2Stream): void {
  const write = stream.write.bind(stream) as (chunk: Buffer, done?: Done) => boolean;
  stream.write = ((chunk: Buffer, done?: Done) => {
    if (!stream.writableEnded) return write(chunk, done);
    done?.();
    return true;
  }) as ServerHttp2Stream['write'];
}

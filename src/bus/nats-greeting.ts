/** Reads the greeting that a NATS server sends before authentication. */
import { connect } from 'node:net';
import { mappingIn } from '../core/base/mapping.ts';

export type Greeting = {
  /** It goes on encrypted only. */
  readonly isTlsRequired: boolean;
  readonly isTlsOffered: boolean;
};

const WITHIN_MS = 5_000;
/** A server of a NATS cluster names all the others. */
const MAX_BYTES = 64 * 1024;
const LINE = /^INFO (\{.*\})\s*\r\n/;

/** Another service answers at that address. */
export class NotNats extends Error {}

/**
 * Reads the greeting on a connection of its own. The client would keep one that nobody answers, and another with each
 * attempt; and what is wrong with the settings is known better before it tries. Rejects with the error of the system,
 * or where there is no answer in time; with `NotNats` for another one.
 */
export function readGreeting(
  { host, port }: { readonly host: string; readonly port: number },
  signal: AbortSignal,
): Promise<Greeting> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect({ host, port, signal });
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      socket.destroy();
      settle();
    };
    const timer = setTimeout(() => end(() => reject(new Error('no answer in time'))), WITHIN_MS);
    socket.on('error', (error) => end(() => reject(error)));
    socket.on('close', () => end(() => reject(new Error('the connection was closed'))));
    socket.on('data', (bytes) => {
      text += bytes.toString('latin1');
      const info = infoIn(text);
      if (info !== undefined) end(() => resolve(info));
      else if (!'INFO '.startsWith(text.slice(0, 5)) || text.length > MAX_BYTES) end(() => reject(new NotNats()));
    });
  });
}

function infoIn(text: string): Greeting | undefined {
  const line = LINE.exec(text)?.[1];
  const info = line === undefined ? undefined : mappingIn(line);
  if (info === undefined) return undefined;
  const isTlsRequired = info.tls_required === true;
  return { isTlsRequired, isTlsOffered: isTlsRequired || info.tls_available === true };
}

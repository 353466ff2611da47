/** The TLS files of a sink, for one connection: they are read anew, so that renewed ones count at once. */
import { readFileSync } from 'node:fs';
import type { SinkTls } from './sink.ts';

/** As Node.js takes it. Throws what the file system says. */
export function readTls({ ca, cert, key, servername }: SinkTls): {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
} {
  return {
    ...(ca !== undefined && { ca: readFileSync(ca, 'utf8') }),
    ...(cert !== undefined && { cert: readFileSync(cert, 'utf8') }),
    ...(key !== undefined && { key: readFileSync(key, 'utf8') }),
    ...(servername !== undefined && { servername }),
  };
}

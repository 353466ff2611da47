/** An authority that signs certificates for a test, in a folder of its own. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type Issued = { readonly cert: string; readonly key: string };

export type Authority = {
  readonly ca: string;
  readonly caFile: string;
  /** Without `days`, valid for two; -1: it has expired. */
  issue(name: string, days?: number): Issued;
  remove(): void;
};

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
const openssl = (...args: string[]): void => void execFileSync('openssl', args, { stdio: 'ignore' });

export function createAuthority(name: string): Authority {
  const folder = mkdtempSync(join(tmpdir(), 'svc-ca-'));
  const at = (file: string): string => join(folder, file);
  openssl('req', '-x509', ...KEY, '-days', '2', '-subj', `/CN=${name}`, '-keyout', at('ca.key'), '-out', at('ca.pem'));
  writeFileSync(at('ext'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
  return {
    ca: readFileSync(at('ca.pem'), 'utf8'),
    caFile: at('ca.pem'),
    issue: (subject, days = 2) => {
      openssl('req', ...KEY, '-subj', `/CN=${subject}`, '-keyout', at('key'), '-out', at('csr'));
      const signing = ['-CA', at('ca.pem'), '-CAkey', at('ca.key'), '-days', String(days), '-extfile', at('ext')];
      openssl('x509', '-req', '-in', at('csr'), ...signing, '-out', at('cert'));
      return { cert: readFileSync(at('cert'), 'utf8'), key: readFileSync(at('key'), 'utf8') };
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

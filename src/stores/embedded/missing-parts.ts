/** Detects what a partial restore has left out: missing parts are created anew, as on a first start. */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { STORE_FILE } from './store.ts';

/** Call it before anything is opened. */
export const lookForParts = (dataDir: string) => ({
  store: hasContent(join(dataDir, 'store', STORE_FILE)) || hasContent(join(dataDir, 'store', 'data.mdb')),
  signingKey: existsSync(join(dataDir, 'keys', 'signing.json')),
});

/** An empty file is what a full disk leaves of a copy. */
const hasContent = (path: string): boolean => existsSync(path) && statSync(path).size > 0;

export type FoundParts = ReturnType<typeof lookForParts>;

/** The state before this start adds to it. */
export type OpenedParts = {
  readonly dataDir: string;
  readonly found: FoundParts;
  /** In the audit log. */
  readonly entries: number;
  readonly agents: number;
  /** In the database, where there is one, else in the store. A gateway that has run has made at least one. */
  readonly apiKeys: number;
  readonly hasDatabase: boolean;
  /** By SVC_JWT_PRIVATE_KEY. */
  readonly isKeyGiven: boolean;
};

const REMEDY = 'if a restore left it out, stop the gateway and restore all parts from the same backup';

/** A warning for each missing part that must have existed, judging by the others. */
export function missingParts({
  dataDir,
  found,
  entries,
  agents,
  apiKeys,
  hasDatabase,
  isKeyGiven,
}: OpenedParts): readonly string[] {
  const missing: string[] = [];
  const isStoreUsed = agents > 0 || (!hasDatabase && apiKeys > 0);
  if (entries === 0 && isStoreUsed) missing.push(`${join(dataDir, 'audit')} was empty and starts over at entry 1`);
  if (entries > 0 && !found.store)
    missing.push(
      `${join(dataDir, 'store')} was missing and starts over, without the previous registrations${hasDatabase ? ' and spend' : ', spend and API keys'}`,
    );
  if (entries > 0 && !found.signingKey && !isKeyGiven)
    missing.push(
      `${join(dataDir, 'keys', 'signing.json')} was missing and starts over, so all previous tokens are invalid`,
    );
  if (entries > 0 && hasDatabase && apiKeys === 0)
    missing.push(
      'the database in SVC_DATABASE_URL was empty and starts over, without the previous accounts and API keys',
    );
  return missing.map((what) => `${what}: ${REMEDY}`);
}

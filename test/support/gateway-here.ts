/**
 * A gateway within the process of the test, for tests of what it answers: to start it takes a fifth of the work of a
 * process. What concerns the process (signals, crashes, memory, output) is tested with the command, of gateway.ts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { startGateway } from '../../src/app/main.ts';
import { readConfig } from '../../src/config/read.ts';
import type { Logger } from '../../src/system/log.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { apiOf, type GatewayOptions, type ServingGateway, settingsOf } from './gateway.ts';

export type GatewayHere = ServingGateway & { stop(): Promise<void> };

/** Imports as Node.js itself does: vitest would read and transform 500 files, for four seconds. */
const IMPORT: string = 'data:text/javascript,export const load = (url) => import(url)';
const { load } = (await import(IMPORT)) as {
  load(url: string): Promise<{ readonly startGateway: typeof startGateway }>;
};
const BUILT = pathToFileURL(join(PACKAGE_ROOT, 'dist', 'src', 'app', 'main.js')).href;

const silent = (): void => undefined;
const NO_LOG: Logger = { debug: silent, info: silent, warn: silent, error: silent };

/** Resolves when it is ready. */
export async function startGatewayHere({
  env = {},
  dataDir,
}: Pick<GatewayOptions, 'env' | 'dataDir'> = {}): Promise<GatewayHere> {
  const folder = dataDir ?? mkdtempSync(join(tmpdir(), 'svc-test-'));
  const clear = (): void => {
    if (dataDir === undefined) rmSync(folder, { recursive: true, force: true });
  };
  const config = readConfig(settingsOf(folder, env));
  if (!config.ok) throw new Error(config.fault.problems.join('\n'));
  const built = await load(BUILT);
  const gateway = await built.startGateway(config.value, NO_LOG, new AbortController().signal).catch((error) => {
    clear();
    throw error;
  });
  const url = `http://127.0.0.1:${gateway.listening.httpPort}`;
  return {
    url,
    grpc: `127.0.0.1:${gateway.listening.grpcPort}`,
    dataDir: join(folder, 'data'),
    call: apiOf(url),
    stop: async () => {
      await gateway.stop(() => undefined);
      clear();
    },
  };
}

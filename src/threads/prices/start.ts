/** Prices of tokens: the table in the package, and the operator's file, which is read again when it changes. */

import type { Config } from '../../config/config.ts';
import { watchPolicies } from '../../policy-files/policy-watch.ts';
import { readPriceFile } from '../../policy-files/price-file.ts';
import type { Closing } from '../../ports/closing.ts';
import type { Clock } from '../../ports/ports.ts';
import type { Logger } from '../../system/log.ts';
import { StartError } from '../../system/start-error.ts';
import { PriceKeeper } from '../../use-cases/prices.ts';
import { PriceLink } from './price-link.ts';

/** Rejects with a `StartError` where the file has a mistake. */
export async function startPrices(
  config: Config,
  { log, closers, clock }: { readonly log: Logger; readonly closers: Closing; readonly clock: Clock },
): Promise<PriceKeeper> {
  const table = new PriceLink(clock);
  closers.add('the table of prices', () => table.close());
  const prices = new PriceKeeper(table, clock, config.SVC_UNKNOWN_MODEL);
  const path = config.SVC_PRICES_PATH;
  if (path === undefined) return prices;
  const reload = async (): Promise<void> => {
    const again = await readPriceFile(path);
    if (again.ok) {
      prices.own = again.value;
      log.info('prices reloaded', { path });
    } else {
      log.error('prices were not reloaded; the previous ones stay in force', { reason: again.fault.join('; ') });
    }
  };
  // Before the first reading, so that no change is missed.
  const watcher = watchPolicies(path, () => void reload());
  closers.add('the file of prices', () => watcher.close());
  const own = await readPriceFile(path);
  if (!own.ok) throw new StartError(`the prices in SVC_PRICES_PATH: ${own.fault.join('; ')}`);
  prices.own = own.value;
  return prices;
}

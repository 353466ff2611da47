/** Prices of tokens: the table in the package, and the operator's file, which is read again when it changes. */
import { watchPolicies } from '../policy-files/policy-watch.ts';
import { readPriceFile } from '../policy-files/price-file.ts';
import type { Clock } from '../ports/ports.ts';
import { PriceLink } from '../threads/prices/price-link.ts';
import { PriceKeeper } from '../use-cases/prices.ts';
import { StartError } from './start-checks.ts';
import type { StartContext } from './start-context.ts';

/** Rejects with a `StartError` where the file has a mistake. */
export async function startPrices({ config, log, closers }: StartContext, clock: Clock): Promise<PriceKeeper> {
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

import fc from 'fast-check';
import { skipQuarantined } from './quarantine.ts';
import { SEED } from './runs.ts';

/**
 * Loaded before each test file: the settings, proxies and colours of the shell from which the tests are run are not
 * those of what they test, and properties are tried with the same inputs each time.
 */
for (const name of Object.keys(process.env)) {
  if (/^(SVC_(?!TEST_).*|NO_COLOR|FORCE_COLOR|NODE_OPTIONS|(http|https|grpc|all|no)_proxy)$/i.test(name))
    delete process.env[name];
}

fc.configureGlobal(SEED === undefined ? {} : { seed: SEED });
skipQuarantined();

/** `svc cluster leave`: offline, on the machine of a gateway that is stopped, with the settings of that gateway. */

import { leaveClusterOf } from '../../app/leave-cluster.ts';
import { readConfig } from '../../config/read.ts';
import { createLogger } from '../../system/log.ts';
import { StartError } from '../../system/start-error.ts';
import { CliError, usageError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { confirmed } from '../terminal/prompt.ts';

export async function run({ options, globals, env }: Invocation): Promise<void> {
  const config = readConfig(env);
  if (!config.ok)
    throw usageError(config.fault.problems.join('; '), 'Set the variables that the gateway is started with.');
  const dataDir = config.value.SVC_DATA_DIR;
  // A script means what it says; a person may be at the wrong machine.
  if (!options.isSet('yes') && process.stdin.isTTY === true) {
    const question = `Take ${printable(dataDir)} out of its cluster? No other gateway may go on in that cluster.`;
    if (!(await confirmed(question))) throw new CliError('cancelled; nothing was changed');
  }
  const left = await leaveClusterOf(config.value, createLogger('warn')).catch((error: unknown) => {
    throw error instanceof StartError ? new CliError(error.message, undefined, { cause: error }) : error;
  });
  await show(globals.output, { data_dir: dataDir, ...left }, () => [
    printable(`${dataDir} has left its cluster, with the latest state of the cluster:`),
    `  ${left.agents} agents, ${left.halts} halts, ${left.approvals} approvals`,
    'Start the gateway without SVC_CLUSTER. docs/cluster.md, Leaving a cluster, lists what is not taken along.',
  ]);
}

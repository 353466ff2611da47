/** `svc serve --check` and `--print-config`: what the gateway would start with, without starting it. */
import { checkSettings, shownSettings } from '../../config/check.ts';
import { readConfig, unknownVariables } from '../../config/read.ts';
import { EXIT, type ExitStatus } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { note, show, showTable } from '../terminal/output.ts';
import type { Column } from '../terminal/table.ts';

export async function check({ env, globals }: Invocation): Promise<ExitStatus> {
  const config = readConfig(env);
  const found = config.ok ? await checkSettings(config.value, env) : { problems: config.fault.problems, policies: 0 };
  const { problems, policies } = found;
  const warnings = unknownVariables(env).map((name) => `${name} is not a setting; docs/configuration.md lists all`);
  const isRight = problems.length === 0;
  await show(globals.output, { ok: isRight, problems, warnings, policies }, () =>
    isRight ? [`The settings are valid; policy documents: ${policies}`] : [],
  );
  for (const problem of problems) note(`error: ${problem}`);
  for (const warning of warnings) note(`warning: ${warning}`);
  return isRight ? EXIT.done : EXIT.failed;
}

const COLUMNS: readonly Column[] = [
  { title: 'SETTING', cell: 'name', isWhole: true },
  { title: 'VALUE', cell: 'value' },
  { title: 'SOURCE', cell: 'source' },
];

export async function printConfig({ env, globals }: Invocation): Promise<ExitStatus> {
  const rows = shownSettings(env);
  await showTable(globals, { value: { settings: rows }, columns: COLUMNS, rows, none: '' });
  const config = readConfig(env);
  if (config.ok) return EXIT.done;
  for (const problem of config.fault.problems) note(`error: ${problem}`);
  return EXIT.failed;
}

/** `svc policy validate [path...]`: every mistake at its line and column. */
import { usageError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { note, show } from '../output.ts';
import { printable } from '../printable.ts';
import { counted } from '../words.ts';
import { gatewayPolicyPath, isCaseFile, needPolicies } from './policy-files.ts';

export async function run({ args, globals, env }: Invocation): Promise<void> {
  const [first] = args;
  const paths = first === undefined ? [gatewayPolicyPath(env)] : args.filter((path) => !isCaseFile(path));
  // Among policies, as `*.yaml` names them, tests are left out; to call them valid policies would be wrong.
  if (first !== undefined && paths.length === 0)
    throw usageError(
      `${printable(first)} contains policy tests, not policies`,
      `Run them with \`svc policy test ${args.map(printable).join(' ')}\`.`,
    );
  const { policies, files, warnings } = await needPolicies(globals.output, paths);
  const { version, documents } = policies.summary();
  const ruleCount = documents.reduce((sum, document) => sum + document.ruleCount, 0);
  for (const warning of warnings) note(`warning: ${warning}`);
  await show(
    globals.output,
    { ok: true, version, files, documents: documents.length, rules: ruleCount, warnings },
    () => [
      `${counted(documents.length, 'document')} with ${counted(ruleCount, 'rule')} in ${counted(files.length, 'file')}: no problems.`,
    ],
  );
}

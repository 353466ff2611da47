/** `svc policy validate [path...]`: every mistake at its line and column. */
import type { Invocation } from '../invocation.ts';
import { note, show } from '../output.ts';
import { counted } from '../words.ts';
import { gatewayPolicyPath, needPolicies } from './policy-files.ts';

export async function run({ args, globals, env }: Invocation): Promise<void> {
  const paths = args.length === 0 ? [gatewayPolicyPath(env)] : args.filter((path) => !/\.test\.ya?ml$/i.test(path));
  const { policies, files, warnings } = await needPolicies(globals.output, paths);
  const { version, documents } = policies.summary();
  const ruleCount = documents.reduce((sum, document) => sum + document.ruleCount, 0);
  for (const warning of warnings) note(`warning: ${warning}`);
  await show(globals.output, { ok: true, version, files, documents: documents.length, rules: ruleCount, warnings }, () => [
    `${counted(documents.length, 'document')} with ${counted(ruleCount, 'rule')} in ${counted(files.length, 'file')}: no problem.`,
  ]);
}

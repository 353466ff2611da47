/** `svc policy test FILE...`: the cases of a policy author, run against policy files, without a gateway. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { agentKeyOf } from '../../core/base/ids.ts';
import { type CaseOutcome, type PolicyCase, runPolicyCases, wantedOf } from '../../core/policy/cases.ts';
import { loadPolicyCases } from '../../policy-files/policy-file.ts';
import { EXIT, type ExitStatus, usageError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { green, red, show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { counted } from '../terminal/words.ts';
import { assumedHalts, gatewayPolicyPath, isCaseFile, needPolicies, refusedFiles } from './policy-files.ts';

type RunCase = { readonly policyCase: PolicyCase; readonly outcome: CaseOutcome };
type RunFile = { readonly file: string; readonly policies: readonly string[]; readonly cases: readonly RunCase[] };

export async function run({ args, options, globals, env }: Invocation): Promise<ExitStatus> {
  const halts = await assumedHalts(globals.output, options.text('halts'));
  const files: RunFile[] = [];
  for (const file of args.flatMap(caseFilesAt)) {
    const loaded = await loadPolicyCases(file);
    if (!loaded.ok) throw await refusedFiles(globals.output, loaded.fault);
    const paths = policiesFor(file, options.list('policies'), env);
    const { policies, files: policyFiles } = await needPolicies(globals.output, paths);
    const outcomes = runPolicyCases(policies, loaded.value, halts);
    files.push({
      file,
      policies: policyFiles,
      cases: loaded.value.flatMap((policyCase, at) =>
        outcomes[at] === undefined ? [] : [{ policyCase, outcome: outcomes[at] }],
      ),
    });
  }
  const all = files.flatMap(({ cases }) => cases);
  const failed = all.filter(({ outcome }) => !outcome.passed).length;
  await show(globals.output, { passed: all.length - failed, failed, files: files.map(viewOf) }, () => [
    ...files.flatMap(linesOf),
    failed === 0
      ? green(`${counted(all.length, 'case')} passed`)
      : red(`${failed} of ${counted(all.length, 'case')} failed`),
  ]);
  return failed === 0 ? EXIT.done : EXIT.failed;
}

/** A folder stands for its `*.test.yaml`. */
function caseFilesAt(path: string): readonly string[] {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) return [path];
  const files = readdirSync(path)
    .filter(isCaseFile)
    .sort()
    .map((name) => join(path, name));
  if (files.length === 0) throw usageError(`no *.test.yaml files in ${printable(path)}`);
  return files;
}

/**
 * Returns the files of --policies, else `search.yaml` beside `search.test.yaml`, else those that a gateway started here
 * would read.
 */
function policiesFor(file: string, given: readonly string[], env: NodeJS.ProcessEnv): readonly string[] {
  if (given.length > 0) return given;
  const beside = file.replace(/\.test(\.ya?ml)$/i, '$1');
  return [beside !== file && existsSync(beside) ? beside : gatewayPolicyPath(env)];
}

function linesOf({ file, policies, cases }: RunFile): readonly string[] {
  const failures = cases.filter(({ outcome }) => !outcome.passed);
  const heading = `${printable(file)} against ${policies.map(printable).join(', ')}: ${counted(cases.length, 'case')}`;
  return [
    failures.length === 0 ? `${green('ok')}    ${heading}` : `${red('FAIL')}  ${heading}`,
    ...failures.flatMap(differenceLines),
  ];
}

function differenceLines({
  policyCase: { subject, name },
  outcome: { expected, actual, difference = '' },
}: RunCase): readonly string[] {
  // The same decision by the same rule: then it is the cause or the obligations that differ.
  const isByDecision = actual.kind !== expected.kind || (expected.ruleId ?? actual.ruleId) !== actual.ruleId;
  return [
    '',
    `  ${printable(name)}`,
    printable(`    ${agentKeyOf(subject.agent)} requests ${wantedOf(subject)}`),
    red(printable(`    - ${expected.kind}${byRule(expected.ruleId)}`)),
    green(printable(`    + ${actual.kind}${byRule(actual.ruleId)}`)),
    printable(`      ${isByDecision ? actual.reason : difference}`),
    '',
  ];
}

const byRule = (ruleId: string | undefined): string => (ruleId === undefined ? '' : ` by rule ${ruleId}`);

const viewOf = ({ file, policies, cases }: RunFile) => ({
  file,
  policies,
  cases: cases.map(({ outcome: { name, passed, expected, actual, difference } }) => ({
    name,
    passed,
    expected: { decision: expected.kind, rule_id: expected.ruleId ?? null },
    actual: {
      decision: actual.kind,
      policy: actual.policy ?? null,
      rule_id: actual.ruleId ?? null,
      reason: actual.reason,
      cause: actual.cause ?? null,
    },
    difference: difference ?? null,
  })),
});

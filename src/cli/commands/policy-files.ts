/** Helpers of the commands that read policy files. They work offline, on the files alone. */

import type { AssumedHalt } from '../../core/policy/assumed-halts.ts';
import {
  type LoadedPolicies,
  loadHalts,
  loadPolicies,
  type PolicyFileProblem,
  renderPolicyProblem,
} from '../../policy-files/policy-file.ts';
import { STARTER_POLICY } from '../../system/package-files.ts';
import { CliError } from '../errors.ts';
import type { OutputFormat } from '../invocation.ts';
import { show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';

/** The files the gateway would read when started here. */
export const gatewayPolicyPath = (env: NodeJS.ProcessEnv): string => env.SVC_POLICY_PATH || STARTER_POLICY;

/** Which files those are, where the command names none. */
export const assumedNote = (env: NodeJS.ProcessEnv): string =>
  env.SVC_POLICY_PATH
    ? `By ${env.SVC_POLICY_PATH} (SVC_POLICY_PATH); --policies names others.`
    : 'By the starter policies, which a gateway without SVC_POLICY_PATH has; --policies names others.';

/** Whether the name is that of a file of cases, `search.test.yaml`. */
export const isCaseFile = (path: string): boolean => /\.test\.ya?ml$/i.test(path);

/** Policies that a command needs to go on; their problems are printed before it gives up. */
export async function needPolicies(format: OutputFormat, paths: readonly string[]): Promise<LoadedPolicies> {
  const loaded = await loadPolicies(...paths);
  if (loaded.ok) return loaded.value;
  throw await refusedFiles(format, loaded.fault);
}

/** The halts of --halts; without it, none. */
export async function assumedHalts(format: OutputFormat, file: string | undefined): Promise<readonly AssumedHalt[]> {
  if (file === undefined) return [];
  const loaded = await loadHalts(file);
  if (loaded.ok) return loaded.value;
  throw await refusedFiles(format, loaded.fault);
}

export async function refusedFiles(format: OutputFormat, problems: readonly PolicyFileProblem[]): Promise<CliError> {
  await showProblems(format, problems);
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`;
  const hint = problems.some(({ line }) => line !== undefined)
    ? 'Each is listed with its line and column.'
    : 'Check the names of the files.';
  return new CliError(`${count} in these files`, hint);
}

const showProblems = (format: OutputFormat, problems: readonly PolicyFileProblem[]): Promise<void> =>
  show(
    format,
    {
      ok: false,
      problems: problems.map(({ file, line, column, path, problem }) => ({
        file,
        line: line ?? null,
        column: column ?? null,
        path,
        problem,
      })),
    },
    () => problems.map((problem) => printable(renderPolicyProblem(problem))),
  );

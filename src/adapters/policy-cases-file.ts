/** The cases of `svc policy test`, from a YAML file. */
import { type PolicyCase, parsePolicyCases } from '../core/policy-cases.ts';
import { fail, ok, type Result } from '../core/result.ts';
import { type PolicyFileProblem, place, readPolicyFile } from './policy-file.ts';
import { readYaml } from './policy-yaml.ts';

export async function loadPolicyCases(
  file: string,
): Promise<Result<readonly PolicyCase[], readonly PolicyFileProblem[]>> {
  const read = await readPolicyFile(file);
  return read.ok ? loadPolicyCasesText(read.value.text, file) : fail([read.fault]);
}

/** The cases of every document of the text, one after the other. */
export function loadPolicyCasesText(
  text: string,
  file: string,
): Result<readonly PolicyCase[], readonly PolicyFileProblem[]> {
  const { documents, problems: syntax } = readYaml(text);
  const parsed = documents.map((yaml) => ({ yaml, cases: parsePolicyCases(yaml.raw) }));
  const mistakes = parsed.flatMap(({ yaml, cases }) =>
    cases.ok ? [] : cases.fault.map((mistake) => place(file, yaml, mistake)),
  );
  const problems = [...syntax.map((problem) => ({ file, path: '', ...problem })), ...mistakes];
  return problems.length > 0 ? fail(problems) : ok(parsed.flatMap(({ cases }) => (cases.ok ? cases.value : [])));
}

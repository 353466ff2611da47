/** Reads the operator's own prices (docs/spec.md, Prices). */
import { readFile } from 'node:fs/promises';
import { fail, ok, type Result } from '../core/base/result.ts';
import { codeOf } from '../core/base/text.ts';
import { type OwnPrices, parseOwnPrices } from '../core/prices/own-prices.ts';
import { renderPolicyProblem } from './policy-file.ts';
import { MAX_POLICY_FILE_BYTES, readYaml } from './policy-yaml.ts';

/** All mistakes at once, each with its line and column. */
export async function readPriceFile(path: string): Promise<Result<OwnPrices, readonly string[]>> {
  let text: string;
  try {
    const bytes = await readFile(path);
    if (bytes.length > MAX_POLICY_FILE_BYTES)
      return fail([`${path}: is larger than ${MAX_POLICY_FILE_BYTES} bytes, the most that a file of prices may have`]);
    text = bytes.toString('utf8');
  } catch (error) {
    return fail([`${path}: cannot be read: ${codeOf(error) ?? 'unknown'}`]);
  }
  const { documents, problems } = readYaml(text);
  if (problems.length > 0) return fail(problems.map((each) => renderPolicyProblem({ file: path, path: '', ...each })));
  const [document, second] = documents;
  if (document === undefined || second !== undefined)
    return fail([`${path}: must be one YAML document with the key models`]);
  const parsed = parseOwnPrices(document.raw);
  if (parsed.problems.length === 0) return ok(parsed.prices);
  return fail(
    parsed.problems.map((problem) =>
      renderPolicyProblem({
        file: path,
        ...document.locate(problem),
        path: problem.path.join('.'),
        problem: problem.problem,
      }),
    ),
  );
}

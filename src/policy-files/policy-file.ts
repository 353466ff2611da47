/** Policies from YAML text, from a file, or from the files of a folder (docs/spec.md, Policy). */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { DocumentProblem } from '../core/base/mapping.ts';
import { assert, fail, ok, type Result } from '../core/base/result.ts';
import type { Steps } from '../core/base/steps.ts';
import { codeOf } from '../core/base/text.ts';
import { type AssumedHalt, parseHaltsFile } from '../core/policy/assumed-halts.ts';
import { type PolicyCase, parsePolicyCases } from '../core/policy/cases.ts';
import { type PolicyDocument, parsePolicyDocument, parsingPolicyDocument } from '../core/policy/document.ts';
import { checkTogether, compilePolicies, compilingPolicies, type PolicySet } from '../core/policy/policy.ts';
import { unreachableAllows } from '../core/policy/unreachable.ts';
import type { PolicyText } from '../ports/cluster.ts';
import { MAX_POLICY_FILE_BYTES, readYaml, type YamlDocument } from './policy-yaml.ts';

/**
 * Runs the work for one item after the other, and returns all results. For files, running all at once would take a
 * descriptor each and, on a file system that hangs, every thread of Node.js' pool, which the store and password hashing
 * need too.
 */
export async function sequentially<T, R>(items: Iterable<T>, work: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (const item of items) done.push(await work(item));
  return done;
}

// The cases of `svc policy test`, from a YAML file.

export async function loadPolicyCases(
  file: string,
): Promise<Result<readonly PolicyCase[], readonly PolicyFileProblem[]>> {
  const read = await readPolicyFile(file);
  return read.ok ? loadPolicyCasesText(read.value.text, file) : fail([read.fault]);
}

/** The cases of every document of the text, one after the other. */
export const loadPolicyCasesText = (
  text: string,
  file: string,
): Result<readonly PolicyCase[], readonly PolicyFileProblem[]> => parsedAlike(text, file, parsePolicyCases);

/** The halts of a file: of `svc halts ls`, or written by hand. */
export async function loadHalts(file: string): Promise<Result<readonly AssumedHalt[], readonly PolicyFileProblem[]>> {
  const read = await readPolicyFile(file);
  return read.ok ? parsedAlike(read.value.text, file, parseHaltsFile) : fail([read.fault]);
}

/** Parses all documents of the text, one after the other. */
function parsedAlike<T>(
  text: string,
  file: string,
  parse: (raw: unknown) => Result<readonly T[], readonly DocumentProblem[]>,
): Result<readonly T[], readonly PolicyFileProblem[]> {
  const { documents, problems: syntax } = readYaml(text);
  const parsed = documents.map((yaml) => ({ yaml, held: parse(yaml.raw) }));
  const mistakes = parsed.flatMap(({ yaml, held }) =>
    held.ok ? [] : held.fault.map((mistake) => place(file, yaml, mistake)),
  );
  const problems = [...syntax.map((problem) => ({ file, path: '', ...problem })), ...mistakes];
  return problems.length > 0 ? fail(problems) : ok(parsed.flatMap(({ held }) => (held.ok ? held.value : [])));
}

export type LoadedPolicies = {
  readonly policies: PolicySet;
  /** The files, in the order in which they were read. */
  readonly files: readonly string[];
  /** The files as they are written, by their names without folders. */
  readonly texts: readonly PolicyText[];
  /** Warns of parts that are valid but probably not intended, in full sentences. */
  readonly warnings: readonly string[];
};

/** The documents of all files. Each is valid, and so are all of them together. */
export type ReadPolicies = Pick<LoadedPolicies, 'files' | 'texts' | 'warnings'> & {
  readonly documents: readonly { readonly raw: unknown; readonly source: string }[];
};

/** Lines and columns count from 1; a file that cannot be read has none. */
export type PolicyFileProblem = {
  readonly file: string;
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** `rules[2].when`; '' when the problem is not at a key. */
  readonly path: string;
  readonly problem: string;
  /** The problem is the system's, not the file's: the same file may be readable a moment later. */
  readonly mayPass?: true;
};

const MAX_UNREACHABLE_REPORTED = 20;

/** Without `node:path`: the SDK has this code for tests in runtimes that have no such module. */
const nameOfFile = (file: string): string => file.replace(/^[^]*[/\\]/, '');

/** `search.yaml:12:7: rules[2].when: Unknown variable: agnet`, the form that editors and terminals make a link of. */
export function renderPolicyProblem({ file, line, column, path, problem }: PolicyFileProblem): string {
  const place = line === undefined ? file : `${file}:${line}:${column ?? 1}`;
  return path === '' ? `${place}: ${problem}` : `${place}: ${path}: ${problem}`;
}

/**
 * Every path is a YAML file of one or many documents, or a folder whose `*.yaml` and `*.yml` are read by name, not its
 * subfolders. All of them together are one set.
 */
export const loadPolicies = (
  ...paths: readonly string[]
): Promise<Result<LoadedPolicies, readonly PolicyFileProblem[]>> => fromFiles(paths, loadPolicyTexts);

/** The same without compiling: the valid documents as plain data, which can be sent to another thread. */
export const readPolicyFiles = (
  ...paths: readonly string[]
): Promise<Result<ReadPolicies, readonly PolicyFileProblem[]>> => fromFiles(paths, readPolicyTexts);

/** Reads the texts of the files as they are, valid or not. */
export const textsOfFiles = (
  ...paths: readonly string[]
): Promise<Result<readonly PolicyText[], readonly PolicyFileProblem[]>> => fromFiles(paths, ok);

async function fromFiles<T>(
  paths: readonly string[],
  read: (texts: readonly PolicyText[]) => Result<T, readonly PolicyFileProblem[]>,
): Promise<Result<T, readonly PolicyFileProblem[]>> {
  const listed = await sequentially(paths, listPolicyFiles);
  const missing = listed.flatMap((result) => (result.ok ? [] : result.fault));
  const texts = await sequentially(
    new Set(listed.flatMap((result) => (result.ok ? result.value : []))),
    readPolicyFile,
  );
  const problems = [...missing, ...texts.flatMap((result) => (result.ok ? [] : [result.fault]))];
  const loaded = read(texts.flatMap((result) => (result.ok ? [result.value] : [])));
  return problems.length > 0 ? fail([...problems, ...(loaded.ok ? [] : loaded.fault)]) : loaded;
}

/** All mistakes of all texts at once, in the order of the files and of the lines within each. */
export function loadPolicyTexts(texts: readonly PolicyText[]): Result<LoadedPolicies, readonly PolicyFileProblem[]> {
  const checked = checkTexts(texts);
  if (!checked.ok) return checked;
  const policies = compilePolicies(checked.value.flatMap(({ document }) => (document === undefined ? [] : [document])));
  assert(policies.ok, 'documents without a problem compile');
  return ok({ policies: policies.value, ...filesOf(texts), warnings: warningsFor(checked.value) });
}

/** The valid documents of texts that were read elsewhere, as plain data. */
export function readPolicyTexts(texts: readonly PolicyText[]): Result<ReadPolicies, readonly PolicyFileProblem[]> {
  const checked = checkTexts(texts);
  if (!checked.ok) return checked;
  const documents = checked.value.map(({ file, yaml: { raw } }) => ({ raw, source: nameOfFile(file) }));
  return ok({ documents, ...filesOf(texts), warnings: warningsFor(checked.value) });
}

const filesOf = (texts: readonly PolicyText[]): Pick<LoadedPolicies, 'files' | 'texts'> => ({
  files: texts.map(({ file }) => file),
  texts: texts.map(({ file, text }) => ({ file: nameOfFile(file), text })),
});

/** Compiles the documents that `readPolicyFiles` found valid, one rule per step. */
export function* compilingRead({ documents, ...read }: ReadPolicies): Steps<LoadedPolicies> {
  const parsed: PolicyDocument[] = [];
  for (const { raw, source } of documents) {
    const { document, problems } = yield* parsingPolicyDocument(raw, source);
    assert(document !== undefined && problems.length === 0, 'documents that were found good have no problem');
    parsed.push(document);
  }
  const policies = yield* compilingPolicies(parsed);
  assert(policies.ok, 'documents without a problem compile');
  return { policies: policies.value, ...read };
}

type PlacedDocument = {
  readonly file: string;
  readonly yaml: YamlDocument;
  readonly document: PolicyDocument | undefined;
};

function checkTexts(texts: readonly PolicyText[]): Result<readonly PlacedDocument[], readonly PolicyFileProblem[]> {
  const problems: PolicyFileProblem[] = [];
  const placed: PlacedDocument[] = [];
  for (const { file, text } of texts) {
    const { documents, problems: syntax } = readYaml(text);
    problems.push(...syntax.map((problem) => ({ file, path: '', ...problem })));
    for (const yaml of documents) {
      const { document, problems: mistakes } = parsePolicyDocument(yaml.raw, nameOfFile(file));
      problems.push(...mistakes.map((mistake) => place(file, yaml, mistake)));
      placed.push({ file, yaml, document });
    }
  }
  for (const problem of checkTogether(placed.map(({ document }) => document))) {
    const owner = placed[problem.document];
    assert(owner !== undefined, 'a problem names one of the documents that were checked');
    problems.push(place(owner.file, owner.yaml, problem));
  }
  return problems.length > 0 ? fail(inReadingOrder(problems, texts)) : ok(placed);
}

/** A mistake in a document as a mistake in its file. */
function place(file: string, yaml: YamlDocument, mistake: DocumentProblem): PolicyFileProblem {
  const path = mistake.path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : index === 0 ? step : `.${step}`))
    .join('');
  return { file, ...yaml.locate(mistake), path, problem: mistake.problem };
}

function inReadingOrder(
  problems: readonly PolicyFileProblem[],
  texts: readonly PolicyText[],
): readonly PolicyFileProblem[] {
  const order = new Map(texts.map(({ file }, index) => [file, index]));
  const rank = (problem: PolicyFileProblem) => order.get(problem.file) ?? 0;
  return [...problems].sort(
    (a, b) => rank(a) - rank(b) || (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0),
  );
}

function warningsFor(placed: readonly PlacedDocument[]): readonly string[] {
  const rules = placed.flatMap(({ document }) => document?.rules ?? []);
  if (placed.length === 0) return ['There are no policies, so every check will be denied.'];
  if (!rules.some(({ effect }) => effect === 'allow'))
    return ['No rule allows anything, so every check will be denied.'];
  return unreachableWarnings(placed);
}

function unreachableWarnings(placed: readonly PlacedDocument[]): readonly string[] {
  const found = unreachableAllows(placed.flatMap(({ document }) => (document === undefined ? [] : [document])));
  const reported = found.slice(0, MAX_UNREACHABLE_REPORTED).flatMap(({ document, rule, deniedBy }) => {
    const owner = placed[document];
    const id = owner?.document?.rules[rule]?.id;
    if (owner === undefined || id === undefined) return [];
    const problem = `rule ${id} can never allow: rule ${deniedBy.rule.id} of policy ${deniedBy.policy} denies everything it matches.`;
    return [renderPolicyProblem(place(owner.file, owner.yaml, { path: ['rules', rule], problem }))];
  });
  return found.length > reported.length
    ? [...reported, `${found.length - reported.length} more rules can never allow.`]
    : reported;
}

const unreadable = (file: string, problem: string): PolicyFileProblem => ({
  file,
  line: undefined,
  column: undefined,
  path: '',
  problem,
});

/** A momentary lack of file descriptors, threads or memory; a disk or network disk that does not answer. */
const PASSING: ReadonlySet<string | undefined> = new Set([
  'EAGAIN',
  'EIO',
  'EMFILE',
  'ENFILE',
  'ENOMEM',
  'ESTALE',
  'ETIMEDOUT',
]);

/** A file or folder that the system does not let us read. */
function refused(path: string, error: unknown): PolicyFileProblem {
  const problem = unreadable(path, reasonOf(error, path));
  return PASSING.has(codeOf(error)) ? { ...problem, mayPass: true } : problem;
}

/** Files of cases lie beside the policies they test, as `search.test.yaml`, and are not policies. */
export const isPolicyFileName = (name: string): boolean =>
  /\.ya?ml$/i.test(name) && !/\.test\.ya?ml$/i.test(name) && !name.startsWith('.');

async function listPolicyFiles(path: string): Promise<Result<readonly string[], readonly PolicyFileProblem[]>> {
  try {
    if (!(await stat(path)).isDirectory()) return ok([path]);
    const names = (await readdir(path)).filter(isPolicyFileName).sort();
    return ok(names.map((name) => join(path, name)));
  } catch (error) {
    return fail([refused(path, error)]);
  }
}

/** Also used for files of cases, which have the same limits. */
async function readPolicyFile(file: string): Promise<Result<PolicyText, PolicyFileProblem>> {
  try {
    const info = await stat(file);
    if (!info.isFile()) return fail(unreadable(file, 'is not a file'));
    if (info.size > MAX_POLICY_FILE_BYTES)
      return fail(unreadable(file, `is larger than ${MAX_POLICY_FILE_BYTES} bytes`));
    const bytes = await readFile(file);
    // Between being emptied and being written again, a file must not leave the gateway without its policies.
    if (bytes.length === 0) return fail(unreadable(file, 'is empty; if that is intended, write a comment into it'));
    if (bytes.length > MAX_POLICY_FILE_BYTES)
      return fail(unreadable(file, `is larger than ${MAX_POLICY_FILE_BYTES} bytes`));
    return ok({ file, text: new TextDecoder('utf-8', { fatal: true }).decode(bytes) });
  } catch (error) {
    return fail(refused(file, error));
  }
}

function reasonOf(error: unknown, file: string): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    // Node.js puts this character in the place of bytes that are no text, and then looks for another name than is
    // there.
    case 'ENOENT':
      return file.includes('\uFFFD') ? 'has a name that is not UTF-8; rename it' : 'does not exist';
    case 'EACCES':
      return 'is not readable by this user';
    case 'ERR_ENCODING_INVALID_ENCODED_DATA':
      return 'is not UTF-8 text';
    // The file is named already; whether the message of the system does so, too, depends on the release of Node.js.
    default:
      return `cannot be read: ${message.replace(` '${file}'`, '')}`;
  }
}

/** Checks the settings and the files that they name; opens, makes and listens to nothing. */
import { readFileSync } from 'node:fs';
import { readSinkFile } from '../audit-sinks/sink-file.ts';
import { codeOf, messageOf } from '../core/base/text.ts';
import { loadPolicies, renderPolicyProblem } from '../policy-files/policy-file.ts';
import { STARTER_POLICY } from '../system/package-files.ts';
import { readTlsFiles } from '../system/tls-files.ts';
import { type Config, VARIABLES, type VariableName } from './config.ts';
import { tlsPathsOf } from './urls.ts';

/** Files that are read as they are, by the settings that name them. */
const FILES = ['SVC_BUS_CA_FILE', 'SVC_BUS_CERT_FILE', 'SVC_BUS_KEY_FILE', 'SVC_BUS_CREDENTIALS_FILE'] as const;

type Environment = Readonly<Record<string, string | undefined>>;

export type CheckedSettings = {
  /** Reasons why the gateway would not start. */
  readonly problems: readonly string[];
  readonly policies: number;
};

/** `env`: what the file of `SVC_AUDIT_SINKS` may name. */
export async function checkSettings(config: Config, env: Environment): Promise<CheckedSettings> {
  const loaded = await loadPolicies(config.SVC_POLICY_PATH ?? STARTER_POLICY);
  const policies = loaded.ok ? loaded.value.policies.summary().documents.length : 0;
  const ofPolicies = loaded.ok ? [] : loaded.fault.map(renderPolicyProblem);
  return {
    problems: [...ofPolicies, ...problemsOfTls(config), ...problemsOfFiles(config), ...problemsOfSinks(config, env)],
    policies,
  };
}

function problemsOfSinks({ SVC_AUDIT_SINKS: path }: Config, env: Environment): readonly string[] {
  const read = path === undefined ? undefined : readSinkFile(path, env);
  return read === undefined || read.ok ? [] : read.fault;
}

function problemsOfTls(config: Config): readonly string[] {
  const paths = tlsPathsOf(config);
  const read = paths && readTlsFiles(paths);
  return read === undefined || read.ok ? [] : [read.fault];
}

function problemsOfFiles(config: Config): readonly string[] {
  const key = config.SVC_JWT_PRIVATE_KEY;
  const named = FILES.map((name) => [name, config[name]] as const);
  const all = [...named, ['SVC_JWT_PRIVATE_KEY', key?.includes('-----BEGIN') === true ? undefined : key] as const];
  return all.flatMap(([name, path]) => {
    if (path === undefined) return [];
    try {
      readFileSync(path);
      return [];
    } catch (error) {
      return [`cannot read the file of ${name} (${codeOf(error) ?? messageOf(error)})`];
    }
  });
}

const MASK = '********';

export type ShownSetting = { readonly name: string; readonly value: string; readonly source: 'set' | 'default' };

/** Every setting as text, as the environment or its default gives it; secrets are masked. */
export function shownSettings(env: Environment): readonly ShownSetting[] {
  return (Object.keys(VARIABLES) as VariableName[]).map((name) => {
    const { fallback, ...row } = VARIABLES[name];
    const given = env[name] === '' ? undefined : env[name];
    if (given === undefined) return { name, value: fallback ?? '', source: 'default' };
    return { name, value: 'isSecret' in row && row.isSecret === true ? MASK : given, source: 'set' };
  });
}

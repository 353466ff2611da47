/**
 * The rules that `governor` and `policy-decide` decide by. They belong to the benchmarks alone, so that a figure
 * changes with the code and never with a policy of the product. A change here is a change of the workloads: give them
 * new names.
 */
import { parsePolicyDocument } from '../../src/core/policy/document.ts';
import { compilePolicies, type PolicySet } from '../../src/core/policy/policy.ts';

const DOCUMENT = {
  name: 'bench',
  scope: 'global',
  rules: [
    {
      id: 'harmless-tools',
      actions: ['tool.call'],
      resources: ['web_search', 'calculator', 'clock', 'weather'],
      effect: 'allow',
    },
    { id: 'models', actions: ['llm.call'], when: 'estimated_cost_usd <= 1.0', effect: 'allow' },
    { id: 'read-workspace', actions: ['file.read'], resources: ['/workspace/*'], effect: 'allow' },
    {
      id: 'no-deleting-commands',
      actions: ['process.exec'],
      resources: ['rm', 'rm *', '*/rm', '*/rm *', 'sudo *', 'mkfs*', 'dd *', 'shutdown*', 'reboot*'],
      effect: 'deny',
    },
    {
      id: 'no-cloud-metadata',
      actions: ['net.connect'],
      resources: ['*169.254.169.254*', '*[fd00:ec2::254]*', '*metadata.google.internal*'],
      effect: 'deny',
    },
    { id: 'no-climbing-out', actions: ['file.*'], resources: ['*..*'], effect: 'deny' },
    {
      id: 'no-secrets',
      actions: ['file.*'],
      resources: ['*/.env', '*/.env.*', '*/.ssh/*', '*/.aws/*', '*id_rsa*', '*.pem'],
      effect: 'deny',
    },
  ],
};

export function policiesOf(raw: readonly object[]): PolicySet {
  const documents = raw.map((each) => parsePolicyDocument(each, 'bench').document);
  const compiled = compilePolicies(documents.filter((document) => document !== undefined));
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  return compiled.value;
}

/** Ten limits that all checks of the workloads count in, none of which is ever reached. */
const LIMITED = {
  name: 'limited',
  scope: 'global',
  limits: [
    ...['agent', 'team', 'org'].flatMap((per) =>
      ['1m', '1h', '1d'].map((every) => ({ id: `${per}-${every}`, per, every, calls: 1_000_000_000 })),
    ),
    { id: 'lineage', per: 'lineage', calls: 1_000_000_000 },
  ],
};

/** The same rules, with ten limits. */
export const limitedPolicies = (): PolicySet => policiesOf([DOCUMENT, LIMITED]);

export const governorPolicies = (): PolicySet => policiesOf([DOCUMENT]);

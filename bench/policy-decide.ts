/** How long does one policy decision take, by what it has to look through? */

import type { CheckSubject } from '../src/core/condition/condition.ts';
import type { PolicySet } from '../src/core/policy/policy.ts';
import { isBrief } from './lib/options.ts';
import { heading, line } from './lib/report.ts';
import { governorPolicies, policiesOf } from './policies/governor.ts';

const RUNS = isBrief ? 10_000 : 1_000_000;

const subjectOf = (org: number): CheckSubject => ({
  agent: { orgId: `org${org}`, teamId: 'search', agentId: 'a1' },
  action: 'tool.call',
  resource: 'web_search',
  attributes: { size: 10, path: '/workspace/notes.md', tags: ['a', 'b'] },
  caller: undefined,
  estimatedCostMicroUsd: 1000,
});

const base = {
  name: 'base',
  scope: 'global',
  rules: [
    { id: 'no-delete', actions: ['process.exec'], resources: ['rm *', 'sudo *'], effect: 'deny' },
    { id: 'no-metadata', actions: ['net.connect'], resources: ['*169.254.169.254*'], effect: 'deny' },
    { id: 'no-secrets', actions: ['file.*'], resources: ['*/.env', '*/.ssh/*'], effect: 'deny' },
    { id: 'models', actions: ['llm.call'], effect: 'allow' },
  ],
};
const team = (when?: string) => ({
  name: 'team',
  scope: 'team:org0/search',
  rules: [
    {
      id: 'web',
      actions: ['tool.call'],
      resources: ['web_*'],
      effect: 'allow',
      ...(when === undefined ? {} : { when }),
    },
    { id: 'tools', actions: ['tool.call'], resources: ['calculator', 'clock'], effect: 'allow' },
  ],
});
const fleet = Array.from({ length: 200 }, (_, i) => ({
  name: `p${i}`,
  scope: i % 4 === 0 ? `org:org${i >> 2}` : `team:org${i >> 2}/${['', 'search', 'write', 'ops'][i % 4]}`,
  rules: [
    {
      id: 'tools',
      actions: ['tool.call'],
      resources: Array.from({ length: 20 }, (__, n) => `tool_${n}`),
      effect: 'allow',
    },
    { id: 'web', actions: ['tool.*'], resources: ['web_*'], effect: 'allow' },
    { id: 'files', actions: ['file.*'], resources: ['/tmp/*'], effect: 'deny' },
  ],
}));

/** Forty characters of its own for each, as in `governor`. */
const distinct = Array.from({ length: 10_000 }, (_, at) => ({
  ...subjectOf(at % 50),
  action: 'file.read',
  resource: Buffer.from(`/workspace/${String(at).padStart(29, '0')}`).toString('latin1'),
}));

const QUESTIONS: readonly (readonly [string, PolicySet, readonly CheckSubject[]])[] = [
  ['two documents, no condition', policiesOf([base, team()]), [subjectOf(0)]],
  ['one condition', policiesOf([base, team('attributes.size < 1000 && agent.org_id == "org0"')]), [subjectOf(0)]],
  ['200 documents over 50 orgs', policiesOf([base, ...fleet]), Array.from({ length: 50 }, (_, org) => subjectOf(org))],
  ['same: the rules of governor', governorPolicies(), [subjectOf(0)]],
  ['distinct: the rules of governor', governorPolicies(), distinct],
];

heading('One policy decision');
for (const [question, policies, subjects] of QUESTIONS) {
  const decideAll = (runs: number): number => {
    let allowed = 0;
    for (let i = 0; i < runs; i += 1) {
      const subject = subjects[i % subjects.length];
      if (subject !== undefined && policies.decide(subject).kind === 'allow') allowed += 1;
    }
    return allowed;
  };
  decideAll(RUNS / 10);
  const startedMs = performance.now();
  const allowed = decideAll(RUNS);
  const perDecisionNs = ((performance.now() - startedMs) * 1_000_000) / RUNS;
  line(question, perDecisionNs, 'ns', allowed === RUNS ? '' : `only ${allowed} of ${RUNS} were allowed`);
}

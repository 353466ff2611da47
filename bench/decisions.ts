/**
 * How long does one decision take in process, beside other engines that can be installed for Node.js, by the number of
 * rules? The question and the one rule that fits it are the same for all; each engine has a process of its own.
 */
import { fork } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parsePolicyDocument } from '../src/core/policy/document.ts';
import { compilePolicies } from '../src/core/policy/policy.ts';
import { endingOf } from './lib/ending.ts';
import { isBrief } from './lib/options.ts';
import { installPeers } from './lib/peers.ts';
import { heading, headline, line, median } from './lib/report.ts';

const CEDAR = '@cedar-policy/cedar-wasm@4.13.0';
const CASBIN = 'casbin@5.51.1';
const RULES = isBrief ? [10] : [10, 1_000, 10_000];
const RUNS = isBrief ? 1 : 5;
const LEAST_RUN_MS = isBrief ? 5 : 50;

const ENGINES = ['svc-gateway', 'Cedar', 'casbin'] as const;
type EngineName = (typeof ENGINES)[number];
/** How rules name what they are about: each its own resource, or what its resources begin with. */
const STYLES = ['name', 'prefix'] as const;
type Style = (typeof STYLES)[number];

/** Answers the question once. */
type Decide = () => boolean;
type Question = { readonly rules: number; readonly style: Style; readonly load: (name: string) => unknown };

const MAX_SIZE = 1_000;
const ORG = 'acme';
const ACTION = 'tool.call';
const resourceOf = (nth: number, style: Style): string => (style === 'name' ? `tool_${nth}` : `tool_${nth}_`);
/** In the middle, so that an engine that tries one after the other has neither luck nor bad luck. */
const askedOf = ({ rules, style }: Question): string =>
  `${resourceOf(Math.floor(rules / 2), style)}${style === 'name' ? '' : 'x'}`;
const numbersTo = (count: number): readonly number[] => Array.from({ length: count }, (_, nth) => nth);

function gatewayDecides(question: Question): Decide {
  const { rules, style } = question;
  const pattern = style === 'name' ? '' : '*';
  const { document } = parsePolicyDocument(
    {
      name: 'bench',
      scope: 'global',
      rules: numbersTo(rules).map((nth) => ({
        id: `r${nth}`,
        effect: 'allow',
        actions: [ACTION],
        resources: [`${resourceOf(nth, style)}${pattern}`],
        when: `attributes.size < ${MAX_SIZE} && agent.org_id == "${ORG}"`,
      })),
    },
    'bench',
  );
  const compiled = compilePolicies(document === undefined ? [] : [document]);
  if (!compiled.ok) throw new Error(JSON.stringify(compiled.fault));
  const subject = {
    agent: { orgId: ORG, teamId: 'search', agentId: 'crawler' },
    action: ACTION,
    resource: askedOf(question),
    attributes: { size: 10 },
    caller: undefined,
    estimatedCostMicroUsd: 0,
  };
  return () => compiled.value.decide(subject).kind === 'allow';
}

type Cedar = {
  preparsePolicySet(id: string, policies: { staticPolicies: Record<string, string> }): { type: string };
  statefulIsAuthorized(call: object): { response?: { decision: string } };
};

function cedarDecides(question: Question): Decide {
  const { rules, style, load } = question;
  const cedar = load('@cedar-policy/cedar-wasm/nodejs') as Cedar;
  const policyOf = (nth: number): string => {
    const [scope, test] =
      style === 'name'
        ? [`resource == Tool::"${resourceOf(nth, style)}"`, '']
        : ['resource', `context.resource like "${resourceOf(nth, style)}*" && `];
    return `permit(principal, action == Action::"${ACTION}", ${scope}) when { ${test}context.size < ${MAX_SIZE} && context.org == "${ORG}" };`;
  };
  const staticPolicies = Object.fromEntries(numbersTo(rules).map((nth) => [`r${nth}`, policyOf(nth)]));
  if (cedar.preparsePolicySet('bench', { staticPolicies }).type !== 'success')
    throw new Error('Cedar refuses the rules');
  const resource = askedOf(question);
  const call = {
    principal: { type: 'Agent', id: 'crawler' },
    action: { type: 'Action', id: ACTION },
    resource: { type: 'Tool', id: resource },
    context: { size: 10, org: ORG, resource },
    preparsedPolicySetId: 'bench',
    validateRequest: false,
    entities: [],
  };
  return () => cedar.statefulIsAuthorized(call).response?.decision === 'allow';
}

type Casbin = {
  newModelFromString(text: string): unknown;
  StringAdapter: new (rules: string) => unknown;
  newEnforcer(model: unknown, adapter: unknown): Promise<{ enforceSync(...values: unknown[]): boolean }>;
};

async function casbinDecides(question: Question): Promise<Decide> {
  const { rules, style, load } = question;
  const { newEnforcer, newModelFromString, StringAdapter } = load('casbin') as Casbin;
  const fits = style === 'name' ? 'r.obj == p.obj' : 'keyMatch(r.obj, p.obj)';
  const model = [
    '[request_definition]',
    'r = sub, act, obj',
    '[policy_definition]',
    'p = org, act, obj, max',
    '[policy_effect]',
    'e = some(where (p.eft == allow))',
    '[matchers]',
    `m = r.act == p.act && ${fits} && r.sub.size < p.max && r.sub.org == p.org`,
  ].join('\n');
  const pattern = style === 'name' ? '' : '*';
  const lines = numbersTo(rules).map((nth) => `p, ${ORG}, ${ACTION}, ${resourceOf(nth, style)}${pattern}, ${MAX_SIZE}`);
  const enforcer = await newEnforcer(newModelFromString(model), new StringAdapter(lines.join('\n')));
  const resource = askedOf(question);
  return () => enforcer.enforceSync({ org: ORG, size: 10 }, ACTION, resource);
}

const DECIDES: Readonly<Record<EngineName, (question: Question) => Decide | Promise<Decide>>> = {
  'svc-gateway': gatewayDecides,
  Cedar: cedarDecides,
  casbin: casbinDecides,
};

/** Microseconds a decision, for each run. */
async function measure(engine: EngineName, question: Question): Promise<readonly number[]> {
  const decide = await DECIDES[engine](question);
  const runFor = (atLeastMs: number): number => {
    let decided = 0;
    const startedMs = performance.now();
    for (let together = 1; performance.now() - startedMs < atLeastMs; together = Math.min(1_000, together * 2))
      for (let time = 0; time < together; time += 1) {
        if (!decide()) throw new Error(`${engine} does not allow what it is asked`);
        decided += 1;
      }
    return ((performance.now() - startedMs) * 1_000) / decided;
  };
  runFor(4 * LEAST_RUN_MS); // warm
  return Array.from({ length: RUNS }, () => runFor(LEAST_RUN_MS));
}

/** In a process of its own: compiled code that one engine has left may slow another down. */
function measureElsewhere(engine: EngineName, rules: number, style: Style, folder: string): Promise<readonly number[]> {
  const brief = isBrief ? ['--brief'] : [];
  const child = fork(fileURLToPath(import.meta.url), [engine, String(rules), style, folder, ...brief]);
  endingOf(child);
  return new Promise((resolve, reject) => {
    child.once('message', (figures) => resolve(figures as number[]));
    child.once('exit', (code) => reject(new Error(`${engine} ended with ${code}`)));
  });
}

async function compare(): Promise<void> {
  heading('One decision in process, beside other engines, by the number of rules');
  const folder = installPeers(CEDAR, CASBIN);
  const engines = ENGINES.filter((engine) => engine === 'svc-gateway' || folder !== undefined);
  for (const style of STYLES)
    for (const rules of RULES) {
      const what = `${rules.toLocaleString('en')} rules by ${style}`;
      const figures = new Map<EngineName, readonly number[]>();
      for (const engine of engines) figures.set(engine, await measureElsewhere(engine, rules, style, folder ?? ''));
      for (const [engine, runs] of figures) {
        const ownUs = median(figures.get('svc-gateway') ?? []);
        const note =
          engine === 'svc-gateway' ? '' : `${Math.round(median(runs) / ownUs).toLocaleString('en')} × as long`;
        const report = rules === 1_000 && style === 'prefix' ? headline : line;
        report(`${what}: ${engine}`, runs, 'µs', note);
      }
    }
}

if (process.send === undefined) await compare();
else {
  const [engine, rules, style, folder = ''] = process.argv.slice(2);
  const load = (name: string): unknown => createRequire(join(folder, 'here.cjs'))(name);
  const question = { rules: Number(rules), style: style as Style, load };
  process.send(await measure(engine as EngineName, question), () => process.disconnect());
}

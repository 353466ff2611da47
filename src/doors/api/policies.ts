/** Policies: shows those in force, and reloads them (docs/spec.md, HTTP). */
import { z } from 'zod';
import { isOpHalf } from '../../core/base/ids.ts';
import { usdToMicro } from '../../core/base/money.ts';
import { ok } from '../../core/base/result.ts';
import { rfc3339 } from '../../core/base/time.ts';
import { invalid } from '../../core/fault.ts';
import { termsView } from '../../core/policy/approval-terms.ts';
import type { RuleTrace } from '../../core/policy/explain.ts';
import type { Link } from '../../use-cases/use-cases.ts';
import type { Authorized, HttpReply, Route } from '../engine/route.ts';
import { readStructJson } from '../proto/json-values.ts';
import { attempt } from '../proto/schema.ts';
import { optional } from '../shared/input.ts';
import {
  isLongerThan,
  MAX_ACTION_BYTES,
  MAX_LABEL_BYTES,
  MAX_RESOURCE_BYTES,
  OP_HALF_RULE,
  problemOfAction,
  problemOfResource,
} from '../shared/limits.ts';
import { unconfirmedHeaders } from '../shared/unconfirmed.ts';
import { agentIdentity, moneyUsd, optionalOr, readNames, readPage, ruled, withBody } from './body.ts';
import { policyExplanation, policyPage, policyReload, rulePage } from './shapes.ts';
import { cursorView } from './views.ts';

const textOf = (bytes: number) => ruled((text) => !isLongerThan(text, bytes), `must be at most ${bytes} bytes`);

const MAX_FILES = 1_000;
const NAME_RULE = `must be 1 to ${MAX_LABEL_BYTES} bytes`;

export const policyFiles = z
  .array(
    z.strictObject({
      name: ruled((name) => name !== '' && !isLongerThan(name, MAX_LABEL_BYTES), NAME_RULE),
      text: z.string().meta({ description: 'YAML, as in a policy file.' }),
    }),
  )
  .max(MAX_FILES, `must be at most ${MAX_FILES} files`);

export const textsOf = (files: z.output<typeof policyFiles>) => files.map(({ name, text }) => ({ file: name, text }));

const check = z.strictObject({
  agent: agentIdentity,
  caller: optional(agentIdentity),
  action: textOf(MAX_ACTION_BYTES).min(1, 'is required'),
  resource: optionalOr(textOf(MAX_RESOURCE_BYTES), ''),
  // Not checked further: a record schema would drop a key named __proto__, for which a check is refused.
  attributes: optional(z.unknown().meta({ type: 'object', additionalProperties: {} })),
  estimated_cost_usd: optionalOr(moneyUsd, 0),
  trace_id: optional(ruled(isOpHalf, OP_HALF_RULE)).meta({
    description: 'The session whose limits are looked at as well. Default: those of no session.',
  }),
  files: optional(policyFiles).meta({ description: 'A draft that decides in place of the set in force.' }),
});

const publishing = z.strictObject({
  files: optional(policyFiles),
  version: optional(z.string()).meta({ description: 'Of a set that was published before, in place of `files`.' }),
});

async function list({ principal, query }: Authorized, link: Link): Promise<HttpReply> {
  const page = readPage(query);
  if (!page.ok) return page;
  const listed = await link.call('listPolicies', { principal, ...page.value });
  if (!listed.ok) return listed;
  const { version, loadedAtMs, failure, items } = listed.value;
  const documents = items.map(({ name, scope, ruleCount, source }) => ({ name, scope, rule_count: ruleCount, source }));
  const reloadError = failure && {
    at: rfc3339(failure.atMs),
    by: failure.by,
    reason: failure.reason,
    problems: failure.problems,
  };
  return ok({
    status: 200,
    body: {
      version,
      loaded_at: rfc3339(loadedAtMs),
      reload_error: reloadError ?? null,
      documents,
      ...cursorView(listed.value),
    },
  });
}

async function listRules({ principal, query }: Authorized, link: Link): Promise<HttpReply> {
  const page = readPage(query);
  if (!page.ok) return page;
  const names = readNames(query, ['policy']);
  if (!names.ok) return names;
  const listed = await link.call('listRules', { principal, policy: names.value.policy, ...page.value });
  if (!listed.ok) return listed;
  const rules = listed.value.items.map(({ when, reason, remedy, approval, obligations, ...rule }) => ({
    ...rule,
    when: when ?? null,
    reason: reason ?? null,
    remedy: remedy ?? null,
    approval: approval === undefined ? null : termsView(approval),
    obligations: obligations ?? [],
  }));
  return ok({ status: 200, body: { version: listed.value.version, rules, ...cursorView(listed.value) } });
}

async function explain({ principal, body }: Authorized<typeof check>, link: Link): Promise<HttpReply> {
  const { agent, caller, action, resource, attributes, estimated_cost_usd: costUsd, trace_id: traceId, files } = body;
  const problem = problemOfAction(action);
  if (problem !== undefined) return invalid('action', problem);
  const resourceProblem = problemOfResource(resource, action);
  if (resourceProblem !== undefined) return invalid('resource', resourceProblem);
  const measured = attempt(() => (attributes === undefined ? undefined : readStructJson(attributes, 'attributes')));
  if (!measured.ok) return measured;
  const subject = {
    agent,
    caller,
    action,
    resource,
    attributes: measured.value,
    estimatedCostMicroUsd: usdToMicro(costUsd) ?? 0,
  };
  const draft = files === undefined ? undefined : textsOf(files);
  const explained = await link.call('explainCheck', { principal, subject, traceId, draft });
  if (!explained.ok) return explained;
  const {
    version,
    overruledBy = null,
    decision: { kind, policy, ruleId, reason, remedy, approval, obligations = [] },
    documents,
  } = explained.value;
  const views = documents.map(({ name, scope, source, rules }) => ({
    name,
    scope,
    source,
    rules: rules.map(ruleView),
  }));
  return ok({
    status: 200,
    body: {
      version,
      decision: {
        decision: kind,
        policy: policy ?? null,
        rule_id: ruleId ?? null,
        reason,
        remedy: remedy ?? null,
        approval: approval === undefined ? null : termsView(approval),
        obligations,
      },
      overruled_by: overruledBy,
      documents: views,
    },
  });
}

const ruleView = ({ id, effect, outcome, detail, decided }: RuleTrace) => ({ id, effect, outcome, detail, decided });

async function reload({ principal }: Authorized, link: Link): Promise<HttpReply> {
  const reloaded = await link.call('reloadPolicies', { principal });
  return reloaded.ok ? ok({ status: 200, body: reloaded.value }) : reloaded;
}

async function publish({ principal, body }: Authorized<typeof publishing>, link: Link): Promise<HttpReply> {
  const { files, version } = body;
  if ((files === undefined) === (version === undefined))
    return invalid('files', 'either `files` or the `version` of a set published before must be given');
  const set = version === undefined ? { texts: textsOf(files ?? []) } : { version };
  const published = await link.call('publishPolicies', { principal, set });
  if (!published.ok) return published;
  return ok({ status: 200, headers: unconfirmedHeaders(published), body: published.value });
}

export const policyRoutes: readonly Route[] = [
  {
    method: 'get',
    path: '/api/v1/policies',
    access: { scope: 'read' },
    isQueued: true,
    summary: 'Shows the policy documents in force',
    query: ['per_page', 'cursor'],
    answers: { 200: policyPage },
    handle: list,
  },
  {
    method: 'get',
    path: '/api/v1/policies/rules',
    access: { scope: 'read' },
    isQueued: true,
    summary: 'Lists the rules in force, in the order in which a check goes through them',
    query: ['policy', 'per_page', 'cursor'],
    answers: { 200: rulePage },
    handle: listRules,
  },
  {
    method: 'post',
    path: '/api/v1/policies/explain',
    access: { scope: 'read' },
    isQueued: true,
    summary:
      'Explains the decision of the policies on a check, the result of each rule, and what would overrule them; records nothing',
    answers: { 200: policyExplanation },
    refusals: [409, 503],
    ...withBody(check, explain),
  },
  {
    method: 'post',
    path: '/api/v1/policies/reload',
    access: { scope: 'admin' },
    summary: 'Reloads the policy files, all or none; 409 in a cluster',
    answers: { 200: policyReload },
    refusals: [409],
    handle: reload,
  },
  {
    method: 'post',
    path: '/api/v1/policies',
    access: { scope: 'admin' },
    summary: 'Publishes policies to all gateways of a cluster, all or none; 404 for a gateway outside one',
    answers: { 200: policyReload },
    refusals: [404, 409, 503],
    ...withBody(publishing, publish),
  },
];

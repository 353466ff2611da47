/**
 * JSON Schemas of policy files and of files of policy cases: for editors, which complete and check keys with them. The
 * parsers decide; the tests compare parsers and schemas. A schema knows neither CEL nor what must be unique, and counts
 * characters where the parser counts bytes.
 */

import { MAX_COST_USD } from '../base/money.ts';
import { LIMIT_KEYS, MAX_LIMIT_USD, PERIODS, type Period, scopedKeys, TIERS, type Tier } from '../budget/config.ts';
import { MAX_CONDITION_LENGTH } from '../condition/condition.ts';
import { LIMIT_PERS, LIMIT_UNITS, ON_EXCEED } from '../limits/limit.ts';
import { type LIMIT_KEYS as LIMIT_ITEM_KEYS, MAX_LIMIT_COUNT, MAX_LIMITS } from '../limits/read.ts';
import {
  type ApprovalTerms,
  DEFAULT_TERMS,
  MAX_APPROVAL_MIN,
  MAX_APPROVER_LENGTH,
  MAX_APPROVERS,
} from './approval-terms.ts';
import type { ASSUMED_HALT_KEYS } from './assumed-halts.ts';
import { CASE_CAUSES, type CaseKey } from './cases.ts';
import { MAX_REASON_LENGTH, MAX_REMEDY_LENGTH, MAX_RULES, type PolicyDocument, type Rule } from './document.ts';
import { RULE_EFFECTS } from './effect.ts';
import { MAX_GLOB_LENGTH } from './glob.ts';
import {
  MAX_MESSAGE_LENGTH,
  MAX_OBLIGATION_ID_LENGTH,
  MAX_OBLIGATIONS,
  MAX_PATH_LENGTH,
  MAX_PATHS,
  OBLIGATION_ID_PATTERN,
  type ObligationType,
  PATH_PATTERN,
  PROPERTIES_OF,
} from './obligation-terms.ts';
import { MAX_NAME_LENGTH } from './readers.ts';

export type JsonSchema = { readonly [keyword: string]: unknown };

/** The draft that editors support best. */
const DRAFT = 'http://json-schema.org/draft-07/schema#';

// The names of core/ids.ts.
const NAME = '(?!\\.{1,2}(?:/|$))[^\\s\\p{C}/]{1,256}';
const ORG_NAME = `(?!-(?:/|$))${NAME}`;
const SCOPE = `^(?:global|org:${ORG_NAME}|team:${ORG_NAME}/${NAME}|agent:${ORG_NAME}/${NAME}/${NAME})$`;
const HALT_SCOPE = `${SCOPE.slice(0, -2)}|lineage:${ORG_NAME}/${NAME}/${NAME})$`;
const AGENT = `^(?:${ORG_NAME})?/${NAME}/${NAME}$`;

const COMMON_ACTIONS = [
  ...['tool.call', 'llm.call', 'mcp.call', 'file.read', 'file.search', 'file.write', 'file.edit', 'net.connect'],
  'process.exec',
];

const nameSchema = (description: string): JsonSchema => ({
  description,
  type: 'string',
  maxLength: MAX_NAME_LENGTH,
  pattern: '^(?!\\s)[^\\p{C}]+(?<!\\s)$',
});

const textSchema = (description: string, maxLength: number): JsonSchema => ({
  description,
  type: 'string',
  pattern: '\\S',
  maxLength,
});

const effectSchema = (description: string): JsonSchema => ({ description, enum: RULE_EFFECTS });

/** `examples` are what an editor offers; other patterns are as good. */
const globsSchema = (description: string, examples: readonly string[]): JsonSchema => ({
  description,
  type: 'array',
  minItems: 1,
  items: { type: 'string', minLength: 1, maxLength: MAX_GLOB_LENGTH, examples },
});

const durationSchema = (description: string, examples: readonly string[]): JsonSchema => ({
  description,
  type: 'string',
  pattern: '^[1-9][0-9]{0,6}[smhd]$',
  examples,
});

const TERM_OF = {
  min: {
    description: `How many different approvers it takes. Omitted: ${DEFAULT_TERMS.min}.`,
    type: 'integer',
    minimum: 1,
    maximum: MAX_APPROVAL_MIN,
  },
  expiresMs: durationSchema('How long people have to decide, at most 7d. Omitted: 15m.', ['15m', '2h']),
  validMs: {
    description: 'For one use, or for how long from the approval on, at most 24h. Omitted: once.',
    anyOf: [{ enum: ['once'] }, durationSchema('A duration.', ['8h'])],
  },
  approvers: {
    description: 'Who may approve. Omitted: every credential with admin scope that sees the org.',
    type: 'array',
    minItems: 1,
    maxItems: MAX_APPROVERS,
    items: {
      type: 'string',
      pattern:
        '^(role:(owner|admin|developer|viewer)|account:(.*@.*|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})|key:.*\\S.*)$',
      maxLength: MAX_APPROVER_LENGTH,
      examples: ['role:admin', 'account:ops@example.com', 'key:ci'],
    },
  },
} as const satisfies Record<keyof ApprovalTerms, JsonSchema>;

const APPROVAL: JsonSchema = {
  description: 'Who may approve, and for how long. Only with the effect require_approval.',
  type: 'object',
  properties: {
    min: TERM_OF.min,
    expires: TERM_OF.expiresMs,
    valid: TERM_OF.validMs,
    approvers: TERM_OF.approvers,
  },
  additionalProperties: false,
};

const PATH: JsonSchema = {
  description: 'Names with dots between them: of an attribute, or of the result where it begins with result.',
  type: 'string',
  pattern: PATH_PATTERN,
  maxLength: MAX_PATH_LENGTH,
  examples: ['customer.email', 'result.rows.email'],
};

const PROPERTY = {
  paths: { description: 'The fields to hide.', type: 'array', minItems: 1, maxItems: MAX_PATHS, items: PATH },
  path: PATH,
  value: { description: 'The value that replaces it.' },
  max: { description: 'The highest number that may stand there.', type: 'number' },
  message: textSchema('Shown to the operator.', MAX_MESSAGE_LENGTH),
} as const satisfies Record<(typeof PROPERTIES_OF)[ObligationType][number], JsonSchema>;

const obligationSchema = (type: ObligationType, description: string): JsonSchema => ({
  description,
  type: 'object',
  properties: {
    id: {
      description: 'If several matching rules have the same id, the one of the narrower scope wins.',
      type: 'string',
      maxLength: MAX_OBLIGATION_ID_LENGTH,
      pattern: OBLIGATION_ID_PATTERN,
    },
    type: { enum: [type] },
    ...Object.fromEntries(PROPERTIES_OF[type].map((key) => [key, PROPERTY[key]])),
  },
  required: ['id', 'type', ...PROPERTIES_OF[type]],
  additionalProperties: false,
});

const OBLIGATIONS: JsonSchema = {
  description: 'The duties of the caller of an allowed action. Only with the effect allow.',
  type: 'array',
  minItems: 1,
  maxItems: MAX_OBLIGATIONS,
  items: {
    anyOf: [
      obligationSchema('redact', 'Hides what stands at the paths.'),
      obligationSchema('set', 'Puts a value at the path.'),
      obligationSchema('cap', 'Lowers a number at the path.'),
      obligationSchema('notify', 'Shows a message to the operator.'),
    ],
  },
};

const RULE_PROPERTIES = {
  id: nameSchema('Unique in the document. Answers and audit entries name it.'),
  actions: globsSchema('Patterns over the action: * is any run of characters, ? exactly one. Omitted: every action.', [
    ...COMMON_ACTIONS,
    '*',
  ]),
  resources: globsSchema('Patterns over the resource. Omitted: every resource.', []),
  when: textSchema(
    'A CEL expression over agent, action, resource, attributes, caller and estimated_cost_usd. An error in it denies.',
    MAX_CONDITION_LENGTH,
  ),
  effect: effectSchema('A matching deny in any scope wins over every require_approval, and that over every allow.'),
  reason: textSchema('What the author of the agent reads, and what the audit log keeps.', MAX_REASON_LENGTH),
  remedy: textSchema(
    'What the agent may do instead; it comes with the deny. Only with the effect deny.',
    MAX_REMEDY_LENGTH,
  ),
  approval: APPROVAL,
  obligations: OBLIGATIONS,
} as const satisfies Record<keyof Rule, JsonSchema>;

const RULE: JsonSchema = {
  type: 'object',
  properties: RULE_PROPERTIES,
  required: ['id', 'effect'],
  allOf: [
    {
      if: { required: ['remedy'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { effect: { enum: ['deny'] } } },
    },
    {
      if: { required: ['approval'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { effect: { enum: ['require_approval'] } } },
    },
    {
      if: { required: ['obligations'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { effect: { enum: ['allow'] } } },
    },
  ],
  additionalProperties: false,
};

const WHOSE = { global: 'all orgs together', org: 'each org', team: 'each team', agent: 'each agent' } as const;
const WHEN = { monthly: 'per month', daily: 'per day' } as const;

const capSchema = (tier: Tier, period: Period): JsonSchema => ({
  description: `What ${WHOSE[tier]} may spend ${WHEN[period]}, in US dollars. Omitted: no cap.`,
  type: 'number',
  minimum: 0,
  maximum: MAX_LIMIT_USD,
});

const BUDGET: JsonSchema = {
  description:
    'Caps on spend: of all in one document of global scope, of one scope in place of those in one of its own.',
  type: 'object',
  properties: {
    ...Object.fromEntries(
      TIERS.flatMap((tier) => PERIODS.map((period) => [LIMIT_KEYS[tier][period], capSchema(tier, period)])),
    ),
    timezone: {
      description: 'The IANA time zone at whose midnight days and months end. Omitted: UTC.',
      type: 'string',
      pattern: '^[A-Za-z]',
      examples: ['UTC', 'Europe/Berlin', 'America/New_York'],
    },
    action_on_exceed: { description: 'The only action.', enum: ['deny'] },
  },
  additionalProperties: false,
};

const LIMIT_PROPERTIES = {
  id: nameSchema('Unique among the limits of the document. Answers and audit entries name it.'),
  per: {
    description:
      'Whose use is counted together: each session (trace_id), the first agent with all it started, or each agent, team or org.',
    enum: LIMIT_PERS,
  },
  calls: {
    description: 'How many checks may be allowed.',
    type: 'integer',
    minimum: 1,
    maximum: MAX_LIMIT_COUNT,
  },
  usd: {
    description: 'How much may be spent, in US dollars.',
    type: 'number',
    exclusiveMinimum: 0,
    maximum: MAX_LIMIT_USD,
  },
  tokens: {
    description: 'How many tokens may be used, input and output together.',
    type: 'integer',
    minimum: 1,
    maximum: MAX_LIMIT_COUNT,
  },
  every: durationSchema(
    'The span, 10s to 31d. Only of a session or lineage it may be omitted: for as long as it lives.',
    ['1m', '1h', '1d'],
  ),
  actions: globsSchema('Patterns over the action. Omitted: every action.', [...COMMON_ACTIONS, '*']),
  resources: globsSchema('Patterns over the resource. Omitted: every resource.', []),
  on_exceed: { description: 'Deny, or ask a person whether there may be more. Omitted: deny.', enum: ON_EXCEED },
  step: {
    description: 'By how much an approval raises the maximum. Omitted: by as much as it is. Only with on_exceed: ask.',
    type: 'number',
    exclusiveMinimum: 0,
  },
} as const satisfies Record<(typeof LIMIT_ITEM_KEYS)[number], JsonSchema>;

const LIMIT: JsonSchema = {
  type: 'object',
  properties: LIMIT_PROPERTIES,
  required: ['id', 'per'],
  oneOf: LIMIT_UNITS.map((unit) => ({ required: [unit] })),
  allOf: [
    {
      if: { properties: { per: { enum: ['agent', 'team', 'org'] } } },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { required: ['every'] },
    },
    {
      if: { required: ['step'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
      then: { properties: { on_exceed: { enum: ['ask'] } }, required: ['on_exceed'] },
    },
  ],
  additionalProperties: false,
};

const DOCUMENT_PROPERTIES = {
  name: nameSchema('Unique among all policies.'),
  scope: {
    description: 'Whom the rules govern: global, org:<id>, team:<org>/<team> or agent:<org>/<team>/<agent>.',
    type: 'string',
    pattern: SCOPE,
    examples: ['global', 'org:acme', 'team:acme/search', 'agent:acme/search/crawler'],
  },
  rules: { description: 'The rules, which allow and deny.', type: 'array', maxItems: MAX_RULES, items: RULE },
  budget: BUDGET,
  limits: {
    description: 'How much may happen before the gateway denies or asks.',
    type: 'array',
    maxItems: MAX_LIMITS,
    items: LIMIT,
  },
} as const satisfies Record<Exclude<keyof PolicyDocument, 'source'>, JsonSchema>;

/** The schema of one document of a policy file. */
export const POLICY_SCHEMA: JsonSchema = {
  $schema: DRAFT,
  title: 'Policy of svc-gateway',
  type: 'object',
  properties: DOCUMENT_PROPERTIES,
  required: ['name', 'scope'],
  anyOf: [{ required: ['rules'] }, { required: ['budget'] }, { required: ['limits'] }],
  allOf: (['org', 'team', 'agent'] as const).map((tier) => ({
    if: { properties: { scope: { type: 'string', pattern: `^${tier}:` } } },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { properties: { budget: { propertyNames: { enum: scopedKeys(tier).map(([key]) => key) } } } },
  })),
  additionalProperties: false,
};

const agentSchema = (description: string): JsonSchema => ({ description, type: 'string', pattern: AGENT });

const CASE_PROPERTIES = {
  name: { description: 'Shown in the result. Omitted: the action and the resource.', type: 'string', minLength: 1 },
  agent: agentSchema('Who asks: <org>/<team>/<agent>, or /<team>/<agent> without an org.'),
  action: { description: 'The action that it wants to take.', type: 'string', minLength: 1, examples: COMMON_ACTIONS },
  resource: { description: 'The resource that the action is for; may be empty.', type: 'string' },
  attributes: { description: 'The attributes that it sends.', type: 'object' },
  caller: agentSchema('The agent on whose behalf it asks.'),
  estimated_cost_usd: {
    description: 'The expected cost of the action, in US dollars.',
    type: 'number',
    minimum: 0,
    maximum: MAX_COST_USD,
  },
  expect: effectSchema('The decision that it must get.'),
  rule: { description: 'The id of the rule that must decide. Omitted: any, or none.', type: 'string', minLength: 1 },
  obligations: {
    description: 'The ids of all obligations that must come with the decision. Omitted: any.',
    type: 'array',
    items: { type: 'string', minLength: 1 },
  },
  used: {
    description: 'The use of limits so far, by their ids: calls, US dollars or tokens. Omitted: none.',
    type: 'object',
    additionalProperties: { type: 'number', minimum: 0 },
  },
  cause: { description: 'Why it must be denied. Omitted: for any cause.', enum: CASE_CAUSES },
} as const satisfies Record<CaseKey, JsonSchema>;

const HALT_PROPERTIES = {
  scope: {
    description: 'The agents that it stops. Of a lineage only its first agent is known.',
    type: 'string',
    pattern: HALT_SCOPE,
    examples: ['org:acme', 'lineage:acme/search/crawler'],
  },
  actions: globsSchema('The actions that it stops. Omitted: all.', COMMON_ACTIONS),
  reason: { description: 'Shown in the result.', type: 'string', pattern: '\\S' },
} as const satisfies Record<(typeof ASSUMED_HALT_KEYS)[number], JsonSchema>;

/** A file of cases for `svc policy test`. */
export const POLICY_TEST_SCHEMA: JsonSchema = {
  $schema: DRAFT,
  title: 'Test cases of policies of svc-gateway',
  type: 'object',
  properties: {
    cases: {
      description: 'Checks, with the decision that each must get.',
      type: 'array',
      items: {
        type: 'object',
        properties: CASE_PROPERTIES,
        required: ['agent', 'action', 'resource', 'expect'],
        if: { required: ['cause'] },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
        then: { properties: { expect: { enum: ['deny'] } } },
        additionalProperties: false,
      },
    },
    halts: {
      description: 'Halts that are in force for all cases of this document.',
      type: 'array',
      items: { type: 'object', properties: HALT_PROPERTIES, required: ['scope'], additionalProperties: false },
    },
  },
  required: ['cases'],
  additionalProperties: false,
};

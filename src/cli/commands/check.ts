/** `svc check`: one policy check, as an agent would ask it. */

import { randomBytes } from 'node:crypto';
import { jsonIn } from '../../core/base/mapping.ts';
import { MAX_COST_USD, usdToMicro } from '../../core/base/money.ts';
import { termsView } from '../../core/policy/approval-terms.ts';
import { haltOver } from '../../core/policy/assumed-halts.ts';
import type { Explanation, Overruling, RuleTrace } from '../../core/policy/explain.ts';
import { EXIT, type ExitStatus, usageError } from '../errors.ts';
import type { Invocation, Options, OutputFormat } from '../invocation.ts';
import { Api } from '../remote/api.ts';
import { note, show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { cellText, fieldLines, isRows, type Row } from '../terminal/table.ts';
import { parseAgent, wireAgent } from './listing.ts';
import { assumedHalts, assumedNote, gatewayPolicyPath, needPolicies } from './policy-files.ts';
import { decisionLine, documentLines, tracesIn } from './policy-traces.ts';
import { LEAST_ID } from './short-ids.ts';

// `svc policy explain`: which documents and rules were looked at, and why each did or did not decide.

export async function explain({ options, globals, env }: Invocation): Promise<void> {
  const agent = parseAgent(options.text('agent') ?? '');
  const caller = options.text('caller');
  const given = options.list('policies');
  const { policies } = await needPolicies(globals.output, given.length > 0 ? given : [gatewayPolicyPath(env)]);
  const subject = {
    agent,
    caller: caller === undefined ? undefined : parseAgent(caller),
    action: options.text('action') ?? '',
    resource: options.text('resource') ?? '',
    attributes: attributesIn(options),
    estimatedCostMicroUsd: costIn(options).microUsd,
  };
  if (given.length === 0) note(printable(assumedNote(env)));
  const halted = haltOver(await assumedHalts(globals.output, options.text('halts')), subject);
  const explanation = policies.explain(subject);
  const { kind, reason, remedy } = explanation.decision;
  await show(globals.output, viewOf(explanation, halted), () => [
    halted === undefined ? decisionLine(kind, reason) : decisionLine('deny', halted.reason),
    ...(halted === undefined && remedy !== undefined ? [printable(`Instead: ${remedy}`)] : []),
    ...explanation.documents.flatMap((document) => documentLines(document, halted && OVERRULED_BY.halt)),
  ]);
}

/** As the API explains checks. */
const viewOf = ({ decision, documents }: Explanation, overruledBy: Overruling | undefined) => ({
  decision: {
    decision: decision.kind,
    policy: decision.policy ?? null,
    rule_id: decision.ruleId ?? null,
    reason: decision.reason,
    remedy: decision.remedy ?? null,
    approval: decision.approval === undefined ? null : termsView(decision.approval),
    obligations: decision.obligations ?? [],
  },
  overruled_by: overruledBy ?? null,
  documents,
});

const CHECK_PATH = '/svc.governance.v1.PolicyService/CheckAction';

/** Not allowed is exit status 3, so that a script can tell it from a gateway that did not answer. */
export async function run(invocation: Invocation): Promise<ExitStatus> {
  const { options, globals, env } = invocation;
  const api = await Api.of(invocation);
  const request = requestOf(options, env);
  const answer = answerOf(await api.post(CHECK_PATH, 'decision', request));
  if (options.isSet('explain'))
    await showExplained(api, globals.output, answer, request, options.text('op') === undefined);
  else await show(globals.output, answer, () => [summary(answer), ...afterwards(answer)]);
  return answer.decision === 'allow' ? EXIT.done : EXIT.denied;
}

/** By cause, what denies a check whatever the policies say. */
const OVERRULED_BY: Readonly<Partial<Record<string, string>>> = {
  budget: 'a budget',
  limit: 'a limit',
  halt: 'a halt',
  operation_state: 'the state of the operation',
  credential: 'the credential',
  obligation: 'an obligation that is not supported',
  unrecorded: 'the audit log, which cannot be written',
};

const undecided = (rule: RuleTrace): RuleTrace => ({ ...rule, decided: false });

/**
 * Shows the gateway's decision, which includes budgets and the state of the operation, and then the result of each
 * rule.
 */
async function showExplained(
  api: Api,
  format: OutputFormat,
  answer: Answer,
  { agent, caller, action, resource, attributes, estimatedCostUsd, traceId }: CheckRequest,
  isFresh: boolean,
): Promise<void> {
  const explanation = await api.post('/api/v1/policies/explain', 'documents', {
    agent: wireAgent(agent),
    caller: caller && wireAgent(caller),
    action,
    resource,
    attributes,
    estimated_cost_usd: estimatedCostUsd,
    trace_id: isFresh ? undefined : traceId,
  });
  const overruled = answer.cause === null ? undefined : OVERRULED_BY[answer.cause];
  const documents = tracesIn(explanation).map((document) =>
    overruled === undefined ? document : { ...document, rules: document.rules.map(undecided) },
  );
  await show(format, { ...answer, policies_decide: explanation.decision, documents }, () => [
    ...explained(answer, isFresh, overruled),
    ...tracesIn(explanation).flatMap((document) => documentLines(document, overruled)),
  ]);
}

type CheckRequest = ReturnType<typeof requestOf>;

export function requestOf(options: Options, env: NodeJS.ProcessEnv) {
  const caller = options.text('caller');
  const [traceId, spanId] = halvesOf(options.text('op'));
  return {
    agent: parseAgent(options.text('agent') ?? ''),
    caller: caller === undefined ? undefined : parseAgent(caller),
    credentialToken: env.SVC_CLI_AGENT_TOKEN || undefined,
    traceId,
    spanId,
    opHome: homeIn(options),
    action: options.text('action') ?? '',
    resource: options.text('resource') ?? '',
    attributes: attributesIn(options),
    estimatedCostUsd: costIn(options).usd,
    // To ask why is not to act: an explanation registers no operation and spends nothing.
    dryRun: options.isSet('dryRun') || options.isSet('explain'),
    supportedObligations: options.list('supports'),
  };
}

function homeIn(options: Options): string | undefined {
  const opHome = options.text('opHome');
  if (opHome !== undefined && options.text('op') === undefined)
    throw usageError('--op-home names the gateway of the operation in --op', 'Give --op, too.');
  return opHome;
}

function halvesOf(opId: string | undefined): readonly [string, string] {
  if (opId === undefined) return [randomBytes(16).toString('hex'), randomBytes(8).toString('hex')];
  const [traceId, spanId, ...rest] = opId.split(':');
  if (traceId === undefined || spanId === undefined || rest.length > 0)
    throw usageError('--op must be <trace_id>:<span_id>');
  return [traceId, spanId];
}

/** `--attr size=3` is a number and `--attr name=x` a text: JSON where it is JSON, else the text itself. */
function attributesIn(options: Options): Row {
  return Object.fromEntries(
    options.list('attr').map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1)
        throw usageError(
          '--attr must be <name>=<value>',
          'For example: --attr size_bytes=120 --attr \'tags=["a","b"]\'.',
        );
      const value = jsonOrText(pair.slice(at + 1));
      // It was read from more digits than a number can have, and JSON has no infinity: it would arrive as null.
      if (holdsInfinity(value))
        throw usageError(
          'a number in --attr is too large',
          'To send it as a string, put it in quotes: --attr \'size="1e400"\'.',
        );
      return [pair.slice(0, at), value];
    }),
  );
}

function jsonOrText(text: string): unknown {
  const value = jsonIn(text);
  return value === undefined ? text : value;
}

const holdsInfinity = (value: unknown): boolean =>
  value === Infinity ||
  value === -Infinity ||
  (typeof value === 'object' && value !== null && Object.values(value).some(holdsInfinity));

/** The cost that is asked for, and what the gateway counts for it. */
function costIn(options: Options): { readonly usd: number; readonly microUsd: number } {
  const text = options.text('cost');
  const usd = Number(text ?? 0);
  const microUsd = text?.trim() === '' ? undefined : usdToMicro(usd);
  if (microUsd === undefined)
    throw usageError(`--cost must be an amount in US dollars from 0 to ${MAX_COST_USD}, such as 0.25`);
  return { usd, microUsd };
}

/** The names of the HTTP API, which are those of the audit log too; what the gateway left out is null. */
const answerOf = (answer: Row) => ({
  ...decidedIn(answer),
  approval_id: textOrNull(answer.approvalId),
  obligations: isRows(answer.obligations) ? answer.obligations : [],
});

/** Anything but an allow, or a request to people, is a deny. */
const DECISION_OF: Readonly<Record<string, 'allow' | 'pending'>> = {
  DECISION_ALLOW: 'allow',
  DECISION_PENDING: 'pending',
};

const decidedIn = ({
  decision,
  reason,
  cause,
  policy,
  ruleId,
  opId,
  opHome,
  opState,
  auditId,
  resetsAt,
  remedy,
}: Row) => ({
  decision: DECISION_OF[String(decision)] ?? ('deny' as const),
  reason: textOrNull(reason),
  cause:
    textOrNull(cause)
      ?.replace(/^DECISION_CAUSE_/, '')
      .toLowerCase() ?? null,
  resets_at: textOrNull(resetsAt),
  remedy: textOrNull(remedy),
  policy: textOrNull(policy),
  rule_id: textOrNull(ruleId),
  op_id: textOrNull(opId),
  ...(textOrNull(opHome) !== null && { op_home: textOrNull(opHome) }),
  op_state: typeof opState === 'string' ? opState.replace(/^OP_STATE_/, '').toLowerCase() : null,
  audit_id: auditId === undefined ? null : Number(auditId),
});

type Answer = ReturnType<typeof answerOf>;

const textOrNull = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** Shows the steps before the agent may act, or its obligations when it does. */
const afterwards = ({ approval_id: id, decision, obligations, remedy }: Answer): readonly string[] => [
  ...(remedy === null ? [] : [printable(`Instead: ${remedy}`)]),
  ...(decision === 'pending' && id !== null
    ? [printable(`Approval ${id} waits for people: svc approvals show ${id.slice(0, LEAST_ID)}`)]
    : []),
  ...obligations.map(({ id: obligation, type, properties }) =>
    printable(`must ${String(type)} ${JSON.stringify(properties)} (obligation ${String(obligation)})`),
  ),
];

const summary = ({ decision, reason, op_id: opId }: Answer): string =>
  decisionLine(decision, `${reason ?? 'no reason given'}${opId === null ? '' : `  (${opId})`}`);

/** A fresh operation has no state; another one may have, even if the gateway tells none. */
const explained = (answer: Answer, isFresh: boolean, overruled: string | undefined): readonly string[] => [
  decisionLine(answer.decision, answer.reason ?? 'no reason given'),
  ...fieldLines([
    ['policy', answer.policy ?? (overruled === undefined ? 'none decided' : `none decided, but ${overruled}`)],
    ['rule', answer.rule_id ?? 'none'],
    ...(answer.cause === null ? [] : [['cause', answer.cause] as const]),
    ...(answer.resets_at === null ? [] : [['budget resets', answer.resets_at] as const]),
    ['operation', `${cellText(answer.op_id)}, ${answer.op_state ?? (isFresh ? 'not registered' : 'state unknown')}`],
    ['audit entry', answer.audit_id],
  ]),
  ...afterwards(answer),
];

/** The logic that adapters of agent frameworks share: a tool call is checked, run and reported, and fails closed. */
import { attributesOf, restored } from './arguments.ts';
import type { AgentClient } from './client.ts';
import { ActionDeniedError, ApprovalPendingError, OpTerminatedError } from './errors.ts';
import { OBLIGATION_TYPES } from './obligations.ts';
import type { Action, CheckAnswer } from './types.ts';

/** A call of a tool, under ids that stay the same when the framework replays it. */
export type ToolCall = {
  readonly name: string;
  readonly args: unknown;
  /** The id of the session, thread or run. */
  readonly session: string;
  readonly callId: string;
  /** Default `tool.call`. */
  readonly action?: string | undefined;
};

/** `native`: as the framework has people asked; `wait`: the call waits for them. */
export type Approvals = 'native' | 'wait';

/** `refused`: the tool has not run, or its result must not be used; `text` is for the model. */
export type Called<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'refused'; readonly text: string }
  | { readonly kind: 'pending'; readonly text: string; readonly approvalId: string };

/** A text that the gateway does not take as a part of an id is replaced by its hash. */
async function idOf(text: string): Promise<string> {
  if (/^[A-Za-z0-9._/=+@-]{1,128}$/.test(text)) return text;
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return Array.from(hash.subarray(0, 16), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

export const actionOf = async ({ name, args, session, callId, action = 'tool.call' }: ToolCall): Promise<Action> => ({
  action,
  resource: name,
  attributes: attributesOf(args),
  traceId: await idOf(session),
  spanId: await idOf(callId),
  supportedObligations: OBLIGATION_TYPES,
});

type Denied = Pick<CheckAnswer, 'reason' | 'cause' | 'resetsAt' | 'approvalId'> & {
  readonly remedy?: string | undefined;
};

/** Explains a denial to the model: the reason, an alternative, and that another form of the action will not do. */
export function denialText(name: string, { reason, cause, resetsAt, remedy, approvalId }: Denied): string {
  return [
    `${name} was denied by policy: ${reason}.`,
    ...(cause === undefined ? [] : [`Cause: ${cause}.`]),
    ...(resetsAt === undefined ? [] : [`It may be tried again after ${resetsAt.toISOString()}.`]),
    ...(remedy === undefined ? [] : [`Instead: ${remedy}.`]),
    ...(approvalId === undefined ? [] : [`Approval: ${approvalId}.`]),
    'It was not carried out. Do not try the same in another form.',
  ].join(' ');
}

export const pendingText = (name: string, { reason, approvalId = '' }: Pick<CheckAnswer, 'reason' | 'approvalId'>) =>
  `${name} waits for people (${reason}); approval ${approvalId}.`;

export const uncheckedText = (name: string, error: unknown): string =>
  `${name} was not carried out: it could not be checked (${error instanceof Error ? error.message : String(error)}).`;

/** Whether a result is one of these texts, in place of the tool's own. */
export const isRefusal = (name: string, result: unknown): boolean =>
  (typeof result === 'string' &&
    [`${name} was denied by policy: `, `${name} was not carried out: `].some((begin) => result.startsWith(begin))) ||
  (typeof result === 'string' && result.endsWith(`The result of ${name} is withheld. Stop this work.`));

/** The tool, once it may run, with its arguments as obligations change them. Rejects only with what the tool throws. */
export async function callTool<T>(
  agent: AgentClient,
  call: ToolCall,
  tool: (args: never) => T | Promise<T>,
  approvals: 'wait' | 'throw',
): Promise<Called<T>> {
  const failed: { error?: unknown } = {};
  try {
    const action = await actionOf(call);
    const value = await agent.run(
      action,
      async (op) => {
        const args = restored(call.args, action.attributes ?? {}, op.attributes ?? {});
        try {
          return await tool(args as never);
        } catch (error) {
          failed.error = error;
          throw error;
        }
      },
      { approvals },
    );
    return { kind: 'done', value };
  } catch (error) {
    if ('error' in failed && error === failed.error) throw error;
    if (error instanceof ApprovalPendingError)
      return { kind: 'pending', text: pendingText(call.name, error), approvalId: error.approvalId ?? '' };
    if (error instanceof ActionDeniedError) return { kind: 'refused', text: denialText(call.name, error) };
    if (error instanceof OpTerminatedError)
      return { kind: 'refused', text: `${error.message}. The result of ${call.name} is withheld. Stop this work.` };
    return { kind: 'refused', text: uncheckedText(call.name, error) };
  }
}

/**
 * Only asks, before the framework decides whether to call the tool; then `callTool` asks again under the same ids.
 * Refusals are kept for it: a denied operation is over, and asked again the gateway would say only that.
 */
export class Questions {
  readonly #agent: AgentClient;
  readonly #refusals = new Map<string, string>();

  constructor(agent: AgentClient) {
    this.#agent = agent;
  }

  /** Undefined: it may run, as far as is known now. */
  async ask(call: ToolCall): Promise<Exclude<Called<never>, { readonly kind: 'done' }> | undefined> {
    let text: string;
    try {
      const answer = await this.#agent.check(await actionOf(call));
      if (answer.decision === 'allow') return undefined;
      if (answer.decision === 'pending' && answer.approvalId !== undefined)
        return { kind: 'pending', text: pendingText(call.name, answer), approvalId: answer.approvalId };
      text = denialText(call.name, answer);
    } catch (error) {
      text = uncheckedText(call.name, error);
    }
    if (this.#refusals.size >= MAX_REFUSALS) this.#refusals.clear();
    this.#refusals.set(call.callId, text);
    return { kind: 'refused', text };
  }

  /** The refusal of this call, once. */
  refusalOf(callId: string): string | undefined {
    const text = this.#refusals.get(callId);
    this.#refusals.delete(callId);
    return text;
  }
}

/** Beyond that they are asked again, and get another reason. */
const MAX_REFUSALS = 1_000;

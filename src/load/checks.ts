/** The checks of a load: each number is an operation of its own, of all agents in turn. */
import { type AgentId, type CheckActionRequest, emptyCheck } from '../doors/proto/messages.ts';

export type Checks = {
  /** A check over Connect. */
  bodyOf(nth: number): string;
  /** The same for gRPC. */
  checkOf(nth: number): CheckActionRequest;
  /** The Connect request that completes an operation. */
  completionOf(nth: number): string;
};

export type Checked = {
  readonly agents: readonly { readonly agent: AgentId; readonly credentialToken: string }[];
  /** Half of each trace id, and the span id: so the operations of one run differ from those of others. */
  readonly run: string;
  readonly action: string;
  readonly resource: string;
};

/** Digits of the number in a trace id. */
const DIGITS = 16;

export function checksOf({ agents, run, action, resource }: Checked): Checks {
  const traceOf = (nth: number): string => run + String(nth).padStart(DIGITS, '0');
  const askerOf = (nth: number): Checked['agents'][number] => agents[nth % agents.length]!;
  // Made once for each agent, but for the number: the client has more to do than to write JSON.
  const heads = agents.map(
    (asker) => `${JSON.stringify({ ...asker, spanId: run, action, resource }).slice(0, -1)},"traceId":"`,
  );
  return {
    bodyOf: (nth) => `${heads[nth % agents.length]}${traceOf(nth)}"}`,
    checkOf: (nth) => {
      const check = emptyCheck();
      check.agent = askerOf(nth).agent;
      check.credentialToken = askerOf(nth).credentialToken;
      check.traceId = traceOf(nth);
      check.spanId = run;
      check.action = action;
      check.resource = resource;
      return check;
    },
    completionOf: (nth) => JSON.stringify({ ...askerOf(nth), opId: `${traceOf(nth)}:${run}` }),
  };
}

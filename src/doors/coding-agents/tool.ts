/** Types that the hooks of all coding agents share: an event in, and an answer in the agent's own words out. */
import type { Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';

export type Fields = Readonly<Record<string, unknown>>;
export type Read<T> = Result<T, Fault>;

/** Something a tool call does, checked on its own. */
export type Subject = {
  readonly action: string;
  readonly resource: string;
  /** The arguments of the call, with digests in place of the contents of files. */
  readonly attributes: Fields;
};

/** A call of a tool. Each of its subjects is one operation. */
export type ToolCall = {
  readonly traceId: string;
  readonly spanId: string;
  /**
   * The agent gives its calls no id, so equal calls of a session have the same span. Later ones get a number: an
   * operation that has ended takes no further checks.
   */
  readonly isNumbered: boolean;
  readonly subjects: readonly Subject[];
  /** The arguments as the agent sent them. */
  readonly input: Fields;
};

/** An event around the call of a tool. */
export type ToolEvent =
  | {
      readonly kind: 'before';
      readonly name: string;
      readonly call: ToolCall;
      /** Whether the answer may change the arguments. */
      readonly isEditable: boolean;
      /** Nothing comes after it: the operation completes at once. */
      readonly isOnly: boolean;
    }
  /** The error is not passed on: such texts repeat the tool's output. */
  | { readonly kind: 'after'; readonly name: string; readonly call: ToolCall; readonly hasFailed: boolean };

/** `notice`: nothing is decided, and nothing changes, whatever the gateway answers. */
export type HookEvent = ToolEvent | { readonly kind: 'notice'; readonly name: string };

export type Answer =
  /** `input`: the arguments, if they were changed. */
  | { readonly kind: 'allow'; readonly input: Fields | undefined }
  | { readonly kind: 'deny'; readonly reason: string }
  /** An operator has ended the operation: the agent is to stop, too. */
  | { readonly kind: 'stop'; readonly reason: string };

export type HookTool = {
  /** As in the path of its route. */
  readonly name: string;
  /** How long it waits for an answer unless its settings say otherwise. */
  readonly timeoutSecs: number;
  read(body: Fields): Read<HookEvent>;
  /** Exactly the fields that the agent knows: some run the tool when there is any other. */
  answer(event: ToolEvent, answer: Answer): Fields;
};

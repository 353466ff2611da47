/** The audit entry of a check (docs/spec.md, Audit). */
import { addAsked } from '../audit/asked.ts';
import { redactShort, redactText } from '../audit/redact-text.ts';
import { RedactedTexts } from '../audit/redacted-texts.ts';
import type { CheckCommand } from '../commands.ts';
import { noPolicyAllows } from '../policy/rule.ts';
import type { DecisionCause } from './cause.ts';

/** In characters. */
const MAX_STRANGER_TEXT = 128;
const MAX_SHOWN_TEXT = 256;

/** Little of it, and nothing of unbounded size: anybody can send it, and it takes room from what others have done. */
export const payloadOfStranger = ({ action, resource, dryRun }: CheckCommand): Record<string, unknown> => ({
  action: redactShort(action, MAX_STRANGER_TEXT),
  resource: redactShort(resource, MAX_STRANGER_TEXT),
  ...(dryRun && { dry_run: true }),
  identity: 'unverified',
});

export class CheckEntries {
  readonly #redact: (attributes: Readonly<Record<string, unknown>>) => unknown;
  readonly #actions = new RedactedTexts();
  readonly #resources = new RedactedTexts();

  constructor(redact: (attributes: Readonly<Record<string, unknown>>) => unknown) {
    this.#redact = redact;
  }

  /** As operators see it: redacted, and cut. */
  shownAction(action: string): string {
    return this.#actions.cut(action, MAX_SHOWN_TEXT);
  }

  /** The same. */
  shownResource(resource: string): string {
    return this.#resources.cut(resource, MAX_SHOWN_TEXT);
  }

  payloadOf(command: CheckCommand): Record<string, unknown> {
    const { action, resource, dryRun } = command;
    const payload: Record<string, unknown> = {
      action: this.#actions.of(action),
      resource: this.#resources.of(resource),
    };
    addAsked(payload, command, this.#redact);
    if (dryRun) payload.dry_run = true;
    return payload;
  }

  /** If no rule decided, the reason repeats the action and the resource, cut. */
  reasonOf({ agent, action, resource }: CheckCommand, reason: string, cause: DecisionCause | undefined): string {
    if (cause !== 'no_rule') return redactText(reason);
    return noPolicyAllows({ agent, action: this.#actions.of(action), resource: this.#resources.of(resource) }).reason;
  }
}

import { unauthenticated } from '../../core/fault.ts';
import type { IoToMain, Reply } from '../protocol.ts';

/** Whether a gateway of a cluster has caught up with the others, and whom to call once it has, in that order. */
export type Serving = { readonly isServing: boolean; whenServing(call: () => void): void };

const REVOKED = unauthenticated('this credential has been revoked');
/** Longer than a request takes from one question of its thread to the next. */
const IN_FLIGHT_MS = 2_000;

type Pass = (messages: readonly IoToMain[], refusals: readonly Reply[]) => void;

/**
 * Holds back what comes while this gateway catches up with the others, as after it was stopped for longer than its
 * lease. Requests whose credential was verified before could not know that it was revoked meanwhile; so what such a
 * credential asks is refused until they are answered.
 */
export class ServingGate {
  readonly #serving: Serving;
  readonly #revoked = new Set<string>();
  #forgetting: NodeJS.Timeout | undefined;

  constructor(serving: Serving) {
    this.#serving = serving;
  }

  /** Whether everything may pass as it comes. */
  get isOpen(): boolean {
    return this.#serving.isServing && this.#revoked.size === 0;
  }

  /** Call it for every credential that is revoked, by its subject. */
  noteRevoked(subject: string): void {
    if (this.#serving.isServing) return;
    this.#revoked.add(subject);
    clearTimeout(this.#forgetting);
    this.#forgetting = setTimeout(() => this.#revoked.clear(), IN_FLIGHT_MS).unref();
  }

  /** Calls back with what may pass and the refusals of the rest: at once, or when this gateway has caught up. */
  pass(messages: readonly IoToMain[], call: Pass): void {
    // That a thread has caught up is what may be waited for.
    const now = messages.filter((message) => this.#serving.isServing || message.type === 'confirmed');
    if (now.length > 0) this.#passNow(now, call);
    if (now.length === messages.length) return;
    const later = messages.filter((message) => !now.includes(message));
    this.#serving.whenServing(() => this.#passNow(later, call));
  }

  #passNow(messages: readonly IoToMain[], call: Pass): void {
    const revoked = messages.filter((message) => this.#isRevoked(message));
    call(
      messages.filter((message) => !revoked.includes(message)),
      revoked.flatMap(refusalOf),
    );
  }

  #isRevoked(message: IoToMain): boolean {
    if (this.#revoked.size === 0) return false;
    const asked = message.type === 'command' ? message.command : message.type === 'call' ? message.input : undefined;
    const { principal } = Object(asked) as { readonly principal?: { readonly subject: string } };
    return principal !== undefined && this.#revoked.has(principal.subject);
  }
}

function refusalOf(message: IoToMain): readonly Reply[] {
  if (message.type === 'command') return [{ type: 'command-reply', id: message.id, reply: REVOKED, auditIndex: -1 }];
  return message.type === 'call' ? [{ type: 'call-reply', id: message.id, reply: REVOKED }] : [];
}

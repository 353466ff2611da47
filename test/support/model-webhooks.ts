import { ok, type Result } from '../../src/core/base/result.ts';
import type { Fault } from '../../src/core/fault.ts';
import { GIVE_UP_AFTER_MS, type Webhook } from '../../src/core/webhooks/webhook.ts';
import type { SharedMessage, SharedWebhooks } from '../../src/ports/webhook-store.ts';

type Hook = Webhook & { retryAtMs?: number | undefined; caller?: string | undefined; callUntilMs?: number | undefined };
type Message = SharedMessage & { heldBy: string | undefined };

const AWAY = { ok: false, fault: { kind: 'store_unreachable', retryAfterSecs: 1 } } as const;

/** The webhooks of a cluster as the functions of the database keep them, on a clock that the test moves. */
export class ModelWebhooks {
  readonly #nowMs: () => number;
  hooks: Hook[] = [];
  messages: Message[] = [];
  readonly reported = new Set<string>();
  /** Runs that cannot reach it. */
  readonly cutOff = new Set<string>();
  /** Runs that get no answer from it. */
  readonly hanging = new Set<string>();
  /** Runs whose lease ended long ago, or that were replaced: what they hold is free. */
  readonly gone = new Set<string>();
  /** Called when a run has taken hooks, before it gets them. */
  onTaken: (run: string) => Promise<void> = async () => undefined;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  storeOf(run: string): SharedWebhooks {
    const asked = async <T>(work: () => T | Promise<T>): Promise<Result<T, Fault>> => {
      await (this.hanging.has(run) ? new Promise(() => undefined) : undefined);
      return this.cutOff.has(run) ? AWAY : ok(await work());
    };
    /** Refuses writes of a run that was replaced. */
    const written = <T>(work: () => T | Promise<T>) => (this.gone.has(run) ? Promise.resolve(AWAY) : asked<T>(work));
    const waitingOf = (hookId: string): Message[] => this.messages.filter((each) => each.hookId === hookId);
    return {
      known: () => asked(() => ({ hooks: structuredClone(this.hooks), waiting: this.messages.length })),
      list: () =>
        asked(() =>
          this.hooks.toReversed().map(({ secret, retryAtMs, caller, callUntilMs, ...hook }) => ({
            hook,
            waiting: waitingOf(hook.id).length,
          })),
        ),
      adopt: (hooks) =>
        written(() => {
          const fresh = hooks.filter(({ id }) => !this.hooks.some((hook) => hook.id === id));
          this.hooks.push(...structuredClone(fresh));
          return fresh.length;
        }),
      create: (hook, { inAll, ofOrg }) =>
        written(() => {
          const inOrg = this.hooks.filter(({ orgId }) => orgId === hook.orgId).length;
          if (this.hooks.length >= inAll || (hook.orgId !== null && inOrg >= ofOrg)) return false;
          this.hooks.push(structuredClone(hook));
          return true;
        }),
      give: (id, to) =>
        written(() => {
          const hook = this.hooks.find((each) => each.id === id);
          if (hook !== undefined) Object.assign(hook, { createdBy: to });
          return hook !== undefined;
        }),
      remove: (id) =>
        written(() => {
          this.hooks = this.hooks.filter((hook) => hook.id !== id);
          this.messages = this.messages.filter(({ hookId }) => hookId !== id);
        }),
      write: ({ added, letGo, withdrawn, dropped }, { number }) =>
        written(() => {
          const free = added.filter(({ isHeld }) => !isHeld).map(({ id }) => id);
          for (const message of this.messages)
            if ((message.heldBy === run && letGo.includes(message.id)) || free.includes(message.id))
              message.heldBy = undefined;
          const isWithdrawn = ({ heldBy, id }: Message): boolean => heldBy === run && withdrawn.includes(id);
          for (const { id } of this.messages.filter(isWithdrawn)) this.reported.delete(id);
          this.messages = this.messages.filter((message) => !isWithdrawn(message));
          let lost = 0;
          for (const { isHeld, ...message } of added) {
            const hook = this.hooks.find(({ id, disabledAtMs }) => id === message.hookId && disabledAtMs === undefined);
            if (hook === undefined || this.messages.some(({ id }) => id === message.id)) continue;
            if (message.isOnce && this.reported.has(message.id)) continue;
            if (message.isOnce) this.reported.add(message.id);
            if (waitingOf(hook.id).length < number)
              this.messages.push({ ...message, heldBy: isHeld ? run : undefined });
            else lost += 1;
          }
          this.hooks = this.hooks.map((hook) => ({ ...hook, dropped: hook.dropped + (dropped.get(hook.id) ?? 0) }));
          return lost;
        }),
      take: (forMs, most) =>
        written(async () => {
          const nowMs = this.#nowMs();
          const taken = this.hooks
            .filter(
              ({ disabledAtMs, retryAtMs = 0, callUntilMs = 0 }) =>
                !disabledAtMs && Math.max(retryAtMs, callUntilMs) <= nowMs,
            )
            .flatMap((hook) => {
              const [first] = waitingOf(hook.id);
              if (first === undefined || (first.heldBy !== undefined && !this.gone.has(first.heldBy))) return [];
              return [{ hook, first }];
            })
            .slice(0, most);
          for (const { hook } of taken) Object.assign(hook, { caller: run, callUntilMs: nowMs + forMs });
          if (taken.length > 0) await this.onTaken(run);
          return taken.map(({ hook: { id: hookId, url, secret, failures }, first: { id, body } }) => ({
            ...{ hookId, url, secret, failures },
            ...{ id, body },
          }));
        }),
      note: ({ hookId, id, failure }) =>
        written(() => {
          if (failure === undefined) this.messages = this.messages.filter((message) => message.id !== id);
          const hook = this.hooks.find((each) => each.id === hookId);
          if (hook?.caller !== run) return undefined;
          const nowMs = this.#nowMs();
          const released = { caller: undefined, callUntilMs: undefined, retryAtMs: undefined };
          if (failure === undefined) {
            Object.assign(hook, { ...released, failures: 0, failingSinceMs: undefined, lastError: undefined });
            return undefined;
          }
          const { failures, failingSinceMs = nowMs } = hook;
          const isOver = nowMs - failingSinceMs >= GIVE_UP_AFTER_MS;
          const lost = isOver ? waitingOf(hookId).length : 0;
          const failed = { failures: failures + 1, failingSinceMs, disabledAtMs: isOver ? nowMs : undefined };
          if (isOver) this.messages = this.messages.filter((message) => message.hookId !== hookId);
          const changed = { ...released, ...failed, lastError: failure.reason, dropped: hook.dropped + lost };
          Object.assign(hook, { ...changed, retryAtMs: nowMs + failure.retryMs });
          return { ...failed, lost };
        }),
    };
  }
}

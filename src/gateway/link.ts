/** What the protocols, in I/O threads, may ask of the main thread. */
import type { CommandOf, CommandType, Replies } from '../core/commands.ts';
import type { InputOf, ReplyOf, UseCaseName } from './use-cases.ts';

/** A reply, and the id of its audit entry; undefined when there was nothing to record, or it could not be recorded. */
export type Recorded<R> = { readonly reply: R; readonly auditId: number | undefined };

export type Link = {
  /** `type` stands here once more because it is what the compiler infers the rest from. */
  ask<T extends CommandType>(command: CommandOf<T> & { readonly type: T }): Promise<Recorded<Replies[T]>>;
  call<N extends UseCaseName>(name: N, input: InputOf<N>): Promise<ReplyOf<N>>;
};

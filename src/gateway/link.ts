/** What the doors of the wire may ask of the main thread. Threads carry it there. */
import type { CommandOf, CommandType, Replies } from '../core/commands.ts';
import type { InputOf, ReplyOf, UseCaseName } from './use-cases.ts';

/** A reply and where the audit log holds what it says; undefined when nothing was to be recorded, or could not be. */
export type Recorded<R> = { readonly reply: R; readonly auditId: number | undefined };

export type Link = {
  ask<T extends CommandType>(command: CommandOf<T>): Promise<Recorded<Replies[T]>>;
  call<N extends UseCaseName>(name: N, input: InputOf<N>): Promise<ReplyOf<N>>;
};

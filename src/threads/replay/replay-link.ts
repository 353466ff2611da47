import type { AuditFilter } from '../../core/audit/audit.ts';
import type { ReplayEngine } from '../../use-cases/policy-replay.ts';
import { ThreadLink } from '../thread-link.ts';
import type { ReplayAnswer, ReplayNews, ReplayQuestion, ReplayTask, ReplayTasks } from './replay-thread.ts';

/** The main thread's link to the thread of one replay, which is asked one thing at a time. */
export class ReplayLink implements ReplayEngine {
  readonly #thread: ThreadLink<ReplayQuestion, ReplayAnswer, ReplayNews>;
  #onRead: (entries: number) => void = () => undefined;

  constructor(auditFolder: string) {
    this.#thread = new ThreadLink(
      { entry: 'policy-replay', workerData: { replayed: { auditFolder } } },
      { onNews: ({ read }) => this.#onRead(read) },
    );
  }

  open = (texts: ReplayTasks['open']['asked']) => this.#ask('open', texts);
  extent = (filter: AuditFilter) => this.#ask('extent', filter);
  add = (lines: string) => this.#ask('add', lines);
  result = () => this.#ask('result', undefined);

  read(filter: AuditFilter, onRead: (entries: number) => void): Promise<void> {
    this.#onRead = onRead;
    return this.#ask('read', filter);
  }

  end(): Promise<void> {
    return this.#thread.close();
  }

  #ask<T extends ReplayTask>(task: T, asked: ReplayTasks[T]['asked']): Promise<ReplayTasks[T]['answer']> {
    return this.#thread.ask({ task, asked } as ReplayQuestion) as Promise<ReplayTasks[T]['answer']>;
  }
}

import { setTimeout as sleep } from 'node:timers/promises';
import type { MessagePort } from 'node:worker_threads';
import { AuditReader } from '../../audit-log/reader.ts';
import type { AuditEntry, AuditFilter } from '../../core/audit/audit.ts';
import { assert, fail, ok, type Result } from '../../core/base/result.ts';
import { Replay, type ReplayResult } from '../../core/policy/replay.ts';
import { loadPolicyTexts, renderPolicyProblem } from '../../policy-files/policy-file.ts';
import type { PolicyText } from '../../ports/cluster.ts';
import { lowerOwnPriority } from '../../system/thread-priority.ts';
import { answerQuestions } from '../thread-link.ts';

export type ReplayThreadOptions = { readonly replayed: { readonly auditFolder: string } };

/** Tasks of the thread, done one after the other, and their answers. */
export type ReplayTasks = {
  /** Compiles the policies; its fault is a sentence for each mistake. */
  readonly open: { readonly asked: readonly PolicyText[]; readonly answer: Result<void, readonly string[]> };
  /** About how many entries of the log here are looked at. */
  readonly extent: { readonly asked: AuditFilter; readonly answer: number };
  /** Decides what the log here has. On the way it says how many entries it has looked at. */
  readonly read: { readonly asked: AuditFilter; readonly answer: void };
  /** Decides entries of another gateway, one a line. */
  readonly add: { readonly asked: string; readonly answer: void };
  readonly result: { readonly asked: undefined; readonly answer: ReplayResult };
};
export type ReplayTask = keyof ReplayTasks;

export type ReplayQuestion = {
  [Task in ReplayTask]: { readonly task: Task; readonly asked: ReplayTasks[Task]['asked'] };
}[ReplayTask];
export type ReplayAnswer = ReplayTasks[ReplayTask]['answer'];
/** Entries that were looked at since the last time. */
export type ReplayNews = { readonly read: number };

const NICE_STEPS = 10;
/** How long it works in one go, and how much longer it rests then: a million entries take seconds. */
const WORK_MS = 5;
const RESTS_PER_WORK = 2;
/** Few enough messages for the main thread, often enough for who waits. */
const REPORT_EVERY_MS = 200;

/**
 * The thread that decides recorded checks again. It has less of the processor than what answers checks, reads the log
 * here by itself, and ends with its replay.
 */
export function runReplayThread(main: MessagePort, { replayed: { auditFolder } }: ReplayThreadOptions): void {
  lowerOwnPriority(NICE_STEPS);
  const worker = new ReplayWorker(new AuditReader(auditFolder), (read) =>
    main.postMessage({ read } satisfies ReplayNews),
  );
  answerQuestions(main, (question: ReplayQuestion) => worker.answer(question));
}

class ReplayWorker {
  readonly #reader: AuditReader;
  readonly #report: (read: number) => void;
  #replay: Replay | undefined;

  constructor(reader: AuditReader, report: (read: number) => void) {
    this.#reader = reader;
    this.#report = report;
  }

  async answer(question: ReplayQuestion): Promise<ReplayAnswer> {
    if (question.task === 'open') return this.#open(question.asked);
    assert(this.#replay !== undefined, 'a replay is opened first');
    switch (question.task) {
      case 'extent':
        return this.#reader.extent(question.asked);
      case 'read':
        return this.#read(this.#replay, question.asked);
      case 'add':
        for (const line of question.asked.split('\n'))
          if (line !== '') this.#replay.add(JSON.parse(line) as AuditEntry);
        return;
      case 'result':
        return this.#replay.result();
    }
  }

  #open(texts: readonly PolicyText[]): Result<void, readonly string[]> {
    const loaded = loadPolicyTexts(texts);
    if (!loaded.ok) return fail(loaded.fault.map(renderPolicyProblem));
    this.#replay = new Replay(loaded.value.policies);
    return ok(undefined);
  }

  async #read(replay: Replay, filter: AuditFilter): Promise<void> {
    let unreported = 0;
    let reportedMs = performance.now();
    let restedMs = reportedMs;
    for await (const { matches, read } of this.#reader.entries(filter)) {
      for (const entry of matches) replay.add(entry);
      unreported += read;
      const nowMs = performance.now();
      if (nowMs - reportedMs >= REPORT_EVERY_MS) {
        this.#report(unreported);
        unreported = 0;
        reportedMs = nowMs;
      }
      if (nowMs - restedMs < WORK_MS) continue;
      // If others need the processor, the same work has taken longer, and so does the rest.
      await sleep(RESTS_PER_WORK * (nowMs - restedMs));
      restedMs = performance.now();
    }
    this.#report(unreported);
  }
}

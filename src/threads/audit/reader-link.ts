import { fail, type Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import { FairQueue } from '../../fairness/fair-queue.ts';
import { within } from '../../system/clock.ts';
import type { AuditReads, LogRequest, LogText } from '../../use-cases/logs.ts';
import { ThreadLink } from '../thread-link.ts';
import type { AuditReaderOptions, ReadQuestion } from './reader-thread.ts';

/**
 * Searches at once, including those that wait for their turn; half of them for one org. Beyond that, only exports that
 * have begun go on.
 */
const MAX_READS = 64;

/** A page is cut short long before this. Only a disk that does not answer takes this long. */
const READ_DEADLINE_MS = 15_000;

/** The main thread's link to the thread that reads the audit log. */
export class AuditReaderLink implements AuditReads {
  readonly #thread: ThreadLink<ReadQuestion, Result<LogText, Fault>>;
  readonly #deadlineMs: number;
  readonly #queue = new FairQueue({ atOnce: 2, places: MAX_READS });
  #isClosed = false;

  constructor(workerData: AuditReaderOptions, onDefect: (message: string) => void, deadlineMs = READ_DEADLINE_MS) {
    this.#thread = new ThreadLink({ entry: 'audit-reader', workerData }, { onDefect });
    this.#deadlineMs = deadlineMs;
  }

  async read(request: LogRequest, orgId: string | null): Promise<Result<LogText, Fault>> {
    const untilMs = performance.now() + this.#deadlineMs;
    const search = (): Promise<Result<LogText, Fault>> =>
      this.#isClosed || performance.now() >= untilMs
        ? Promise.resolve(OVERLOADED)
        : this.#thread.ask({ request, orgId }).catch(() => fail({ kind: 'internal' }));
    const read = isFurtherPiece(request) ? this.#queue.runFurther(orgId, search) : this.#queue.run(orgId, search);
    if (read === undefined) return OVERLOADED;
    // A caller that timed out keeps its place: the thread is still working on its search.
    return (await within(this.#deadlineMs, read)) ?? OVERLOADED;
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return this.#thread.close();
  }
}

/**
 * A later chunk of an export. Half an export is useless, so it is refused at its start or never. It requests one chunk
 * at a time.
 */
const isFurtherPiece = ({ format, cursor }: LogRequest): boolean =>
  (format === 'ndjson' || format === 'csv') && cursor !== undefined;

const OVERLOADED = fail({ kind: 'overloaded', retryAfterSecs: 1, what: 'the audit log reader' } as const);

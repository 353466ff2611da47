import type { MessagePort, Worker } from 'node:worker_threads';
import { stackOf } from '../core/base/text.ts';
import { within } from '../system/clock.ts';
import { startThread, type ThreadEnded, type ThreadStart } from '../system/thread.ts';

type Asked<Question> = { readonly number: number; readonly question: Question };
type Reply<Answer> =
  | { readonly number: number; readonly answer: Answer }
  | { readonly number: number; readonly defect: string };

/** A thread's end of a `ThreadLink`. Questions are not answered in order, unless `answer` takes care of that. */
export function answerQuestions<Question, Answer>(
  main: MessagePort,
  answer: (question: Question) => Answer | Promise<Answer>,
): void {
  main.on('message', async ({ number, question }: Asked<Question>) => {
    const reply = await (async () => answer(question))().then(
      (value): Reply<Answer> => ({ number, answer: value }),
      (error: unknown): Reply<Answer> => ({ number, defect: stackOf(error) }),
    );
    main.postMessage(reply);
  });
}

export type ThreadLinkOptions<News> = {
  /** Started again so long after it has died; undefined: with the next question. */
  readonly restartMs?: number;
  /** Takes the messages that are no answers: those without a `number`. */
  readonly onNews?: (news: News) => void;
  /** It has died, or could not answer a question: an account for the log. */
  readonly onDefect?: (defect: string) => void;
};

type Waiting<Answer> = { readonly resolve: (answer: Answer) => void; readonly reject: (error: Error) => void };

/**
 * The main thread's link to a thread that it asks. The thread starts with the first question, so a gateway that has
 * none is without it.
 */
export class ThreadLink<Question, Answer, News extends object = never> {
  readonly #start: ThreadStart;
  readonly #options: ThreadLinkOptions<News>;
  readonly #waiting = new Map<number, Waiting<Answer>>();
  #worker: Worker | undefined;
  #restart: NodeJS.Timeout | undefined;
  #lastNumber = 0;
  #isClosed = false;

  constructor(start: ThreadStart, options: ThreadLinkOptions<News> = {}) {
    this.#start = start;
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#worker !== undefined;
  }

  /** Starts it before there is a question. */
  start(): void {
    if (!this.#isClosed) this.#worker ??= this.#startThread();
  }

  /** Rejects where the thread cannot answer, has died, or is closed. */
  ask(question: Question): Promise<Answer> {
    if (this.#isClosed) return Promise.reject(new Error(`the thread workers/${this.#start.entry}.js is closed`));
    this.#worker ??= this.#startThread();
    return this.#send(this.#worker, question);
  }

  /** Ends the thread; `last` is asked before, and its answer waited for no longer than that. */
  async close(last?: { readonly question: Question; readonly withinMs: number }): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#restart);
    const worker = this.#worker;
    if (worker === undefined) return;
    if (last !== undefined)
      await within(
        last.withinMs,
        this.#send(worker, last.question).catch(() => undefined),
      );
    this.#worker = undefined;
    await worker.terminate();
  }

  #send(worker: Worker, question: Question): Promise<Answer> {
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    worker.postMessage({ number, question } satisfies Asked<Question>);
    return new Promise((resolve, reject) => this.#waiting.set(number, { resolve, reject }));
  }

  #startThread(): Worker {
    const worker = startThread<Reply<Answer> | News>(
      this.#start,
      (message) => this.#receive(message),
      (ended) => this.#end(worker, ended),
    );
    worker.unref();
    return worker;
  }

  #receive(message: Reply<Answer> | News): void {
    if (!('number' in message)) return this.#options.onNews?.(message);
    const waiting = this.#waiting.get(message.number);
    this.#waiting.delete(message.number);
    if ('answer' in message) return waiting?.resolve(message.answer);
    this.#options.onDefect?.(message.defect);
    waiting?.reject(new Error(message.defect));
  }

  #end(worker: Worker, ended: ThreadEnded): void {
    const { restartMs, onDefect } = this.#options;
    const hasDied = this.#worker === worker;
    if (hasDied) this.#worker = undefined;
    for (const { reject } of this.#waiting.values()) reject(ended);
    this.#waiting.clear();
    if (!hasDied) return;
    onDefect?.(stackOf(ended));
    if (restartMs !== undefined && !this.#isClosed) this.#restart = setTimeout(() => this.start(), restartMs).unref();
  }
}

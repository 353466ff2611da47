/** The thread that sends the audit log to its sinks: neither their disks nor their networks take time from checks. */
import { mkdirSync } from 'node:fs';
import type { MessagePort } from 'node:worker_threads';
import { targetOf } from '../../audit-sinks/create.ts';
import { cursorPath } from '../../audit-sinks/cursor.ts';
import { SinkRunner } from '../../audit-sinks/runner.ts';
import type { SinkSetting, SinkStatus } from '../../audit-sinks/sink.ts';
import { messageOf } from '../../core/base/text.ts';
import { createResolve } from '../../webhooks/resolve.ts';
import { answerQuestions } from '../thread-link.ts';

export type SinkThreadOptions = {
  /** The folder of the audit log. */
  readonly directory: string;
  /** The folder with the position of each sink. */
  readonly cursorFolder: string;
  readonly sinks: readonly SinkSetting[];
  readonly version: string;
};

export type SinkQuestion =
  | { readonly type: 'test'; readonly name: string }
  | { readonly type: 'replay'; readonly name: string; readonly fromId: number }
  | { readonly type: 'close'; readonly graceMs: number };
/** `trouble` undefined: it succeeded. */
export type SinkAnswer = { readonly trouble: string | undefined };
export type SinkNews =
  | { readonly type: 'status'; readonly sinks: readonly SinkStatus[] }
  | {
      readonly type: 'note';
      readonly level: 'info' | 'warn' | 'error';
      readonly message: string;
      readonly fields: object;
    };

/** Soon enough for metrics, and seldom enough not to take time from the main thread. */
const STATUS_EVERY_MS = 250;

export function runSinksThread(main: MessagePort, options: SinkThreadOptions): void {
  const say = (news: SinkNews): void => main.postMessage(news);
  mkdirSync(options.cursorFolder, { recursive: true, mode: 0o700 });
  const resolve = createResolve();
  let pending: NodeJS.Timeout | undefined;
  const status = (): void => {
    pending = undefined;
    say({ type: 'status', sinks: runners.map((runner) => runner.status) });
  };
  const runners = options.sinks.map(
    (setting) =>
      new SinkRunner({
        setting,
        target: targetOf(setting, { version: options.version, resolve }),
        directory: options.directory,
        cursorPath: cursorPath(options.cursorFolder, setting.name),
        note: (level, message, fields) => say({ type: 'note', level, message, fields }),
        onStatus: () => (pending ??= setTimeout(status, STATUS_EVERY_MS)),
      }),
  );
  for (const runner of runners) runner.start();
  status();

  const runnerOf = (name: string): SinkRunner => runners.find((runner) => runner.status.name === name)!;
  const work = async (question: SinkQuestion): Promise<void> => {
    switch (question.type) {
      case 'test':
        return runnerOf(question.name).test();
      case 'replay':
        runnerOf(question.name).replay(question.fromId);
        return status();
      case 'close':
        await Promise.allSettled(runners.map((runner) => runner.close(question.graceMs)));
        clearTimeout(pending);
        return status();
    }
  };
  answerQuestions<SinkQuestion, SinkAnswer>(main, (question) =>
    work(question).then(
      () => ({ trouble: undefined }),
      (error: unknown) => ({ trouble: messageOf(error) }),
    ),
  );
}

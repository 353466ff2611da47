/** The thread that sends the audit log to its sinks: neither their disks nor their networks take time from checks. */
import { mkdirSync } from 'node:fs';
import type { MessagePort } from 'node:worker_threads';
import { targetOf } from '../../audit-sinks/create.ts';
import { cursorPath } from '../../audit-sinks/cursor.ts';
import { SinkRunner } from '../../audit-sinks/runner.ts';
import type { SinkSetting, SinkStatus } from '../../audit-sinks/sink.ts';
import { messageOf } from '../../core/base/text.ts';
import { createResolve } from '../../webhooks/resolve.ts';

export type SinkThreadOptions = {
  /** The folder of the audit log. */
  readonly directory: string;
  /** The folder with the position of each sink. */
  readonly cursorFolder: string;
  readonly sinks: readonly SinkSetting[];
  readonly version: string;
};

export type ToSinks =
  | { readonly type: 'test'; readonly number: number; readonly name: string }
  | { readonly type: 'replay'; readonly number: number; readonly name: string; readonly fromId: number }
  | { readonly type: 'close'; readonly graceMs: number };

export type FromSinks =
  | { readonly type: 'status'; readonly sinks: readonly SinkStatus[] }
  | {
      readonly type: 'note';
      readonly level: 'info' | 'warn' | 'error';
      readonly message: string;
      readonly fields: object;
    }
  /** `trouble` undefined: it succeeded. */
  | { readonly type: 'done'; readonly number: number; readonly trouble: string | undefined }
  | { readonly type: 'closed' };

/** Soon enough for metrics, and seldom enough not to take time from the main thread. */
const STATUS_EVERY_MS = 250;

export function runSinksThread(main: MessagePort, options: SinkThreadOptions): void {
  const send = (message: FromSinks): void => main.postMessage(message);
  mkdirSync(options.cursorFolder, { recursive: true, mode: 0o700 });
  const resolve = createResolve();
  let pending: NodeJS.Timeout | undefined;
  const status = (): void => {
    pending = undefined;
    send({ type: 'status', sinks: runners.map((runner) => runner.status) });
  };
  const runners = options.sinks.map(
    (setting) =>
      new SinkRunner({
        setting,
        target: targetOf(setting, { version: options.version, resolve }),
        directory: options.directory,
        cursorPath: cursorPath(options.cursorFolder, setting.name),
        note: (level, message, fields) => send({ type: 'note', level, message, fields }),
        onStatus: () => (pending ??= setTimeout(status, STATUS_EVERY_MS)),
      }),
  );
  for (const runner of runners) runner.start();
  status();

  const answer = async (number: number, work: () => unknown): Promise<void> => {
    try {
      await work();
      send({ type: 'done', number, trouble: undefined });
    } catch (error) {
      send({ type: 'done', number, trouble: messageOf(error) });
    }
  };
  const runnerOf = (name: string): SinkRunner => runners.find((runner) => runner.status.name === name)!;
  main.on('message', (message: ToSinks) => {
    if (message.type === 'test') void answer(message.number, () => runnerOf(message.name).test());
    else if (message.type === 'replay')
      void answer(message.number, () => {
        runnerOf(message.name).replay(message.fromId);
        status();
      });
    else
      void Promise.all(runners.map((runner) => runner.close(message.graceMs))).finally(() => {
        clearTimeout(pending);
        status();
        send({ type: 'closed' });
      });
  });
}

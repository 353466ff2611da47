/** The export of the audit log, with a reader of the log that has or has not the time. */
import { describe, expect, test } from 'vitest';
import { fail, ok, type Result } from '../../../src/core/base/result.ts';
import { explain, type Fault } from '../../../src/core/fault.ts';
import { logRoutes } from '../../../src/doors/api/logs.ts';
import type { Authorized, HttpReply } from '../../../src/doors/engine/route.ts';
import type { LogText } from '../../../src/use-cases/logs.ts';
import type { Link } from '../../../src/use-cases/use-cases.ts';

const OVERLOADED = fail({ kind: 'overloaded', retryAfterSecs: 0.01, what: 'the audit log reader' } as const);
const textOf = (text: string, next: string | undefined): Result<LogText, Fault> =>
  ok({ text: Buffer.from(text), next });

/** Exports pieces that are answered like this, one after the other, and the last answer again and again. */
async function exported(answers: readonly Result<LogText, Fault>[]): Promise<string[]> {
  let asked = 0;
  const link = {
    call: async (name: string) =>
      name === 'authenticate' ? ok(undefined) : answers[Math.min(asked++, answers.length - 1)],
  } as unknown as Link;
  const request = {
    principal: { subject: 'key:r', scopes: ['read'], orgId: null },
    query: new URLSearchParams(),
    bearer: 'r',
  } as unknown as Authorized;
  const handle = logRoutes.find(({ path }) => path === '/api/v1/logs/export')!.handle as (
    request: Authorized,
    link: Link,
  ) => Promise<HttpReply>;
  const reply = await handle(request, link);
  if (!reply.ok) return [explain(reply.fault)];
  const brought: string[] = [];
  for await (const piece of reply.value.stream!.chunks)
    brought.push(piece.ok ? Buffer.from(piece.value).toString() : explain(piece.fault));
  return brought;
}

describe('logs', () => {
  test('an export waits for a busy log reader', async () => {
    expect(await exported([textOf('first', 'c'), OVERLOADED, OVERLOADED, textOf('second', undefined)])).toEqual([
      'first',
      'second',
    ]);
  });

  test('an export does not wait forever', async () => {
    expect(await exported([textOf('first', 'c'), OVERLOADED])).toEqual([
      'first',
      'the audit log reader is at its limit; try again in 0.01 seconds',
    ]);
  });

  test('an export without a free reader at first is refused before anything is sent', async () => {
    expect(await exported([OVERLOADED, textOf('first', undefined)])).toEqual([
      'the audit log reader is at its limit; try again in 0.01 seconds',
    ]);
  });
});

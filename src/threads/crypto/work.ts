/** Performs the tasks of a crypto thread. */

import { assertNever } from '../../core/base/result.ts';
import { messageOf } from '../../core/base/text.ts';
import type { CryptoOutcome, CryptoReplies, CryptoTask, CryptoTaskType } from './tasks.ts';

// A thread works for one lane only, so each half is loaded by the first task that needs it.
async function perform(task: CryptoTask): Promise<CryptoReplies[CryptoTaskType]> {
  switch (task.type) {
    case 'hash-password':
      return (await import('./password-work.ts')).hashPassword(task.password, task.cost);
    case 'verify-password':
      return (await import('./password-work.ts')).verifyPassword(task.hash, task.password, task.cost);
    case 'sign-token':
      return (await import('./token-work.ts')).signToken(task.kid, task.privateKeyPem, task.claims);
    case 'verify-token':
      return (await import('./token-work.ts')).verifyToken(task.token, task.publicKeyPem, task.frame);
    default:
      return assertNever(task);
  }
}

/** Performs tasks one after the other: a batch holds as many as one thread should do before it can be given others. */
export async function performAll(tasks: readonly CryptoTask[]): Promise<CryptoOutcome[]> {
  const outcomes: CryptoOutcome[] = [];
  for (const task of tasks) {
    try {
      outcomes.push({ ok: true, value: await perform(task) });
    } catch (error) {
      outcomes.push({ ok: false, cause: messageOf(error) });
    }
  }
  return outcomes;
}

/** What the use cases need of the outside world, each as small as its user. Adapters and threads implement them. */
import type { AuditDraft } from '../core/audit.ts';
import type { Fault } from '../core/fault.ts';
import type { Result } from '../core/result.ts';

/** Milliseconds since the Unix epoch, never running backwards within one process. */
export type Clock = { nowMs(): number };

/** Resolves once the entry is in the log; a fault means it is not, and what it would have recorded must not happen. */
export type AuditLog = { record(draft: AuditDraft): Promise<Result<void, Fault>> };

/** argon2id on the crypto pool. The fault is `overloaded` when the bounded queue is full. */
export type Passwords = {
  hash(password: string): Promise<Result<string, Fault>>;
  /** `rehash` tells that the stored hash was made with parameters other than today's. */
  verify(hash: string, password: string): Promise<Result<{ readonly matches: boolean; readonly rehash: boolean }, Fault>>;
};

export type Mail = { readonly to: string; readonly subject: string; readonly text: string };
/** Resolves when the mail is handed over or given up; never rejects, because no caller may depend on delivery. */
export type Mailer = { send(mail: Mail): Promise<void> };

/** Describes an entry in words. Pure. */
import type { AuditEntry } from '../../base/api-types.ts';
import { wordsOfEvent } from '../operations/timeline.ts';

export type Sentence = {
  readonly title: string;
  /** The action that was asked about; of other events, what their payload says in a word each. */
  readonly subject: string;
  readonly tone: 'good' | 'bad' | 'wait' | 'plain';
};

const MAX_WORDS = 4;
/** Ids that say nothing at a glance; the entry itself shows them. */
const NOT_AT_A_GLANCE = ['account_id', 'session_id', 'token_id', 'halt_id', 'digest'];

const isPlain = (value: unknown): value is string | number | boolean =>
  ['string', 'number', 'boolean'].includes(typeof value);

const textOf = (value: unknown): string | undefined => {
  if (isPlain(value)) return String(value);
  return Array.isArray(value) && value.every(isPlain) ? value.join(' ') : undefined;
};

function wordsOf(payload: Readonly<Record<string, unknown>>): string {
  return Object.entries(payload)
    .flatMap(([name, value]) => {
      const text = textOf(value);
      return text === undefined || NOT_AT_A_GLANCE.includes(name) ? [] : [`${name.replaceAll('_', ' ')} ${text}`];
    })
    .slice(0, MAX_WORDS)
    .join(', ');
}

export function sentenceOf({ event_type, payload }: Pick<AuditEntry, 'event_type' | 'payload'>): Sentence {
  const [title, tone] = wordsOfEvent(event_type);
  const { action, resource, dry_run: isDryRun } = payload;
  const subject = typeof action === 'string' ? `${action} ${textOf(resource) ?? ''}`.trim() : wordsOf(payload);
  return { title: isDryRun === true ? `${title} (dry run)` : title, subject, tone };
}

export type Chain = { readonly checked: number; readonly broken: readonly number[] };

/** Whether neighbouring entries of a log link: each holds the hash of the one before it. */
export function chainOf(entries: readonly AuditEntry[]): Chain {
  const byId = new Map(entries.map((entry) => [`${entry.gateway ?? ''} ${entry.id}`, entry]));
  let checked = 0;
  const broken: number[] = [];
  for (const entry of entries) {
    const before = byId.get(`${entry.gateway ?? ''} ${entry.id - 1}`);
    if (before === undefined) continue;
    checked += 1;
    if (entry.prev_hash !== before.hash) broken.push(entry.id);
  }
  return { checked, broken };
}

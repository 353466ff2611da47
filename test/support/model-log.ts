/** The head of the log as plain TypeScript: what the functions in the database are to do, one call at a time. */
import { createHash } from 'node:crypto';
import type { AgentRegistration } from '../../src/core/agents/agents.ts';
import type { Member, Place, RunId } from '../../src/ports/cluster.ts';
import type { Entry, LogAnswer, LogRow, Verdict, Whole } from '../../src/ports/cluster-log.ts';

/** Rows of one answer: few, so that answers of several are played. */
export const MOST_ROWS = 7;

/** Rules that a mutant leaves out. */
export type HeadRule =
  /** A repeated nonce changes nothing. */
  | 'enters a nonce once'
  /** An entry that is offered again does not replace a newer one. */
  | 'puts nothing older in the place of newer'
  /** An entry that expects another version is refused. */
  | 'judges by versions'
  /** A group is entered as a whole or not at all. */
  | 'judges a group as a whole'
  /** Two agents cannot have one credential. */
  | 'gives a credential to one agent'
  /** A gateway that has applied rows that this server has lost is told so. */
  | 'notices what it has lost'
  /** A gateway that lacks rows that are gone is told so. */
  | 'notices a gap';

type Kept = { readonly entry: Entry; readonly version: number };
type Appended = LogRow & { readonly verdicts: readonly Verdict[] | undefined };

const keyOf = ({ kind, id }: Pick<Entry, 'kind' | 'id'>): string => `${kind} ${id}`;
const markAfter = (mark: string, nonce: string, atMs: number, entries: readonly Entry[]): string =>
  createHash('md5')
    .update(mark + nonce + atMs + JSON.stringify(entries))
    .digest('hex');
const credentialOf = ({ kind, body }: Entry): unknown =>
  kind === 'agents' && body !== null ? (body as AgentRegistration).credential : undefined;

export class ModelHead {
  /** With gaps at the beginning, once it was trimmed. */
  log: Appended[];
  state = new Map<string, Kept>();
  readonly #without: HeadRule | undefined;

  constructor(without?: HeadRule) {
    this.#without = without;
    this.log = [{ seq: 1, nonce: 'first', mark: 'first', run: '' as RunId, atMs: 0, entries: [], verdicts: [] }];
  }

  get head(): Place {
    const { seq, mark } = this.log.at(-1)!;
    return { seq, mark };
  }

  /** As it is now, for a server that lags behind. */
  copy(): ModelHead {
    const copied = new ModelHead(this.#without);
    copied.log = [...this.log];
    copied.state = new Map(this.state);
    return copied;
  }

  trim(before: number): void {
    this.log = this.log.filter(({ seq }, at) => seq >= before || at === this.log.length - 1);
  }

  append(
    run: RunId,
    nonce: string,
    place: Place,
    groups: readonly (readonly Entry[])[],
    most: number,
    members: readonly Member[],
    nowMs = 0,
  ): LogAnswer {
    const asked = this.after(place, 0, members);
    if (asked.lost) return asked;
    const isOffered = groups.some((group) => group.some(({ at }) => at !== undefined));
    let row = this.log.find((each) => each.nonce === nonce && this.#without !== 'enters a nonce once');
    if (row === undefined) {
      const seq = this.head.seq + 1;
      if (isOffered && asked.isGap) return asked;
      const verdicts: Verdict[] = [];
      const atMs = Math.max(nowMs, this.log.at(-1)!.atMs + 0.001);
      const entries: Entry[] = [];
      for (const group of groups) {
        const problems = group.map((entry) => this.#judge(entry, place));
        const verdict = problems.find((each) => each !== undefined) ?? 'accepted';
        verdicts.push(verdict);
        for (const [at, entry] of group.entries()) {
          const isEntered =
            this.#without === 'judges a group as a whole' ? problems[at] === undefined : verdict === 'accepted';
          if (!isEntered) continue;
          this.#enter(entry, seq);
          entries.push(entry);
        }
      }
      const mark = markAfter(this.head.mark, nonce, atMs, entries);
      row = { seq, nonce, mark, run, atMs, entries, verdicts: isOffered ? undefined : verdicts };
      this.log.push(row);
    }
    const answer = this.after(place, most, members) as Exclude<LogAnswer, { lost: true }>;
    return { ...answer, mine: { seq: row.seq, verdicts: row.verdicts } };
  }

  after(place: Place, most: number, members: readonly Member[]): LogAnswer {
    const { seq } = this.head;
    const known = this.log.find((row) => row.seq === place.seq);
    const isLost = place.seq > seq || (known !== undefined && known.mark !== place.mark);
    if (isLost && this.#without !== 'notices what it has lost') return { lost: true };
    const rows = this.log.filter((row) => row.seq > place.seq).slice(0, most);
    return { seq, isGap: known === undefined && this.#without !== 'notices a gap', rows, members };
  }

  placesAfter(seq: number): readonly Place[] {
    const places = this.log.filter((row) => row.seq > seq).map((row) => ({ seq: row.seq, mark: row.mark }));
    return places.length === 0 ? [this.head] : places;
  }

  whole(): Whole {
    const kept = [...this.state.values()];
    const policy = this.state.get('policy active')?.entry.body;
    return {
      place: this.head,
      agents: kept.flatMap(({ entry }) => (entry.kind === 'agents' ? (entry.body as AgentRegistration) : [])),
      states: kept
        .filter(({ entry }) => entry.kind !== 'agents' && entry.kind !== 'policy')
        .map(({ entry: { kind, id, body }, version }) => ({ kind, id, body, version })),
      policy: policy as Whole['policy'],
    };
  }

  #judge(entry: Entry, place: Place): Exclude<Verdict, 'accepted'> | undefined {
    const { at } = entry;
    if (
      at !== undefined &&
      this.#without !== 'puts nothing older in the place of newer' &&
      this.#isNewer(entry, at, place)
    )
      return 'changed';
    const known = this.state.get(keyOf(entry))?.version ?? 0;
    const { expects = known, upTo = known } = entry;
    if (this.#without !== 'judges by versions' && (expects !== known || upTo < known)) return 'changed';
    const credential = credentialOf(entry);
    if (credential === undefined || this.#without === 'gives a credential to one agent') return undefined;
    const others = [...this.state.values()].filter((each) => each.entry.id !== entry.id);
    if (others.some((each) => credentialOf(each.entry) === credential)) return 'credential';
    for (let above = (entry.body as AgentRegistration).parent, depth = 1; above !== undefined; depth += 1) {
      if (above === entry.id || depth === 1_001) return 'parent';
      above = (this.state.get(`agents ${above}`)?.entry.body as AgentRegistration | undefined)?.parent;
    }
    return undefined;
  }

  #isNewer(entry: Entry, at: number, place: Place): boolean {
    return this.log.some(
      ({ seq, atMs, entries }) =>
        seq > place.seq && entries.some((each) => keyOf(each) === keyOf(entry) && (each.at ?? atMs) >= at),
    );
  }

  #enter(entry: Entry, seq: number): void {
    if (entry.kind === 'notice') return;
    if (entry.body === null) this.state.delete(keyOf(entry));
    else this.state.set(keyOf(entry), { entry, version: seq });
  }
}

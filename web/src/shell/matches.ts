/** Results of a search, the best first. Pure. */
export type Candidate = {
  readonly id: string;
  readonly kind: string;
  readonly title: string;
  readonly detail: string;
  readonly href: string;
};

const MAX_FOUND = 30;

/** How well a text fits all words; Infinity where it does not. */
function distance({ title, detail }: Candidate, words: readonly string[]): number {
  const [name, all] = [title.toLowerCase(), `${title} ${detail}`.toLowerCase().replaceAll(' / ', '/')];
  let sum = 0;
  for (const word of words) {
    const at = name.indexOf(word);
    if (at === 0) continue;
    if (at > 0) sum += 1;
    else if (all.includes(word)) sum += 2;
    else return Infinity;
  }
  return sum;
}

/** Without a word, the first of all. */
export function bestOf(candidates: readonly Candidate[], text: string): readonly Candidate[] {
  const words = text
    .toLowerCase()
    .replaceAll(' / ', '/')
    .split(/\s+/)
    .filter((word) => word !== '');
  return candidates
    .map((candidate) => ({ candidate, far: distance(candidate, words) }))
    .filter(({ far }) => far < Infinity)
    .sort((one, other) => one.far - other.far)
    .slice(0, MAX_FOUND)
    .map(({ candidate }) => candidate);
}

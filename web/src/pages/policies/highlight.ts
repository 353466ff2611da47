/** YAML by its parts, for the eye: line by line, without understanding it. Pure. */
export type Part = { readonly kind: 'key' | 'text' | 'comment' | 'string' | 'mark'; readonly text: string };

const TAB = '  ';

/** Finds the beginning of a comment: at the start or behind a space, and not within quotes. */
function commentAt(line: string): number {
  let quote = '';
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at] ?? '';
    if (quote !== '') quote = char === quote ? '' : quote;
    else if ((char === '"' || char === "'") && /[\s[{,:-]/.test(line[at - 1] ?? ' ')) quote = char;
    else if (char === '#' && /^$|\s/.test(line[at - 1] ?? '')) return at;
  }
  return line.length;
}

export function partsOfYaml(given: string): readonly Part[] {
  const line = given.replaceAll('\t', TAB);
  const end = commentAt(line);
  const code = line.slice(0, end);
  const [, before = '', key = '', colon = '', rest = ''] =
    /^(\s*(?:- )*)(?:([\w."'-]+)(:)(?=\s|$))?(.*)$/.exec(code) ?? [];
  const parts: Part[] = [
    { kind: 'mark', text: before },
    { kind: 'key', text: key },
    { kind: 'mark', text: colon },
    ...valuesOf(rest),
    { kind: 'comment', text: line.slice(end) },
  ];
  return parts.filter(({ text }) => text !== '');
}

const valuesOf = (text: string): readonly Part[] =>
  text
    .split(/("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')/)
    .map((part, at) => ({ kind: at % 2 === 1 ? 'string' : 'text', text: part }));

/** The line of a rule, from 0; -1 if there is none. */
export const lineOfRule = (lines: readonly string[], rule: string): number =>
  lines.findIndex((line) =>
    new RegExp(
      `^\\s*-?\\s*(?:\\{\\s*)?id:\\s*["']?${rule.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}["']?\\s*(?:[,#}].*)?$`,
    ).test(line),
  );

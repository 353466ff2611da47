/** Names, states and times as every page shows them. */
import type { ComponentChildren } from 'preact';
import { agentName, agentPath, ago, dateTime, SLASH, shortId } from '../base/format.ts';
import { seconds } from '../live/live.ts';
import { CopyButton } from './dialog.tsx';

/** A name of several parts, each with its own direction of writing, so that none moves another from its place. */
export const Parts = ({ text, separator = SLASH }: { readonly text: string; readonly separator?: string }) => (
  <span>
    {text.split(separator).map((part, at) => (
      <>
        {at > 0 && separator}
        <bdi>{part}</bdi>
      </>
    ))}
  </span>
);

type Named = {
  readonly org_id?: string | null | undefined;
  readonly team_id?: string | null | undefined;
  readonly agent_id?: string | null | undefined;
};

/** Eight colours are told apart at a glance; more orgs share them. */
const COLOURS = 8;

const colours = new Map<string, number>();

/** The same org has the same colour on every page; a few orgs have a colour each. */
function colourOf(org: string): number {
  const known = colours.get(org);
  if (known !== undefined) return known;
  let hash = 7;
  for (const char of org) hash = (hash * 31 + (char.codePointAt(0) ?? 0)) % 9973;
  const taken = new Set(colours.size < COLOURS ? colours.values() : []);
  let colour = hash % COLOURS;
  while (taken.has(colour)) colour = (colour + 1) % COLOURS;
  colours.set(org, colour);
  return colour;
}

export const OrgMark = ({ org }: { readonly org: string | null | undefined }) =>
  org ? <span class={`org-mark org-${colourOf(org)}`} aria-hidden="true" /> : null;

/** An agent by its full name, which leads to its page. */
export const AgentLink = ({ agent }: { readonly agent: Named }) => (
  <a class="agent" href={agentPath(agent)}>
    <OrgMark org={agent.org_id} />
    <Parts text={agentName(agent)} />
  </a>
);

/** A name as the audit log has it: an agent leads to its page. */
export function Actor({ name }: { readonly name: string }) {
  const [, org = '', team, agent] = /^agent:([^/]*)\/([^/]+)\/([^/]+)$/.exec(name) ?? [];
  return agent === undefined ? (
    <bdi>{name}</bdi>
  ) : (
    <AgentLink agent={{ org_id: org, team_id: team, agent_id: agent }} />
  );
}

export const State = ({
  word,
  title,
  isAsked,
}: {
  readonly word: string;
  readonly title?: string;
  readonly isAsked?: boolean;
}) => (
  <span class={`state ${word}${isAsked ? ' asked' : ''}`} title={title}>
    {word}
  </span>
);

/** How long ago, with the whole time on demand; it goes on counting. */
export function Ago({ at }: { readonly at: string | null | undefined }) {
  seconds.value;
  return (
    <time dateTime={at ?? undefined} title={dateTime(at)}>
      {ago(at)}
    </time>
  );
}

/** An id in short, with all of it on demand. */
export const Id = ({ id }: { readonly id: string }) => (
  <span class="id">
    <code title={id}>{shortId(id)}</code> <CopyButton text={id} label="Copy ID" />
  </span>
);

export const Tag = ({ children }: { readonly children: ComponentChildren }) => <span class="tag">{children}</span>;

/** Facts about one thing: a name and what it is, line by line. */
export const Facts = ({
  rows,
}: {
  readonly rows: readonly (readonly [string, ComponentChildren] | null | false)[];
}) => (
  <dl class="facts">
    {rows.map((row) =>
      row ? (
        <div key={row[0]}>
          <dt>{row[0]}</dt>
          <dd>{row[1]}</dd>
        </div>
      ) : null,
    )}
  </dl>
);

type HeadProps = {
  readonly title: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly children?: ComponentChildren;
};

/** A page's title, its description in a line, and its actions. */
export const PageHead = ({ title, note, children }: HeadProps) => (
  <div class="page-head">
    <div>
      <h1>{title}</h1>
      {note !== undefined && <p class="hint">{note}</p>}
    </div>
    <div class="actions">{children}</div>
  </div>
);

type PanelProps = {
  readonly title: string;
  readonly more?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly class?: string;
};

export const Panel = ({ title, more, children, class: kind = '' }: PanelProps) => (
  <section class={`panel ${kind}`} aria-label={title}>
    <header>
      <h2>{title}</h2>
      {more}
    </header>
    {children}
  </section>
);

export const Empty = ({ children }: { readonly children: ComponentChildren }) => <p class="empty">{children}</p>;

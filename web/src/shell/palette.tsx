/** Jumps anywhere: to pages, agents, operations, policies, rules and approvals, by a few letters. */
import { useId, useMemo, useRef, useState } from 'preact/hooks';
import type { Agent, Rule } from '../base/api-types.ts';
import { agentName, agentPath } from '../base/format.ts';
import { queryOf } from '../base/request.ts';
import { doingOf } from '../control/ask-control.tsx';
import { model } from '../live/live.ts';
import { agentOf, isFinished } from '../live/op.ts';
import { opPath } from '../pages/operations/op-row.tsx';
import { policyPath } from '../pages/policies/paths.ts';
import { pendingApprovals } from '../standing/standing.ts';
import { Dialog, openDialog } from '../ui/dialog.tsx';
import { Parts } from '../ui/names.tsx';
import { readAll } from '../ui/read.ts';
import { useResource } from '../ui/resource.ts';
import { navigate } from '../ui/router.ts';
import { bestOf, type Candidate } from './matches.ts';
import { PAGES } from './pages.tsx';

const MAX_OPS = 500;

export const openPalette = (): void => openDialog((onClose) => <Palette onClose={onClose} />);

const pages = (): readonly Candidate[] =>
  PAGES.map(({ title, paths }) => ({
    id: `page ${title}`,
    kind: 'Page',
    title: title === 'Changes' ? 'What changed' : title,
    detail: '',
    href: paths[0] ?? '/',
  }));

const ops = (): readonly Candidate[] =>
  model
    .list({})
    .filter(({ state }) => !isFinished(state))
    .slice(0, MAX_OPS)
    .map((op) => ({
      id: op.key,
      kind: 'Operation',
      title: doingOf(op),
      detail: `${agentName(agentOf(op))} ${op.opId}`,
      href: opPath(op),
    }));

const approvals = (): readonly Candidate[] =>
  pendingApprovals.value.map(({ id, agent, action, resource }) => ({
    id: `approval ${id}`,
    kind: 'Approval',
    title: `${action} ${resource}`,
    detail: agentName(agent),
    href: `/approvals/${encodeURIComponent(id)}`,
  }));

const agentCandidate = (agent: Agent): Candidate => ({
  id: `agent ${agentPath(agent)}`,
  kind: 'Agent',
  title: agentName(agent),
  detail: '',
  href: agentPath(agent),
});

const ruleCandidate = ({ policy, id, reason, effect }: Rule): Candidate => ({
  id: `rule ${policy} ${id}`,
  kind: 'Rule',
  title: `${policy} · ${id}`,
  detail: `${effect} ${reason ?? ''}`,
  href: policyPath(policy, id),
});

async function readRest(): Promise<readonly Candidate[]> {
  const [agents, rules] = await Promise.all([
    readAll<Agent>('/api/v1/agents', 'agents', {}, 2),
    readAll<Rule>('/api/v1/policies/rules', 'rules', {}, 1),
  ]);
  return [...agents.map(agentCandidate), ...rules.map(ruleCandidate)];
}

function Palette({ onClose }: { readonly onClose: () => void }) {
  const [text, setText] = useState('');
  const [chosen, choose] = useState(0);
  const list = useId();
  const box = useRef<HTMLDivElement>(null);
  const { data: rest = [] } = useResource('palette', readRest);
  const near = useMemo(() => [...pages(), ...approvals(), ...ops()], []);
  const found = [...bestOf([...near, ...rest], text), ...searches(text)];
  const go = (candidate: Candidate | undefined): void => {
    if (candidate === undefined) return;
    onClose();
    navigate(candidate.href);
  };
  const move = (by: number): void => {
    const next = Math.max(0, Math.min(found.length - 1, chosen + by));
    choose(next);
    box.current?.children[next]?.scrollIntoView({ block: 'nearest' });
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown') move(1);
    else if (event.key === 'ArrowUp') move(-1);
    else if (event.key === 'Enter') go(found[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Jump to" onClose={onClose} class="palette" isTitleHidden>
      <input
        type="text"
        role="combobox"
        aria-label="Jump to"
        aria-expanded={true}
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={found.length > 0 ? `${list}-${chosen}` : undefined}
        placeholder="A page, agent, operation, rule …"
        autocomplete="off"
        spellcheck={false}
        data-focus
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          choose(0);
        }}
        onKeyDown={press}
      />
      {/* The keyboard is in the field above, which names the option that is chosen. */}
      <div class="found" id={list} role="listbox" aria-label="Found" tabIndex={-1} ref={box}>
        {found.map((candidate, at) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard is in the field above
          <div
            key={candidate.id}
            id={`${list}-${at}`}
            role="option"
            tabIndex={-1}
            aria-selected={at === chosen}
            onClick={() => go(candidate)}
            onPointerMove={() => choose(at)}
          >
            <span class="tag">{candidate.kind}</span>
            <span class="clip">
              <Parts text={candidate.title} />
            </span>
            {candidate.kind === 'Operation' && <span class="hint clip">{candidate.detail}</span>}
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="empty">Nothing is found.</p>}
    </Dialog>
  );
}

/** Offers to search for the typed text in the lists that hold all of it. */
const searches = (text: string): readonly Candidate[] =>
  text.trim() === ''
    ? []
    : [
        {
          id: 'search ops',
          kind: 'Search',
          title: `Operations with “${text.trim()}”`,
          detail: text,
          href: `/operations${queryOf({ q: text.trim() })}`,
        },
        {
          id: 'search audit',
          kind: 'Search',
          title: `Audit entries of agent “${text.trim()}”`,
          detail: text,
          href: `/audit${queryOf({ agent_id: text.trim() })}`,
        },
      ];

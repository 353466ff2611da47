/** Operations in flight, as they happen, and the means to stop them. */
import { useState } from 'preact/hooks';
import { askControlAll } from '../../control/ask-control.tsx';
import { askHalt } from '../../control/halt-dialog.tsx';
import { model } from '../../live/live.ts';
import { type Action, VERB, WORDS } from '../../live/op.ts';
import { isEmptyFilter, OP_FILTERS, type OpFilter } from '../../live/op-filter.ts';
import { boundOrg, can } from '../../session/session.ts';
import { SelectField, TextField } from '../../ui/fields.tsx';
import { PageHead } from '../../ui/names.tsx';
import { OrgFilter } from '../../ui/org-filter.tsx';
import { place, setQuery } from '../../ui/router.ts';
import { OpTable } from './op-table.tsx';

const STATES = ['pending', 'running', 'paused'];
const MORE = ['team_id', 'agent_id', 'action', 'resource', 'policy', 'rule_id'] as const;

const MORE_LABELS: Readonly<Record<(typeof MORE)[number], readonly [string, string]>> = {
  team_id: ['Team', 'All teams'],
  agent_id: ['Agent', 'All agents'],
  action: ['Action', 'tool.*'],
  resource: ['Resource', 'prod/*'],
  policy: ['Policy', 'All policies'],
  rule_id: ['Rule', 'All rules'],
};

/** As the address asks for. */
function filterFrom(query: URLSearchParams): OpFilter {
  const filter = Object.fromEntries(OP_FILTERS.map((name) => [name, (query.get(name) ?? '').trim()]));
  return boundOrg() === null ? filter : { ...filter, org_id: '' };
}

export function OperationsPage() {
  const filter = filterFrom(place.value.query);
  const target = {
    org_id: filter.org_id || undefined,
    team_id: filter.team_id || undefined,
    agent_id: filter.agent_id || undefined,
  };
  const forAll = (action: Action) => (
    <button
      key={action}
      type="button"
      class={action === 'terminate' ? 'small danger' : 'small'}
      onClick={() => askControlAll(() => model.list(filter), action, target)}
    >
      {VERB[action]} all
    </button>
  );
  return (
    <div class="page fills">
      <PageHead title="Operations">
        {can('admin') && (
          <button type="button" class="danger" onClick={() => askHalt(target)}>
            Halt…
          </button>
        )}
      </PageHead>
      <Filters filter={filter} />
      <OpTable filter={filter} label="Operations">
        {/* Of what the filter leaves, and only where there is one: a stray click must not reach everybody. */}
        {can('write') && !isEmptyFilter(filter) && (
          <fieldset class="for-all">
            <legend class="sr-only">All operations that match the filter</legend>
            {(['pause', 'resume', 'terminate'] as const).map(forAll)}
          </fieldset>
        )}
      </OpTable>
    </div>
  );
}

function Filters({ filter }: { readonly filter: OpFilter }) {
  const [isOpen, setOpen] = useState(MORE.some((name) => filter[name]));
  const set = (name: keyof OpFilter) => (value: string) => setQuery({ [name]: value });
  const state = filter.ended || filter.state || '';
  return (
    <search class="filters">
      <TextField
        label="Search"
        type="search"
        placeholder="Action, resource, agent, id …"
        value={place.value.query.get('q') ?? ''}
        onValue={set('q')}
        class="wide"
      />
      <OrgFilter value={filter.org_id ?? ''} onValue={set('org_id')} list={model.orgs()} />
      <SelectField
        label="State"
        value={state}
        onValue={(word) =>
          setQuery(word === 'active' || STATES.includes(word) ? { state: word, ended: '' } : { state: '', ended: word })
        }
        options={[['', 'All states'], ['active', 'in flight'], ...WORDS.map((word) => [word, word] as const)]}
      />
      {isOpen ? (
        MORE.map((name) => (
          <TextField
            key={name}
            label={MORE_LABELS[name][0]}
            type="search"
            placeholder={MORE_LABELS[name][1]}
            value={filter[name] ?? ''}
            onValue={set(name)}
          />
        ))
      ) : (
        <button type="button" class="quiet" aria-expanded={false} onClick={() => setOpen(true)}>
          More filters
        </button>
      )}
      {!isEmptyFilter(filter) && (
        <button
          type="button"
          class="quiet"
          onClick={() => setQuery(Object.fromEntries(OP_FILTERS.map((name) => [name, ''])))}
        >
          Clear
        </button>
      )}
    </search>
  );
}

/** Halts and releases: a stop that holds, with how many operations it will stop before it is ordered. */
import { useState } from 'preact/hooks';
import type { Halt, Lineage } from '../base/api-types.ts';
import { nowMs } from '../base/clock.ts';
import { plural, SLASH } from '../base/format.ts';
import { queryOf } from '../base/request.ts';
import { model, opsVersion } from '../live/live.ts';
import { boundOrg, call } from '../session/session.ts';
import { readStanding } from '../standing/standing.ts';
import { ask, openDialog, QuestionDialog } from '../ui/dialog.tsx';
import { SelectField, TextField } from '../ui/fields.tsx';
import { Parts } from '../ui/names.tsx';
import { notify } from '../ui/notices.tsx';
import { useResource } from '../ui/resource.ts';
import { type HaltKind, type HaltTarget, hitBy, kindsFor, scopeOf } from './halt-scope.ts';

export type { HaltTarget };

const ENDS: Readonly<Record<string, readonly [text: string, hours: number | null]>> = {
  '': ['when somebody releases it', null],
  '1h': ['after 1 hour', 1],
  '8h': ['after 8 hours', 8],
  '24h': ['after 24 hours', 24],
};

export const askHalt = (target: HaltTarget): void =>
  openDialog((onClose) => <HaltDialog target={target} onClose={onClose} />);

const wordsOf = (kind: HaltKind, { org_id: org, team_id: team, agent_id: agent }: HaltTarget): string => {
  if (kind === 'global') return 'Everything: all orgs';
  const name = [org || '–', ...(kind === 'org' ? [] : [team]), ...(kind === 'org' || kind === 'team' ? [] : [agent])];
  const text = name.join(SLASH);
  const words = { agent: `Agent ${text}`, lineage: `Lineage: ${text} and all it started`, team: `Team ${text}` };
  return kind === 'org' ? `Org ${text}` : words[kind];
};

/** An agent with all it started, as `team/agent` in its org. */
async function descendantsOf({
  org_id: org,
  agent_id: agent,
  team_id: team,
}: HaltTarget): Promise<ReadonlySet<string>> {
  if (!agent) return new Set();
  const { lineages } = await call(
    'GET',
    `/api/v1/topology/lineage/${encodeURIComponent(agent)}${queryOf({ org_id: org, per_page: 1000 })}`,
  ).catch(() => ({ lineages: [] }));
  const own = (lineages as readonly Lineage[]).find(
    (each) => each.agent.team_id === team && each.agent.org_id === (org ?? ''),
  );
  return new Set(own?.descendants.map(({ team_id, agent_id }) => `${team_id}/${agent_id}`) ?? []);
}

/** Whether any registered agent is meant: a name that was mistyped must not look like success. */
async function isAnybodyIn(target: HaltTarget, kind: HaltKind): Promise<boolean> {
  const names = {
    org_id: target.org_id,
    ...(kind === 'org' ? {} : { team_id: target.team_id }),
    ...(kind === 'agent' || kind === 'lineage' ? { agent_id: target.agent_id } : {}),
  };
  const { agents } = await call('GET', `/api/v1/agents${queryOf({ ...names, per_page: 1 })}`);
  return agents.length > 0;
}

type DialogProps = { readonly target: HaltTarget; readonly onClose: () => void };

function HaltDialog({ target: given, onClose }: DialogProps) {
  const isGiven = given.agent_id !== undefined;
  const [target, setTarget] = useState<HaltTarget>({ ...given, org_id: given.org_id ?? boundOrg() ?? undefined });
  const kinds: readonly HaltKind[] = [
    ...kindsFor(isGiven ? given : target),
    ...(!isGiven && boundOrg() === null ? (['global'] as const) : []),
  ];
  const [chosen, setKind] = useState<HaltKind | undefined>(kinds[0] === 'global' ? undefined : kinds[0]);
  const [mode, setMode] = useState('terminate');
  const [end, setEnd] = useState('');
  const kind = chosen !== undefined && kinds.includes(chosen) ? chosen : kinds.length > 1 ? kinds[0] : undefined;
  const name = (part: keyof HaltTarget) => (value: string) => {
    setTarget((before) => ({ ...before, [part]: value.trim() || undefined }));
    if (part === 'agent_id' && value !== '') setKind('agent');
  };
  const order = async (reason: string): Promise<void> => {
    if (kind === undefined) return notify('Choose what to stop.', 'error');
    const hours = ENDS[end]?.[1];
    const answer = await call('POST', '/api/v1/halts', {
      scope: scopeOf(kind, target),
      reason,
      mode,
      ...(hours == null ? {} : { expires_at: new Date(nowMs() + hours * 3_600_000).toISOString() }),
    });
    void readStanding(['halts', 'approvals']);
    notify(`In force: ${wordsOf(kind, target)}. ${plural(answer.ops_affected, 'operation')} stopped.`);
  };
  return (
    <QuestionDialog
      title="Stop, and keep stopped"
      text="It stays in force until it is released: running operations are told to stop, and nothing in its scope begins."
      confirm="Halt"
      reason="required"
      onConfirm={order}
      onClose={onClose}
    >
      {!isGiven && (
        <div class="fields-row">
          <TextField
            label="Org"
            value={target.org_id ?? ''}
            onValue={name('org_id')}
            list={model.orgs()}
            readOnly={boundOrg() !== null}
          />
          <TextField label="Team" value={target.team_id ?? ''} onValue={name('team_id')} placeholder="All teams" />
          <TextField label="Agent" value={target.agent_id ?? ''} onValue={name('agent_id')} placeholder="All agents" />
        </div>
      )}
      <fieldset class="choices">
        <legend>Scope</legend>
        {kinds.map((each) => (
          <label key={each}>
            <input type="radio" name="scope" value={each} checked={each === kind} onChange={() => setKind(each)} />
            <span>
              <Parts text={wordsOf(each, target)} />
            </span>
            <Hits kind={each} target={target} />
          </label>
        ))}
      </fieldset>
      {kind !== undefined && kind !== 'global' && <Warning kind={kind} target={target} />}
      <div class="fields-row">
        <SelectField
          label="What runs"
          value={mode}
          onValue={setMode}
          options={[
            ['terminate', 'is terminated'],
            ['pause', 'is paused until the release'],
          ]}
        />
        <SelectField
          label="Ends"
          value={end}
          onValue={setEnd}
          options={Object.entries(ENDS).map(([value, [text]]) => [value, text] as const)}
        />
      </div>
    </QuestionDialog>
  );
}

type Meant = { readonly kind: HaltKind; readonly target: HaltTarget };

function Hits({ kind, target }: Meant) {
  opsVersion.value;
  const { data } = useResource(`${kind} ${scopeOf(kind, target)}`, () =>
    kind === 'lineage' ? descendantsOf(target) : Promise.resolve(new Set<string>()),
  );
  const hit = hitBy(model.list({}), kind, target, data ?? new Set());
  return <span class="hint">stops {plural(hit.length, 'operation')}</span>;
}

function Warning({ kind, target }: Meant) {
  const { data } = useResource(scopeOf(kind, target), () => isAnybodyIn(target, kind), { settleMs: 300 });
  return data === false ? (
    <p class="warning" role="status">
      No registered agent is in this scope. Check the spelling: names are case-sensitive.
    </p>
  ) : null;
}

/** The scope of a halt in words: `org acme`, `everything`. */
export const haltScopeWords = (scope: string): string =>
  scope === 'global' ? 'everything' : scope.replace(':', ' ').replaceAll('/', SLASH);

export const askRelease = (halt: Halt): void =>
  ask({
    title: 'Release this stop?',
    text: halt.mode === 'pause' ? 'What it paused goes on, and new operations may begin.' : 'New operations may begin.',
    subject: (
      <>
        <Parts text={haltScopeWords(halt.scope)} /> – <bdi>{halt.reason}</bdi>
      </>
    ),
    confirm: 'Release',
    isHarmless: true,
    reason: 'required',
    onConfirm: async (reason) => {
      await call('POST', `/api/v1/halts/${encodeURIComponent(halt.id)}/release`, { reason });
      await readStanding(['halts', 'approvals']);
      notify('Released.');
    },
  });

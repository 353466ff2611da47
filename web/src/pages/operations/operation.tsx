/** The page of an operation: its action, the permitted signals, and its history. */
import type { AuditEntry, OpRecord } from '../../base/api-types.ts';
import { nowMs } from '../../base/clock.ts';
import { agentName, dateTime, duration, money } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { askControl } from '../../control/ask-control.tsx';
import { askHalt } from '../../control/halt-dialog.tsx';
import { model, opsVersion, seconds } from '../../live/live.ts';
import { ACTIONS, type Op, VERB, wordOf } from '../../live/op.ts';
import { boundOrg, call, can } from '../../session/session.ts';
import { AgentLink, Empty, Facts, Id, PageHead, Panel, State } from '../../ui/names.tsx';
import { type Resource, useResource } from '../../ui/resource.ts';
import { place } from '../../ui/router.ts';
import { policyPath } from '../policies/paths.ts';
import { timelineOf } from './timeline.ts';
import { Timeline } from './timeline-view.tsx';

const RENEW_MS = 5_000;

type Found = { readonly ops: readonly OpRecord[] };

/** The gateway keeps a finished operation for a minute; the audit log knows it for ever. */
async function readOp(id: string, query: URLSearchParams): Promise<Found> {
  const asked = { org_id: query.get('org_id'), op_home: query.get('op_home') };
  // An empty org is that of agents without one.
  const which =
    query.get('org_id') === '' ? `?org_id=${queryOf({ op_home: asked.op_home }).replace('?', '&')}` : queryOf(asked);
  const answer = await call('GET', `/api/v1/ops/${encodeURIComponent(id)}${which}`);
  return 'ops' in answer ? answer : { ops: [answer] };
}

/** As the stream tells of it, so that it may be controlled as on its row. */
const liveOf = (record: OpRecord): Op | undefined =>
  model
    .withId(record.op_id)
    .find(
      ({ orgId, teamId, home }) =>
        (orgId ?? '') === record.agent.org_id && teamId === record.agent.team_id && home === record.op_home,
    );

export function OperationPage({ id }: { readonly id: string }) {
  opsVersion.value;
  const { query } = place.value;
  const orgId = query.get('org_id') ?? '';
  const live = model.withId(id).map(({ updatedAt }) => updatedAt);
  const found = useResource(`${id} ${query} ${live.join()}`, () => readOp(id, query), { settleMs: 50 });
  const log = useResource(
    `log ${id} ${orgId} ${live.join()}`,
    async (): Promise<readonly AuditEntry[]> => {
      const org = boundOrg() === null ? orgId : '';
      return (await call('GET', `/api/v1/logs${queryOf({ op_id: id, org_id: org, per_page: 200 })}`)).entries;
    },
    { everyMs: RENEW_MS },
  );
  if (found.data !== undefined)
    return (
      <>
        {found.data.ops.map((record) => (
          <OneOperation key={`${record.agent.org_id} ${record.op_home}`} record={record} log={log} />
        ))}
      </>
    );
  return <GoneOperation id={id} isGone={found.status === 404} error={found.error} log={log} />;
}

type Log = Resource<readonly AuditEntry[]>;

function OneOperation({ record, log }: { readonly record: OpRecord; readonly log: Log }) {
  seconds.value;
  const { agent, ended, state } = record;
  const live = liveOf(record);
  const isOver = ended !== null;
  const lasted = (isOver ? Date.parse(record.updated_at) : nowMs()) - Date.parse(record.registered_at);
  return (
    <article class="page">
      <PageHead
        title={<DoingTitle action={record.action} resource={record.resource} />}
        note={
          <>
            <State word={wordOf({ state, ended })} /> {isOver ? 'after' : 'for'} {duration(lasted)} ·{' '}
            <AgentLink agent={agent} />
          </>
        }
      >
        {can('write') && live !== undefined && <Controls op={live} />}
        {can('admin') && (
          <button type="button" class="danger" onClick={() => askHalt(agent)}>
            Halt
          </button>
        )}
      </PageHead>
      <div class="columns">
        <Panel title="Timeline">
          <TimelineOf record={record} log={log} />
        </Panel>
        <Panel title="Details">
          <OpFacts record={record} />
        </Panel>
      </div>
    </article>
  );
}

const DoingTitle = ({ action, resource }: { readonly action: string | null; readonly resource: string | null }) => (
  <span class="mono-title">
    {action ?? 'An operation without a check'} {resource !== null && <bdi class="resource">{resource}</bdi>}
  </span>
);

function Controls({ op }: { readonly op: Op }) {
  return (
    <>
      {ACTIONS[op.state].map((action) => (
        <button
          key={action}
          type="button"
          class={action === 'terminate' ? 'danger' : ''}
          aria-disabled={op.asked !== undefined}
          onClick={() => op.asked === undefined && askControl(op, action)}
        >
          {VERB[action]}
        </button>
      ))}
    </>
  );
}

function OpFacts({ record }: { readonly record: OpRecord }) {
  const { policy, rule_id: rule, approval_id: approval } = record;
  return (
    <Facts
      rows={[
        ['Agent', <AgentLink key="agent" agent={record.agent} />],
        ['Why', record.reason ?? '–'],
        policy !== null && [
          'Rule',
          <a key="rule" href={policyPath(policy, rule)}>
            {[policy, rule].filter(Boolean).join(' · ')}
          </a>,
        ],
        approval !== null && [
          'Approval',
          <a key="approval" href={`/approvals/${encodeURIComponent(approval)}`}>
            {approval}
          </a>,
        ],
        record.error !== null && ['Error', record.error],
        ['Estimate', money(record.estimated_cost_usd)],
        ['Spent', money(record.spent_usd)],
        ['Began', dateTime(record.registered_at)],
        ['Changed', dateTime(record.updated_at)],
        record.acknowledged_at !== null && ['Acknowledged', dateTime(record.acknowledged_at)],
        ['ID', <Id key="id" id={record.op_id} />],
        record.op_home !== undefined && ['Gateway', record.op_home],
      ]}
    />
  );
}

function TimelineOf({ record, log }: { readonly record: OpRecord | undefined; readonly log: Log }) {
  if (log.data === undefined) return <Empty>{log.error || 'Loading…'}</Empty>;
  return <Timeline moments={timelineOf(record, log.data)} />;
}

type GoneProps = { readonly id: string; readonly isGone: boolean; readonly error: string; readonly log: Log };

function GoneOperation({ id, isGone, error, log }: GoneProps) {
  const first = log.data?.at(-1);
  if (!isGone || log.data === undefined)
    return (
      <div class="page">
        <PageHead title="Operation" />
        <Empty>{error || 'Loading…'}</Empty>
      </div>
    );
  const { action, resource } = first?.payload ?? {};
  return (
    <article class="page">
      <PageHead
        title={
          <DoingTitle
            action={typeof action === 'string' ? action : id}
            resource={typeof resource === 'string' ? resource : null}
          />
        }
        note={
          first === undefined
            ? 'No operation of this id is known.'
            : 'It is over, and the gateway does not keep it any more. This is what the audit log knows.'
        }
      >
        {can('admin') && first !== undefined && first.lineage.agent_id !== null && (
          <button
            type="button"
            class="danger"
            onClick={() =>
              askHalt({
                ...first.lineage,
                team_id: first.lineage.team_id ?? '',
                agent_id: first.lineage.agent_id ?? '',
              })
            }
          >
            Halt
          </button>
        )}
      </PageHead>
      {first !== undefined && (
        <div class="columns">
          <Panel title="Timeline">
            <TimelineOf record={undefined} log={log} />
          </Panel>
          <Panel title="Details">
            <Facts
              rows={[
                [
                  'Agent',
                  first.lineage.agent_id === null ? (
                    agentName(first.lineage)
                  ) : (
                    <AgentLink key="agent" agent={first.lineage} />
                  ),
                ],
                ['ID', <Id key="id" id={id} />],
              ]}
            />
          </Panel>
        </div>
      )}
    </article>
  );
}

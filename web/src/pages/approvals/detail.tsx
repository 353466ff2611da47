/** A request for an approval: who, what, with which arguments, by which rule, and how long it waits. */
import { useEffect } from 'preact/hooks';
import type { Approval } from '../../base/api-types.ts';
import { agentName, dateTime, money, shortTime } from '../../base/format.ts';
import { queryOf } from '../../base/request.ts';
import { call } from '../../session/session.ts';
import { activeHalts, pendingApprovals } from '../../standing/standing.ts';
import { CopyButton } from '../../ui/dialog.tsx';
import { Actor, AgentLink, Ago, Empty, Facts } from '../../ui/names.tsx';
import { useResource } from '../../ui/resource.ts';
import { opPath } from '../operations/op-row.tsx';
import { policyPath } from '../policies/paths.ts';
import { askDecision } from './decide.tsx';
import { type Argument, diffOf, lastApproved } from './diff.ts';
import { TimeLeft } from './time-left.tsx';

/** Reads recently approved requests, used or not. */
async function readApproved(orgId: string): Promise<readonly Approval[]> {
  const pages = await Promise.all(
    ['used', 'approved'].map((state) =>
      call('GET', `/api/v1/approvals${queryOf({ state, org_id: orgId, per_page: 500 })}`),
    ),
  );
  return pages.flatMap(({ approvals }) => approvals);
}

type DetailProps = {
  readonly id: string;
  /** The keys that decide are told what is shown. */
  readonly onShown: (approval: Approval | undefined, reload: () => void) => void;
};

export function ApprovalDetail({ id, onShown }: DetailProps) {
  const waits = pendingApprovals.value.find((each) => each.id === id);
  const { data, error, reload } = useResource<Approval>(
    `${id} ${waits?.changed_at} ${activeHalts.value.length}`,
    async () => (await call('GET', `/api/v1/approvals/${encodeURIComponent(id)}`)).approval,
  );
  const shown = data?.id === id ? data : waits;
  useEffect(() => {
    onShown(shown, reload);
    return () => onShown(undefined, reload);
  }, [shown?.id, shown?.state, shown?.changed_at]);
  if (shown === undefined) return <Empty>{error || 'Loading…'}</Empty>;
  return <Shown approval={shown} reload={reload} />;
}

function Shown({ approval, reload }: { readonly approval: Approval; readonly reload: () => void }) {
  const { data: approved } = useResource(`approved ${approval.agent.org_id}`, () =>
    readApproved(approval.agent.org_id),
  );
  const before = approved && lastApproved(approval, approved);
  const isOpen = approval.state === 'pending';
  return (
    <article class="approval">
      <header>
        <p class="hint">
          <AgentLink agent={approval.agent} /> asks
        </p>
        <h2 class="mono-title">
          {approval.action} <bdi class="resource">{approval.resource}</bdi>
        </h2>
        <p>
          <TimeLeft approval={approval} /> {approval.reason !== '' && <span>{approval.reason}</span>}
        </p>
        {approval.limit !== null && (
          <p class="hint">
            {`Raises limit ${approval.limit.id} of this ${approval.limit.per} (${approval.limit.key}) by ${approval.step}: `}
            {`${approval.limit.used} of ${approval.limit.max} ${approval.limit.unit} are used.`}
          </p>
        )}
        {isOpen && (
          <div class="decide">
            <button type="button" class="solid good" onClick={() => askDecision(approval, 'approve', reload)}>
              Approve <Key letter="A" />
            </button>
            <button type="button" class="danger" onClick={() => askDecision(approval, 'deny', reload)}>
              Deny <Key letter="D" />
            </button>
          </div>
        )}
      </header>
      <Arguments rows={diffOf(approval, before)} before={before} isRead={approved !== undefined} />
      <Decisions approval={approval} />
      <ApprovalFacts approval={approval} />
    </article>
  );
}

/** No part of the button's name. */
const Key = ({ letter }: { readonly letter: string }) => (
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: it cannot have the focus
  <kbd aria-hidden="true">{letter}</kbd>
);

type ArgumentsProps = {
  readonly rows: readonly Argument[];
  readonly before: Approval | undefined;
  readonly isRead: boolean;
};

function Arguments({ rows, before, isRead }: ArgumentsProps) {
  const differing = rows.filter(({ kind }) => kind !== 'same').length;
  return (
    <section aria-label="Arguments">
      <h3>Arguments</h3>
      {isRead && (
        <p class="hint">
          {before === undefined ? (
            'Nothing like it was approved before.'
          ) : (
            <>
              {differing === 0 ? 'The same as' : `${differing === 1 ? '1 difference' : `${differing} differences`} to`}{' '}
              what was <a href={`/approvals/${encodeURIComponent(before.id)}`}>approved last</a>,{' '}
              <Ago at={before.changed_at} />, for {agentName(before.agent)}.
            </>
          )}
        </p>
      )}
      <table class="arguments">
        <thead class="sr-only">
          <tr>
            <th scope="col">Argument</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ path, now, before: old, kind }) => (
            <tr key={path} class={kind}>
              <th scope="row">
                <bdi>{path.replace(/^attributes\./, '')}</bdi>
              </th>
              <td>
                {old !== undefined && kind !== 'same' && (
                  <del>
                    <span class="sr-only">before: </span>
                    {old}
                  </del>
                )}
                {now !== undefined && (kind === 'same' ? <span>{now}</span> : <ins>{now}</ins>)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

const Decisions = ({ approval: { decisions, min } }: { readonly approval: Approval }) =>
  decisions.length === 0 ? null : (
    <section aria-label="Decisions">
      <h3>Decisions{min > 1 && ` (${min} needed)`}</h3>
      <ul class="plain-list">
        {decisions.map(({ decision, by, reason, at }) => (
          <li key={`${by} ${at}`}>
            <span class={`state ${decision === 'approve' ? 'approved' : 'denied'}`}>
              {decision === 'approve' ? 'approved' : 'denied'}
            </span>{' '}
            by <Actor name={by} />, {shortTime(at)}: <bdi>{reason}</bdi>
          </li>
        ))}
      </ul>
    </section>
  );

const ApprovalFacts = ({ approval }: { readonly approval: Approval }) => (
  <Facts
    rows={[
      [
        approval.limit === null ? 'Rule' : 'Limit',
        <a key="rule" href={policyPath(approval.policy, approval.rule_id)}>
          {`${approval.policy} · ${approval.limit?.id ?? approval.rule_id}`}
        </a>,
      ],
      approval.op_id !== null && [
        'Operation',
        <a key="op" href={opPath({ opId: approval.op_id, orgId: approval.agent.org_id, home: undefined })}>
          timeline
        </a>,
      ],
      ['Estimate', money(approval.estimated_cost_usd)],
      [
        'Approvers',
        approval.approvers.length === 0 ? 'any credential with admin scope' : approval.approvers.join(', '),
      ],
      approval.min > 1 && ['Needed', `${approval.min} different approvers`],
      [
        'Good for',
        approval.valid_secs === null ? 'one use' : `${Math.round(approval.valid_secs / 60)} minutes after the approval`,
      ],
      ['Asked', dateTime(approval.requested_at)],
      ['Expires', dateTime(approval.expires_at)],
      approval.cancel_reason !== null && ['Cancelled', approval.cancel_reason],
      [
        'Digest',
        <span key="digest" class="digest">
          <code>{approval.digest}</code> <CopyButton text={approval.digest} label="Copy digest" />
        </span>,
      ],
    ]}
  />
);

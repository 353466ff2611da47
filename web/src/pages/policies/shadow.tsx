/** The set of policies that is tried beside the one in force: what it would decide otherwise, rule by rule. */
import type { PolicyShadow } from '../../base/api-types.ts';
import { count, dateTime, plural } from '../../base/format.ts';
import { Problem, queryOf } from '../../base/request.ts';
import { call, can } from '../../session/session.ts';
import { DataTable } from '../../ui/data-table.tsx';
import { ask } from '../../ui/dialog.tsx';
import { Actor, Ago, Empty, Panel, State } from '../../ui/names.tsx';
import { useResource } from '../../ui/resource.ts';

const RENEW_MS = 5_000;

type Change = PolicyShadow['changes'][number];

/** Null: there is none, or it is not for who looks. */
async function readShadow(): Promise<PolicyShadow | null> {
  try {
    return await call('GET', '/api/v1/policies/shadow');
  } catch (problem) {
    if (problem instanceof Problem && [403, 404].includes(problem.status)) return null;
    throw problem;
  }
}

export function ShadowPanel() {
  const { data: shadow, reload } = useResource('shadow', readShadow, { everyMs: RENEW_MS });
  if (shadow === undefined || shadow === null) return null;
  const { version, expires_at: expiresAt, since, by, checks, differing, errors, changes } = shadow;
  return (
    <Panel
      title="Shadow"
      more={
        <div class="actions">
          <a class="button" href={auditOf()}>
            All differences in Audit
          </a>
          {can('admin') && (
            <button type="button" onClick={() => askStop(reload)}>
              End the shadow
            </button>
          )}
        </div>
      }
    >
      <p class="hint pad">
        Version <code title={version}>{version.slice(0, 12)}</code> decides nothing. Started <Ago at={since} /> by{' '}
        <Actor name={by} />, it ends {dateTime(expiresAt)}. Of {plural(checks, 'check')} it would decide{' '}
        <strong>{count(differing)}</strong> otherwise{errors > 0 && `; on ${count(errors)} it failed`}.
      </p>
      {changes.length === 0 ? (
        <Empty>It decides every check as the set in force does.</Empty>
      ) : (
        <DataTable
          label="What the shadow decides otherwise"
          rows={changes}
          keyOf={(change) => JSON.stringify(change)}
          columns={[
            { title: 'Rule', isName: true, cell: nameOf },
            { title: 'In force', cell: ({ from }) => <State word={from} /> },
            { title: 'Shadow', cell: ({ to }) => <State word={to} /> },
            { title: 'Checks', class: 'number', cell: (change) => <a href={auditOf(change)}>{count(change.count)}</a> },
          ]}
        />
      )}
    </Panel>
  );
}

const nameOf = ({ policy, rule_id: rule }: Change) =>
  rule === null ? (
    <span class="hint">no rule</span>
  ) : (
    <span class="mono">
      <bdi>{policy}</bdi> · <bdi>{rule}</bdi>
    </span>
  );

/** A check that waits has no decision in the log yet, by which it could be found. */
const auditOf = (change?: Change): string =>
  `/audit${queryOf({ shadow: 'differs', ...(change !== undefined && change.from !== 'pending' && { decision: change.from }) })}`;

const askStop = (reload: () => Promise<void>): void =>
  ask({
    title: 'End the shadow?',
    text: 'What it has counted is in the audit log; no check is compared any more.',
    confirm: 'End it',
    isHarmless: true,
    onConfirm: async () => {
      await call('DELETE', '/api/v1/policies/shadow');
      await reload();
    },
  });

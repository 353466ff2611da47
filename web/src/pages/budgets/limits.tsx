/** Counts of the limits of policies, the fullest first. */
import type { LimitStatus } from '../../base/api-types.ts';
import { count, dateTime, money, plural } from '../../base/format.ts';
import { NEAR } from '../../standing/alert.ts';
import { DataTable } from '../../ui/data-table.tsx';
import { OrgMark, Panel, Tag } from '../../ui/names.tsx';
import { readAll } from '../../ui/read.ts';
import { useResource } from '../../ui/resource.ts';

const RENEW_MS = 10_000;
/** Nobody reads more than that. */
const MAX_SHOWN = 50;

const amount = ({ unit }: LimitStatus, value: number): string => (unit === 'usd' ? money(value) : count(value));

/** Nothing where no policy has limits. */
export function LimitsPanel({ orgId }: { readonly orgId: string }) {
  const { data = [] } = useResource<readonly LimitStatus[]>(
    `limits ${orgId}`,
    () => readAll<LimitStatus>('/api/v1/limits', 'limits', { org_id: orgId }, 1),
    { everyMs: RENEW_MS, settleMs: 200 },
  );
  if (data.length === 0) return null;
  return (
    <Panel title="Limits" class="scroll">
      <DataTable
        label="Limits"
        rows={data.slice(0, MAX_SHOWN)}
        keyOf={(row) => `${row.policy} ${row.id} ${row.org_id} ${row.key}`}
        columns={[
          {
            title: 'Counts for',
            isName: true,
            cell: (row) => (
              <span class="agent">
                <OrgMark org={row.org_id} />
                <bdi>{row.key}</bdi>
              </span>
            ),
          },
          { title: 'Per', cell: ({ per }) => <Tag>{per}</Tag> },
          { title: 'Limit', cell: ({ policy, id }) => `${id} (${policy})` },
          { title: 'Used', class: 'gauge-cell', cell: (row) => <LimitGauge row={row} /> },
          {
            title: 'Resets',
            cell: (row) =>
              row.resets_at !== null ? dateTime(row.resets_at) : row.used === 0 ? '–' : `with the ${row.per}`,
          },
        ]}
      />
      {data.length > MAX_SHOWN && <p class="empty">and {plural(data.length - MAX_SHOWN, 'key')} with more room.</p>}
    </Panel>
  );
}

function LimitGauge({ row }: { readonly row: LimitStatus }) {
  const { used, reserved, max, raised, unit } = row;
  const part = Math.min(1, used / max);
  const kept = Math.min(1 - part, reserved / max);
  const level = part >= 1 ? 'over' : part + kept >= NEAR ? 'near' : 'fine';
  const words = `${amount(row, used)} of ${amount(row, max)}`;
  return (
    <div class={`gauge ${level}`} title={raised > 0 ? `raised by ${amount(row, raised)}` : undefined}>
      <span class="gauge-words">
        <b class="number">{amount(row, used)}</b>
        <span class="hint">
          {` of ${amount(row, max)}`}
          {unit === 'usd' ? '' : ` ${unit}`}
        </span>
      </span>
      {/* biome-ignore lint/a11y/useSemanticElements: the browser's own has one part, and this two */}
      <div
        class="track"
        role="meter"
        aria-label="Used"
        aria-valuemin={0}
        aria-valuemax={max}
        aria-valuenow={Math.min(used, max)}
        aria-valuetext={words}
      >
        <span class="spent" style={{ width: `${part * 100}%` }} />
        <span class="reserved" style={{ width: `${kept * 100}%` }} />
      </div>
    </div>
  );
}

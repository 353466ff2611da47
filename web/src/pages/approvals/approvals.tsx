/** The inbox of requests for an approval: the keyboard first, and on a phone too. */
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { Approval } from '../../base/api-types.ts';
import { agentName, plural } from '../../base/format.ts';
import { boundOrg } from '../../session/session.ts';
import { isStandingRead, pendingApprovals } from '../../standing/standing.ts';
import { isAsking } from '../../ui/dialog.tsx';
import { SelectField } from '../../ui/fields.tsx';
import { useMedia } from '../../ui/media.ts';
import { Empty, OrgMark, PageHead, Parts } from '../../ui/names.tsx';
import { OrgFilter } from '../../ui/org-filter.tsx';
import { pageReader } from '../../ui/read.ts';
import { usePages } from '../../ui/resource.ts';
import { navigate, place, setQuery } from '../../ui/router.ts';
import { askDecision } from './decide.tsx';
import { ApprovalDetail } from './detail.tsx';
import { TimeLeft } from './time-left.tsx';

const STATES = ['pending', 'approved', 'denied', 'expired', 'cancelled', 'used'];

/** Pending approvals are known already; the others are read. */
function useList(state: string, orgId: string) {
  const isPending = state === 'pending';
  const pages = usePages<Approval>(
    `approvals ${state} ${orgId}`,
    pageReader('/api/v1/approvals', 'approvals', { state, org_id: orgId }),
    { isOff: isPending, settleMs: 200 },
  );
  const waiting = pendingApprovals.value.filter(({ agent }) => orgId === '' || agent.org_id === orgId);
  const isRead = isPending ? isStandingRead.value || waiting.length > 0 : pages.data !== undefined;
  return { pages, rows: isPending ? waiting : pages.rows, isRead };
}

export function ApprovalsPage({ id }: { readonly id: string | undefined }) {
  const { query } = place.value;
  const state = query.get('state') ?? 'pending';
  const orgId = query.get('org_id') ?? '';
  const { pages, rows, isRead } = useList(state, boundOrg() === null ? orgId : '');
  const isWide = useMedia('(min-width: 1000px)');
  const shownId = id ?? (isWide ? rows[0]?.id : undefined);
  const shown = useRef<{ approval: Approval | undefined; reload: () => void }>({
    approval: undefined,
    reload: () => undefined,
  });
  const onShown = useCallback((approval: Approval | undefined, reload: () => void) => {
    shown.current = { approval, reload };
  }, []);
  useKeys(rows, shownId, shown);
  const search = query.toString() === '' ? '' : `?${query}`;
  return (
    <div class={`page wide ${shownId === undefined ? '' : 'has-detail'}`}>
      <PageHead
        title="Approvals"
        note={
          <span class="keys-hint">
            <kbd>J</kbd> <kbd>K</kbd> move · <kbd>A</kbd> yes · <kbd>D</kbd> no
          </span>
        }
      >
        <Permission />
        <OrgFilter value={orgId} onValue={(value) => setQuery({ org_id: value.trim() })} />
        <SelectField
          label="State"
          value={state}
          onValue={(value) => setQuery({ state: value === 'pending' ? '' : value })}
          options={STATES.map((each) => [each, each] as const)}
        />
      </PageHead>
      <div class="inbox">
        <section class="panel inbox-list" aria-label="Requests">
          {rows.length === 0 && (
            <Empty>
              {!isRead
                ? pages.error || 'Loading…'
                : state === 'pending'
                  ? 'Nothing waits for an approval.'
                  : `No ${state} requests.`}
            </Empty>
          )}
          <ul>
            {rows.map((approval) => (
              <li key={approval.id}>
                <a
                  href={`/approvals/${encodeURIComponent(approval.id)}${search}`}
                  aria-current={approval.id === shownId}
                >
                  <span class="inbox-line">
                    <span class="action clip">{approval.action}</span>
                    <TimeLeft approval={approval} />
                  </span>
                  <bdi class="mono clip">{approval.resource}</bdi>
                  <span class="hint clip">
                    <OrgMark org={approval.agent.org_id} />
                    <Parts text={agentName(approval.agent)} />
                  </span>
                </a>
              </li>
            ))}
          </ul>
          {pages.hasMore && (
            <button type="button" class="more" onClick={pages.more}>
              Load more
            </button>
          )}
        </section>
        {shownId !== undefined && (
          <section class="panel inbox-detail" aria-label="Request">
            {id !== undefined && (
              <a class="back" href={`/approvals${search}`}>
                All requests
              </a>
            )}
            <ApprovalDetail key={shownId} id={shownId} onShown={onShown} />
          </section>
        )}
        {shownId === undefined && isWide && rows.length > 0 && <Empty>{plural(rows.length, 'request')}</Empty>}
      </div>
    </div>
  );
}

type Shown = { readonly current: { readonly approval: Approval | undefined; readonly reload: () => void } };

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable]') !== null;

function useKeys(rows: readonly Approval[], shownId: string | undefined, shown: Shown): void {
  const latest = useRef({ rows, shownId });
  latest.current = { rows, shownId };
  useEffect(() => {
    const move = (by: number): void => {
      const { rows: all, shownId: at } = latest.current;
      const here = all.findIndex(({ id }) => id === at);
      const next = all[Math.max(0, Math.min(all.length - 1, here + by))];
      if (next !== undefined) navigate(`/approvals/${encodeURIComponent(next.id)}${location.search}`);
    };
    const press = (event: KeyboardEvent): void => {
      if (isAsking() || isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      const { approval, reload } = shown.current;
      const key = event.key.toLowerCase();
      if (key === 'j') move(1);
      else if (key === 'k') move(-1);
      else if ((key === 'a' || key === 'd') && approval?.state === 'pending')
        askDecision(approval, key === 'a' ? 'approve' : 'deny', reload);
      else return;
      event.preventDefault();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
}

/** Asks whether the browser may tell of new requests while nobody looks. */
function Permission() {
  const [permission, setPermission] = useState('Notification' in window ? Notification.permission : 'denied');
  if (permission !== 'default') return null;
  return (
    <button type="button" onClick={() => void Notification.requestPermission().then(setPermission)}>
      Notify me of new ones
    </button>
  );
}

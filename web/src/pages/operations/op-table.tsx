/**
 * Operations as they happen: only the rows in view are drawn, and they hold still under a hand that is about to act.
 */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { count, plural } from '../../base/format.ts';
import { knowledgeOfOps, model, opsVersion, seconds } from '../../live/live.ts';
import type { Op } from '../../live/op.ts';
import { WORDS } from '../../live/op.ts';
import type { OpFilter } from '../../live/op-filter.ts';
import { countsOf } from '../../live/ops-model.ts';
import { can } from '../../session/session.ts';
import { useHold } from '../../ui/hold.ts';
import { useMedia } from '../../ui/media.ts';
import { useVirtualRows } from '../../ui/virtual-rows.ts';
import { OpRow } from './op-row.tsx';

const COLUMNS = ['Action', 'Agent', 'State', 'Spent', 'Age'];
/** However many come, the rows take new places no oftener: faster than that nobody can read. */
const MOVE_EVERY_MS = 1_000;

/** Shown rows stay where they are; newer ones wait. After a new snapshot the same are new values. */
const keepPlaces = (shown: readonly Op[]): readonly Op[] => shown.map((op) => model.get(op.key) ?? op);

type Shown = { readonly key: string; readonly ops: readonly Op[]; readonly movedAtMs: number };

/** The rows to show, in their places, and how many more wait to be shown. */
function usePlaces(filter: OpFilter, isHeld: () => boolean) {
  opsVersion.value;
  seconds.value;
  const wanted = useSignal(0);
  const key = `${JSON.stringify(filter)} ${wanted.value}`;
  const last = useRef<Shown>({ key: '', ops: [], movedAtMs: -Infinity });
  const found = model.list(filter);
  const { isReading } = knowledgeOfOps();
  const isSame = last.current.key === key && last.current.ops.length > 0;
  const nowMs = performance.now();
  const mayMove = !isSame || isReading || (!isHeld() && nowMs - last.current.movedAtMs >= MOVE_EVERY_MS);
  const ops = mayMove ? found : keepPlaces(last.current.ops);
  last.current = { key, ops, movedAtMs: mayMove ? nowMs : last.current.movedAtMs };
  const here = ops.filter((op) => model.get(op.key) === op).length;
  return {
    found,
    ops,
    waiting: !mayMove && isHeld() ? Math.max(0, found.length - here) : 0,
    showNewest: () => {
      wanted.value += 1;
    },
  };
}

type TableProps = { readonly filter: OpFilter; readonly label: string; readonly children?: ComponentChildren };

export function OpTable({ filter, label, children }: TableProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const isHeld = useHold(scroller);
  const { found, ops, waiting, showNewest } = usePlaces(filter, isHeld);
  const isNarrow = useMedia('(max-width: 760px)');
  const rows = useVirtualRows({
    count: ops.length,
    scroller,
    rowHeightPx: isNarrow ? 124 : 52,
    keyOf: (at) => ops[at]?.key ?? '',
  });
  const knowledge = knowledgeOfOps();
  useEffect(() => {
    if (scroller.current !== null) scroller.current.scrollTop = 0;
  }, [JSON.stringify(filter)]);
  const toNewest = (): void => {
    if (scroller.current !== null) scroller.current.scrollTop = 0;
    showNewest();
  };
  return (
    <>
      <div class="list-head">
        <p class="summary">{summaryText(found, knowledge.isLive, knowledge.isKnown)}</p>
        {waiting > 0 && (
          <button type="button" class="held" onClick={toNewest}>
            Show {plural(waiting, 'new operation')}
          </button>
        )}
        {children}
      </div>
      <section
        class={`panel ops-scroll ${knowledge.isLive ? '' : 'stale'}`}
        ref={scroller}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
        tabIndex={0}
        aria-label={label}
      >
        <table class="ops" aria-label={label} aria-rowcount={ops.length + 1}>
          <thead>
            <tr>
              {COLUMNS.map((column) => (
                <th key={column} scope="col" class={column === 'Age' || column === 'Spent' ? 'number' : ''}>
                  {column}
                </th>
              ))}
              {can('write') && <th scope="col">Control</th>}
            </tr>
          </thead>
          <tbody>
            <Spacer px={rows.abovePx} />
            {rows.items.map(({ index }) => {
              const op = ops[index];
              if (op === undefined) return null;
              const isHere = model.get(op.key) === op;
              return (
                <OpRow
                  key={op.key}
                  op={op}
                  at={index}
                  isGone={!isHere && !knowledge.isReading}
                  isUnknown={!isHere && knowledge.isReading}
                />
              );
            })}
            <Spacer px={rows.belowPx} />
          </tbody>
        </table>
        {ops.length === 0 && <p class="empty">{emptyText(filter, knowledge.isReading, knowledge.isKnown)}</p>}
      </section>
    </>
  );
}

const Spacer = ({ px }: { readonly px: number }) =>
  px > 0 ? (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: it cannot have the focus
    <tr class="spacer" aria-hidden="true">
      <td style={{ height: `${px}px` }} />
    </tr>
  ) : null;

function summaryText(found: readonly Op[], isLive: boolean, isKnown: boolean): string {
  if (!isKnown) return model.size === 0 ? '' : `Loading… ${plural(model.size, 'operation')} so far`;
  const { counts, asked } = countsOf(found);
  return [
    found.length === model.size
      ? plural(model.size, 'operation')
      : `${count(found.length)} of ${plural(model.size, 'operation')}`,
    ...WORDS.filter((word) => counts[word] > 0).map((word) => `${count(counts[word])} ${word}`),
    ...(asked > 0 ? [`${count(asked)} not yet confirmed`] : []),
    ...(isLive ? [] : ['as of when the connection was lost']),
    ...(model.dropped > 0 ? [`${count(model.dropped)} older ones not shown`] : []),
  ].join(' · ');
}

/** Why there is no row. */
function emptyText({ q = '' }: OpFilter, isReading: boolean, isKnown: boolean): string {
  if (isReading) return 'Loading operations…';
  if (!isKnown) return 'Not connected. Operations appear here when the connection is back.';
  if (model.size === 0) return 'No operations. They appear here as soon as an agent asks to act.';
  const hint = q.includes('/') ? ' With a slash, enter full names from the left: org / team / agent.' : '';
  return `No operations match the filter.${hint} Finished ones are kept for a minute; the audit log has all.`;
}

/** Draws only those rows of a long list that can be seen: ten thousand cost as little as fifty. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type VirtualItem,
  Virtualizer,
} from '@tanstack/virtual-core';
import type { RefObject } from 'preact';
import { useLayoutEffect, useReducer, useState } from 'preact/hooks';

const OVERSCAN_ROWS = 6;

type Options = {
  readonly count: number;
  readonly scroller: RefObject<HTMLElement | null>;
  readonly rowHeightPx: number;
  readonly keyOf: (at: number) => string;
};

export type VirtualRows = {
  readonly items: readonly VirtualItem[];
  /** How much room the rows take that are not drawn. */
  readonly abovePx: number;
  readonly belowPx: number;
};

export function useVirtualRows({ count, scroller, rowHeightPx, keyOf }: Options): VirtualRows {
  const [, redraw] = useReducer((times: number, _: undefined) => times + 1, 0);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeightPx,
    getItemKey: keyOf,
    overscan: OVERSCAN_ROWS,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => redraw(undefined),
  };
  const [rows] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(options));
  rows.setOptions(options);
  useLayoutEffect(() => rows._didMount(), []);
  useLayoutEffect(() => rows._willUpdate());
  useLayoutEffect(() => rows.measure(), [rowHeightPx]);
  const items = rows.getVirtualItems();
  const last = items.at(-1);
  return {
    items,
    abovePx: items[0]?.start ?? 0,
    belowPx: last === undefined ? count * rowHeightPx : Math.max(0, rows.getTotalSize() - last.end),
  };
}

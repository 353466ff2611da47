/** Data that a page reads on request: kept while it is read again, and read again when the gateway is back. */
import { useSignalEffect } from '@preact/signals';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { mayPass, messageOf, Problem } from '../base/request.ts';
import { retryDelayMs } from '../base/retry-delay.ts';
import { connections, onEvent } from '../live/live.ts';

const AFTER_EVENT_MS = 300;

export type Resource<T> = {
  readonly data: T | undefined;
  /** Why it could not be read last; '' where it could. */
  readonly error: string;
  readonly status: number;
  readonly isReading: boolean;
  readonly reload: () => Promise<void>;
};

type Options = {
  /** Read again so often, while the page is seen. */
  readonly everyMs?: number;
  /** Nothing is read before there is something to ask for. */
  readonly isOff?: boolean;
  /** How long typing may go on before its result is asked for. */
  readonly settleMs?: number;
};

type State<T> = { readonly key: string; readonly data: T | undefined; readonly error: string; readonly status: number };

/**
 * Reads what `load` returns whenever `key` is another. Answers to older questions are dropped; a failure that may pass
 * is tried again.
 */
export function useResource<T>(key: string, load: () => Promise<T>, options: Options = {}): Resource<T> {
  const { everyMs, isOff = false, settleMs = 0 } = options;
  const [state, setState] = useState<State<T>>({ key, data: undefined, error: '', status: 0 });
  const [isReading, setReading] = useState(!isOff);
  const latest = useRef({
    generation: 0,
    load,
    attempts: 0,
    timer: undefined as ReturnType<typeof setTimeout> | undefined,
  });
  latest.current.load = load;

  const read = useCallback(async (): Promise<void> => {
    const mine = latest.current;
    clearTimeout(mine.timer);
    mine.generation += 1;
    const { generation } = mine;
    setReading(true);
    try {
      const data = await mine.load();
      if (generation !== mine.generation) return;
      mine.attempts = 0;
      setState({ key, data, error: '', status: 200 });
    } catch (problem) {
      if (generation !== mine.generation) return;
      if (!(problem instanceof Problem)) throw problem;
      setState((before) => ({
        key,
        data: before.key === key ? before.data : undefined,
        error: messageOf(problem),
        status: problem.status,
      }));
      if (mayPass(problem)) mine.timer = setTimeout(() => void read(), retryDelayMs(++mine.attempts));
    } finally {
      if (generation === mine.generation) setReading(false);
    }
  }, [key]);

  useEffect(() => {
    if (isOff) return undefined;
    const mine = latest.current;
    mine.timer = setTimeout(() => void read(), settleMs);
    return () => {
      mine.generation += 1;
      clearTimeout(mine.timer);
    };
  }, [read, isOff]);
  useEffect(() => {
    if (everyMs === undefined || isOff) return undefined;
    const timer = setInterval(() => !document.hidden && void read(), everyMs);
    return () => clearInterval(timer);
  }, [read, everyMs, isOff]);
  useReconnect(() => !isOff && void read());

  return { data: state.data, error: state.error, status: state.status, isReading, reload: read };
}

/** Calls the listener when the stream is open again, not when it opens first. */
function useReconnect(listener: () => void): void {
  const seen = useRef(connections.peek());
  const latest = useRef(listener);
  latest.current = listener;
  useSignalEffect(() => {
    const now = connections.value;
    if (now === seen.current) return;
    const isFirst = seen.current === 0;
    seen.current = now;
    if (!isFirst) latest.current();
  });
}

/** Calls the listener soon after events of this kind, once for however many come together. */
export function useEvents(kind: string, listener: () => void): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onEvent(({ event_type }) => {
      if (event_type !== kind) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        latest.current();
      }, AFTER_EVENT_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [kind]);
}

export type Page<T> = { readonly rows: readonly T[]; readonly next: string | null; readonly whole: any };

export type Pages<T> = Resource<Page<T>> & {
  readonly rows: readonly T[];
  readonly hasMore: boolean;
  readonly isReadingMore: boolean;
  readonly more: () => Promise<void>;
};

const MAX_PER_PAGE = 1_000;

/**
 * A list that is read page by page: read again, it has as many rows as before, so that nobody loses their place.
 * `load` gets the cursor and the number of rows that are wanted.
 */
export function usePages<T>(
  key: string,
  load: (cursor: string | undefined, perPage: number) => Promise<Page<T>>,
  options: Options & { readonly perPage?: number } = {},
): Pages<T> {
  const { perPage = 100 } = options;
  const wanted = useRef({ key, count: perPage });
  if (wanted.current.key !== key) wanted.current = { key, count: perPage };
  const [isReadingMore, setReadingMore] = useState(false);
  const read = async (): Promise<Page<T>> => {
    const { count } = wanted.current;
    let page = await load(undefined, Math.min(count, MAX_PER_PAGE));
    while (page.next !== null && page.rows.length < count) {
      const further = await load(page.next, Math.min(count - page.rows.length, MAX_PER_PAGE));
      page = { ...further, rows: [...page.rows, ...further.rows] };
    }
    return page;
  };
  const resource = useResource(key, read, options);
  const more = async (): Promise<void> => {
    if (isReadingMore) return;
    setReadingMore(true);
    wanted.current.count = (resource.data?.rows.length ?? 0) + perPage;
    await resource.reload();
    setReadingMore(false);
  };
  return {
    ...resource,
    rows: resource.data?.rows ?? [],
    hasMore: (resource.data?.next ?? null) !== null,
    isReadingMore,
    more,
  };
}

/** Notices: lines that come, are counted while they come again, and go away by themselves. */
import { signal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { messageOf } from '../base/request.ts';

const NOTICE_MS = 6_000;
/** Many at once say no more than a few. */
const MAX_NOTICES = 4;

type Kind = 'info' | 'error';
type Notice = {
  readonly id: number;
  readonly key: string;
  readonly kind: Kind;
  readonly text: ComponentChildren;
  readonly times: number;
};

const notices = signal<readonly Notice[]>([]);
let lastId = 0;

/** Shows the result of an operator's action. A repetition takes the place of the one that is shown. */
export function notify(text: ComponentChildren, kind: Kind = 'info', key = `${kind} ${String(text)}`): void {
  lastId += 1;
  const others = notices.peek().filter((each) => each.key !== key);
  notices.value = [...others, { id: lastId, key, kind, text, times: 1 }].slice(-MAX_NOTICES);
}

/**
 * Something that happens by itself. While its notice is shown, repeats are only counted: a hundred a second would push
 * out all other notices, and a screen reader would read nothing else.
 */
export function notifyOfEvent(text: ComponentChildren, kind: Kind, key: string): void {
  if (notices.peek().some((each) => each.key === key))
    notices.value = notices.peek().map((each) => (each.key === key ? { ...each, times: each.times + 1 } : each));
  else notify(text, kind, key);
}

const dismiss = (id: number): void => {
  notices.value = notices.peek().filter((each) => each.id !== id);
};

/** Runs an action of the operator's, with a notice when it fails. */
export async function attempt(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    notify(messageOf(error), 'error');
    return false;
  }
}

export function Notices() {
  return (
    <div id="notices" class="notices" role="status" aria-live="polite" aria-atomic="false">
      {notices.value.map((notice) => (
        <NoticeLine key={notice.id} notice={notice} />
      ))}
    </div>
  );
}

/** It does not go while it is being read, nor while the page is hidden: work of minutes may end then. */
function NoticeLine({ notice: { id, kind, text, times } }: { readonly notice: Notice }) {
  const isRead = useRef(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const goSoon = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => (isRead.current || document.hidden ? goSoon() : dismiss(id)), NOTICE_MS);
    };
    goSoon();
    return () => clearTimeout(timer);
  }, [id, times]);
  const read = (value: boolean) => () => {
    isRead.current = value;
  };
  return (
    <div
      class={`notice ${kind}`}
      onPointerEnter={read(true)}
      onPointerLeave={read(false)}
      onFocusIn={read(true)}
      onFocusOut={read(false)}
    >
      <span>{text}</span>
      {times > 1 && (
        <span class="times number" aria-live="off">
          {times} times
        </span>
      )}
      <button type="button" class="plain" aria-label="Dismiss" onClick={() => dismiss(id)}>
        ×
      </button>
    </div>
  );
}

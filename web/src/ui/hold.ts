/** Nothing moves under a hand that is about to act: one must not hit Terminate on the wrong row. */
import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

/** The rows keep their places for so long after they were pointed at. */
const HOLD_MS = 4_000;

/** The pointer's last position, on whatever part of the page; '' until then. */
let lastSeenAt = '';
const placeOf = ({ clientX, clientY }: PointerEvent): string => `${clientX} ${clientY}`;
for (const type of ['pointermove', 'pointerdown'] as const)
  document.addEventListener(type, (event) => {
    lastSeenAt = placeOf(event);
  });

/**
 * Answers whether the rows of a list must stay where they are: while the pointer has just moved or rests on what can be
 * pressed, while the keyboard is among them, while a dialog asks about one, and while the list is scrolled.
 */
export function useHold(scroller: RefObject<HTMLElement | null>): () => boolean {
  const pointedAtMs = useRef(-Infinity);
  useEffect(() => {
    const body = scroller.current;
    const move = (event: PointerEvent): void => {
      // Rows that come or move under a resting pointer make such events too: it may have been left where one has signed
      // in.
      if (lastSeenAt !== '' && lastSeenAt !== placeOf(event)) pointedAtMs.current = performance.now();
    };
    // A finger does not move before it presses.
    const press = (): void => {
      pointedAtMs.current = performance.now();
    };
    body?.addEventListener('pointermove', move, true);
    body?.addEventListener('pointerdown', press, true);
    return () => {
      body?.removeEventListener('pointermove', move, true);
      body?.removeEventListener('pointerdown', press, true);
    };
  }, []);
  return () => {
    const body = scroller.current;
    if (body === null) return false;
    return (
      performance.now() - pointedAtMs.current < HOLD_MS ||
      (pointedAtMs.current > -Infinity && body.querySelector('button:hover, a:hover') !== null) ||
      body.querySelector(':focus-visible') !== null ||
      document.querySelector('dialog[open]') !== null ||
      body.scrollTop > 0
    );
  };
}

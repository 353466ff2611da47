/** Nothing moves under a hand that is about to act: one must not hit Terminate on the wrong row. */

/** The rows keep their places for so long after they were pointed at. */
const HOLD_MS = 4_000;

/**
 * Answers whether the rows of a list must stay where they are: while the pointer has just moved or rests on what can be
 * pressed, while the keyboard is among them, while a dialog asks about one, and while the list is scrolled.
 *
 * @param {() => HTMLElement} scroller what scrolls the list
 * @param {HTMLElement} body
 * @returns {() => boolean}
 */
export function holdOf(scroller, body) {
  let pointedAtMs = -Infinity;
  let pointedAt = '';
  body.addEventListener('pointermove', ({ clientX, clientY }) => {
    // Rows that move under a resting pointer make such events too.
    if (pointedAt === `${clientX} ${clientY}`) return;
    pointedAt = `${clientX} ${clientY}`;
    pointedAtMs = performance.now();
  });
  // A finger does not move before it presses.
  body.addEventListener('pointerdown', () => { pointedAtMs = performance.now(); });
  return () => performance.now() - pointedAtMs < HOLD_MS
    || body.querySelector('button:hover, a:hover, :focus-visible') !== null
    || document.querySelector('dialog[open]') !== null
    || scroller().scrollTop > 0;
}

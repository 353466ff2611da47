/** Nothing moves under a hand that is about to act: one must not hit Terminate on the wrong row. */

/** The rows keep their places for so long after they were pointed at. */
const HOLD_MS = 4_000;

/** Where the pointer was last seen, on whatever part of the page; '' until then. */
let lastSeenAt = '';
/** @param {PointerEvent} event */
const placeOf = ({ clientX, clientY }) => `${clientX} ${clientY}`;
for (const type of /** @type {const} */ (['pointermove', 'pointerdown']))
  document.addEventListener(type, (event) => {
    lastSeenAt = placeOf(event);
  });

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
  body.addEventListener('pointermove', (event) => {
    // Rows that come or move under a resting pointer make such events too: it may have been left where one has signed
    // in.
    if (lastSeenAt !== '' && lastSeenAt !== placeOf(event)) pointedAtMs = performance.now();
  });
  // A finger does not move before it presses.
  body.addEventListener('pointerdown', () => {
    pointedAtMs = performance.now();
  });
  return () =>
    performance.now() - pointedAtMs < HOLD_MS ||
    (pointedAtMs > -Infinity && body.querySelector('button:hover, a:hover') !== null) ||
    body.querySelector(':focus-visible') !== null ||
    document.querySelector('dialog[open]') !== null ||
    scroller().scrollTop > 0;
}

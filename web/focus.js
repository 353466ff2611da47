/** Where the keyboard goes on when what had the focus is gone. */

/**
 * The element, or the one of its name that has come in its place when a list was read anew. @param {Element | null |
 * undefined} element
 */
export function standIn(element) {
  if (element?.isConnected === true) return element;
  const name = element?.getAttribute('aria-label') ?? '';
  return name === ''
    ? undefined
    : [...document.querySelectorAll('[aria-label]')].find((other) => other.getAttribute('aria-label') === name);
}

/**
 * @param {Element | null | undefined} element without one, the view as a whole: the keyboard is not sent back to the
 * top of the page
 */
export function focusOn(element) {
  const target = element instanceof HTMLElement ? element : document.getElementById('main');
  target?.focus();
}

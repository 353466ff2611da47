/** Draws only those rows of a long table that can be seen, and reuses them: ten thousand cost as little as fifty. */
import { h } from './dom.js';

const OVERSCAN_ROWS = 8;

/** @template Item, Row */
export class VirtualRows {
  #scroller;
  #options;
  #above = h('tr', { class: 'spacer', 'aria-hidden': 'true' }, h('td'));
  #below = h('tr', { class: 'spacer', 'aria-hidden': 'true' }, h('td'));
  #body;
  /** @type {readonly Item[]} */
  #items = [];
  /** @type {Map<string, { element: HTMLTableRowElement, parts: Row }>} */
  #drawn = new Map();

  /**
   * @param {HTMLElement} scroller
   * @param {HTMLTableSectionElement} body
   * @param {{ rowHeightPx: () => number, keyOf: (item: Item) => string, create: (item: Item) => { element:
   * HTMLTableRowElement, parts: Row }, update: (parts: Row, item: Item) => void }} options
   */
  constructor(scroller, body, options) {
    this.#scroller = scroller;
    this.#body = body;
    this.#options = options;
    body.append(this.#above, this.#below);
    scroller.addEventListener('scroll', () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(scroller);
  }

  /** @param {readonly Item[]} items */
  show(items) {
    this.#items = items;
    this.draw();
  }

  draw() {
    const { rowHeightPx, keyOf, create, update } = this.#options;
    const height = rowHeightPx();
    const first = Math.max(0, Math.floor(this.#scroller.scrollTop / height) - OVERSCAN_ROWS);
    const last = Math.min(
      this.#items.length,
      Math.ceil((this.#scroller.scrollTop + this.#scroller.clientHeight) / height) + OVERSCAN_ROWS,
    );
    const visible = this.#items.slice(first, last);
    const keys = new Set(visible.map(keyOf));
    for (const [key, { element }] of this.#drawn) {
      if (keys.has(key)) continue;
      element.remove();
      this.#drawn.delete(key);
    }
    // A row that stands where it should is not moved: moving would take the focus from its buttons.
    let place = this.#above.nextElementSibling;
    visible.forEach((item, index) => {
      const key = keyOf(item);
      let row = this.#drawn.get(key);
      if (row === undefined) {
        row = create(item);
        this.#drawn.set(key, row);
      }
      if (row.element === place) place = place.nextElementSibling;
      else this.#body.insertBefore(row.element, place);
      row.element.ariaRowIndex = String(first + index + 2);
      update(row.parts, item);
    });
    setHeight(this.#above, first * height);
    setHeight(this.#below, Math.max(0, this.#items.length - last) * height);
  }
}

/** @param {HTMLElement} row @param {number} px */
function setHeight(row, px) {
  const cell = /** @type {HTMLElement} */ (row.firstElementChild);
  cell.style.height = `${px}px`;
  row.hidden = px === 0;
}

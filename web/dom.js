/**
 * Builds the page. Whatever comes from the gateway becomes a text node or an attribute, never markup: an agent may call
 * itself `<img onerror=…>` and is shown under that name.
 */

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Readonly<Record<string, unknown>>} Props */

// C0 and C1 controls but for the line break, marks of writing direction, zero-width characters and invisible tags, line
// and paragraph separators, half surrogates: the same that the command line escapes.
const UNSEEN =
  /(?!\n)[\p{Cc}\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]|\p{Cs}/gu;

/**
 * What hides, or moves its neighbours, is written as JSON has it: a resource called `\u202efdp.exe` does not read
 * `exe.pdf`. @param {string} text
 */
const visible = (text) =>
  text.replace(UNSEEN, (unseen) =>
    Array.from({ length: unseen.length }, (_, at) => `\\u${unseen.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
      '',
    ),
  );

/** The attributes that are there to be read; the others are values, and are kept as they are. */
const READ_OUT = ['title', 'aria-label'];

/**
 * An element. Props that begin with `on` are listeners, `class` and the rest are attributes; `true` sets one without a
 * value, and `false`, null and undefined leave it out.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Props | null} [props]
 * @param {...(Child | readonly Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on'))
      element.addEventListener(name.slice(2).toLowerCase(), /** @type {EventListener} */ (value));
    else
      element.setAttribute(
        name,
        value === true ? '' : READ_OUT.includes(name) ? visible(String(value)) : String(value),
      );
  }
  append(element, children);
  return element;
}

/**
 * @param {Node} parent
 * @param {readonly (Child | readonly Child[])[]} children
 */
function append(parent, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    parent.appendChild(child instanceof Node ? child : document.createTextNode(visible(String(child))));
  }
}

/**
 * @param {Element} parent
 * @param {...(Child | readonly Child[])} children
 */
export function replace(parent, ...children) {
  parent.replaceChildren();
  append(parent, children);
}

/**
 * Writes only what has changed, so that a screen reader and a selection are left alone.
 *
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  const shown = visible(text);
  if (node.textContent !== shown) node.textContent = shown;
}

/**
 * A name of several parts, in one piece. Each part keeps its own direction of writing, so that none moves another from
 * its place.
 *
 * @param {string} text
 * @param {string} separator
 */
export const parts = (text, separator) =>
  h(
    'span',
    null,
    text.split(separator).flatMap((part, index) => [index === 0 ? null : separator, h('bdi', null, part)]),
  );

let nextId = 0;

/**
 * A control under its label, with an optional hint that is read out with it.
 *
 * @param {string} label
 * @param {HTMLInputElement | HTMLSelectElement} control
 * @param {string} [hint]
 */
export function field(label, control, hint) {
  nextId += 1;
  control.id = `field-${nextId}`;
  if (hint !== undefined) control.setAttribute('aria-describedby', `hint-${nextId}`);
  return h(
    'div',
    { class: 'field' },
    h('label', { for: control.id }, label),
    control,
    hint === undefined ? null : h('p', { class: 'hint', id: `hint-${nextId}` }, hint),
  );
}

/**
 * @param {string} text
 * @param {(event: Event) => unknown} onClick
 * @param {Props} [props]
 */
export const button = (text, onClick, props = {}) => h('button', { type: 'button', ...props, onclick: onClick }, text);

/**
 * @param {string} label
 * @param {readonly (readonly [value: string, text: string])[]} options
 * @param {Props} [props]
 */
export const select = (label, options, props = {}) =>
  h(
    'select',
    { 'aria-label': label, ...props },
    options.map(([value, text]) => h('option', { value }, text)),
  );

/**
 * A field for a local time. Without an end its year takes six digits: with the hour that is typed behind it. @param
 * {Props} [props]
 */
export const timeInput = (props = {}) => h('input', { type: 'datetime-local', max: '9999-12-31T23:59', ...props });

/** A field to filter by a name. @param {string} placeholder */
export const searchInput = (placeholder) =>
  h('input', { type: 'search', placeholder, autocomplete: 'off', spellcheck: 'false' });

/** A field for the org that something is made for. @param {string | null} boundTo the only one that may be chosen */
export const orgInput = (boundTo) =>
  h('input', {
    type: 'text',
    autocomplete: 'off',
    spellcheck: 'false',
    value: boundTo ?? '',
    readonly: boundTo !== null,
  });

/**
 * What a view is called, and what may be done there.
 *
 * @param {string} title
 * @param {...(Node | null | false)} actions
 */
export const viewHead = (title, ...actions) =>
  h('div', { class: 'view-head' }, h('h1', null, title), h('div', { class: 'actions' }, actions));

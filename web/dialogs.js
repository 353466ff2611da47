/** Dialogs: a question, a secret that is shown once, a form. */
import { button, h, replace } from './dom.js';
import { focusOn, standIn } from './focus.js';
import { messageOf, notify } from './notices.js';

/** @typedef {import('./notices.js').Said} Said */

/**
 * What had the focus before each dialog was opened; of a dialog over another one, before the first. @type
 * {WeakMap<Element, Element | null>}
 */
const openers = new WeakMap();

/**
 * @param {string} title
 * @param {...(Node | string)} content
 */
function openDialog(title, ...content) {
  const dialog = h('dialog', { 'aria-label': title }, h('h2', null, title), content);
  const below = [...document.querySelectorAll('dialog')].at(-1);
  const opener = below === undefined ? document.activeElement : openers.get(below);
  openers.set(dialog, opener ?? null);
  dialog.addEventListener('close', () => {
    dialog.remove();
    // The browser gives the focus back to what has opened the dialog, but that may be gone.
    if (document.activeElement === document.body) focusOn(standIn(opener));
  });
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Closes the questions of a view that is left. A secret stays: it is shown only once. */
export function closeQuestions() {
  for (const dialog of document.querySelectorAll('dialog'))
    if (dialog.getAttribute('closedby') !== 'none') dialog.close();
}

/**
 * Whether a question about what a view shows may still be asked after something was waited for: the view may be gone,
 * and a second click may have asked already.
 *
 * @param {Element} shown
 */
export const mayAsk = (shown) => shown.isConnected && document.querySelector('dialog[open]') === null;

/**
 * Asks before something that is not easily undone. Resolves with true when the operator means it.
 *
 * @param {{ title: string, text: Said, subject: Said, confirm: string, isHarmless?: boolean }} question
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text, subject, confirm: confirmLabel, isHarmless = false }) {
  return new Promise((resolve) => {
    const cancel = button('Cancel', () => dialog.close(), { autofocus: true });
    const yes = button(
      confirmLabel,
      (event) => {
        // The second half of a double click was meant for what was there before the question.
        if (/** @type {MouseEvent} */ (event).detail <= 1) dialog.close('yes');
      },
      { class: isHarmless ? 'solid' : 'danger solid' },
    );
    const asked = h('div', { id: 'asked' }, h('p', null, text), h('p', { class: 'subject mono' }, subject));
    const dialog = openDialog(title, asked, h('div', { class: 'dialog-actions' }, cancel, yes));
    // Read out with the title: the focus is on a button, which does not name the subject.
    dialog.setAttribute('aria-describedby', asked.id);
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'));
  });
}

/**
 * A secret that the gateway will not show again. It stays until it is dismissed.
 *
 * @param {{ title: string, text: Said, secret: string }} shown
 */
export function showSecret({ title, text, secret }) {
  const value = h('output', { class: 'secret mono', tabindex: '0' }, secret);
  const copy = button('Copy', async () => {
    try {
      await navigator.clipboard.writeText(secret);
      replace(copy, 'Copied');
    } catch {
      // Without TLS there is no clipboard: the operator copies what is selected.
      getSelection()?.selectAllChildren(value);
    }
  });
  const dialog = openDialog(
    title,
    h('p', null, text),
    value,
    h(
      'div',
      { class: 'dialog-actions' },
      copy,
      button('Done', () => dialog.close(), { class: 'solid' }),
    ),
  );
  // A stray Escape must not drop a secret that is shown only once. Both are needed: pressed twice, Escape closes the
  // dialog in spite of the event, and not every browser knows the attribute.
  dialog.setAttribute('closedby', 'none');
  dialog.addEventListener('cancel', (event) => event.preventDefault());
}

/**
 * A form that stays open, with the reason, when what it asks for is refused.
 *
 * @param {{ title: string, fields: readonly Node[], submit: string, onSubmit: () => Promise<unknown> }} options
 */
export function formDialog({ title, fields, submit, onSubmit }) {
  const form = submitForm({
    fields,
    submit,
    onSubmit: async () => {
      await onSubmit();
      dialog.close();
    },
    extra: [button('Cancel', () => dialog.close())],
  });
  const dialog = openDialog(title, form);
}

/**
 * @param {{ fields: readonly Node[], submit: string, onSubmit: () => Promise<unknown>, extra?: readonly Node[] }}
 * options
 */
export function submitForm({ fields, submit, onSubmit, extra = [] }) {
  const error = h('p', { class: 'form-error', role: 'alert' });
  const send = h('button', { type: 'submit', class: 'solid' }, submit);
  const form = h('form', null, fields, error, h('div', { class: 'dialog-actions' }, extra, send));
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    replace(error);
    send.disabled = true;
    try {
      await onSubmit();
    } catch (problem) {
      if (form.isConnected) replace(error, messageOf(problem));
      else notify(messageOf(problem), 'error'); // closed meanwhile, which has taken back nothing
    } finally {
      send.disabled = false;
      // The button lost the focus when it was disabled.
      if (form.isConnected && document.activeElement === document.body) send.focus();
    }
  });
  return form;
}

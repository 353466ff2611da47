/** The door: an API key, or e-mail and password where accounts exist; and the pages behind the links in mails. */
import { Problem, request } from '../api.js';
import { submitForm } from '../dialogs.js';
import { button, field, h, replace } from '../dom.js';
import { notify } from '../notices.js';
import { signInWithKey, signInWithPassword } from '../session.js';

const PASSWORD_HINT = 'At least 12 characters.';
const MAIL_SENT = 'If the account exists, an e-mail is on its way.';

/**
 * @typedef {object} Offer what the gateway offers to who comes in, and what is known of them
 * @property {readonly string[]} methods
 * @property {string} [registration]
 * @property {boolean} [setup_required]
 * @property {boolean} [reset_by_mail]
 * @property {string | undefined} notice
 * @property {'key' | 'account' | undefined} lastKind how the session was opened that has ended
 * @property {string | undefined} email
 * @property {() => void} onSignedIn
 */

/** @param {Offer} offer */
export function signInView(offer) {
  const forms = new SignInForms(offer);
  forms.showFirst();
  return { element: door(forms.card), focus: () => focusFirst(forms.card) };
}

/** One card that shows one of several forms, each with links to others. */
class SignInForms {
  card = h('div', { class: 'card' });
  #offer;
  #hasAccounts;

  /** @param {Offer} offer */
  constructor(offer) {
    this.#offer = offer;
    this.#hasAccounts = offer.methods.includes('password');
  }

  showFirst() {
    const { lastKind, notice, setup_required: isSetupRequired, registration } = this.#offer;
    if (!this.#hasAccounts || lastKind === 'key') this.#showKey(notice);
    else if (isSetupRequired)
      this.#showKey(
        'There are no accounts yet. To make the first, open the setup link that the gateway printed when it started.',
      );
    else if (registration === 'first_account')
      this.#showRegister('Create the owner account', 'There are no accounts yet. The first one becomes the owner.');
    else this.#showPassword(notice);
  }

  /** @param {string | undefined} [message] */
  #showPassword(message) {
    const email = emailInput(this.#offer.email);
    const password = passwordInput('current-password');
    const remember = h('input', { type: 'checkbox' });
    const form = submitForm({
      fields: [
        field('E-mail', email),
        field('Password', password),
        h('label', { class: 'check' }, remember, 'Stay signed in for 30 days'),
      ],
      submit: 'Sign in',
      onSubmit: async () => {
        await signInWithPassword(email.value.trim(), password.value, remember.checked);
        this.#offer.onSignedIn();
      },
    });
    this.#show('Sign in', message, form, [
      this.#offer.reset_by_mail
        ? button('Forgot password?', () => this.#showForgotten(email.value), { class: 'link' })
        : null,
      this.#linkToKey(),
      this.#offer.registration === 'open'
        ? button('Create an account', () => this.#showRegister('Create an account', undefined), { class: 'link' })
        : null,
    ]);
  }

  /** @param {string | undefined} [message] */
  #showKey(message) {
    const key = h('input', { type: 'password', required: true, autocomplete: 'off', spellcheck: 'false' });
    const form = submitForm({
      fields: [field('API key', key, 'You stay signed in for 24 hours. The key itself is not stored.')],
      submit: 'Sign in',
      onSubmit: async () => {
        const text = key.value.trim();
        if (!/^[\x21-\x7e]+$/.test(text))
          throw new Problem(0, { detail: 'This is not an API key: keys contain no spaces or accented letters.' });
        await signInWithKey(text);
        key.value = '';
        this.#offer.onSignedIn();
      },
    });
    this.#show('Sign in', message, form, [this.#hasAccounts ? this.#linkToPassword('Use e-mail and password') : null]);
  }

  /** @param {string} title @param {string | undefined} message */
  #showRegister(title, message) {
    const email = emailInput();
    const password = passwordInput('new-password');
    const form = submitForm({
      fields: [field('E-mail', email), field('Password', password, PASSWORD_HINT)],
      submit: 'Create account',
      onSubmit: async () => {
        await request('POST', '/api/v1/auth/register', {
          body: { email: email.value.trim(), password: password.value },
        });
        await signInWithPassword(email.value.trim(), password.value, false);
        this.#offer.onSignedIn();
      },
    });
    this.#show(title, message, form, [
      this.#linkToKey(),
      this.#offer.registration === 'first_account' ? null : this.#linkToPassword('Sign in'),
    ]);
  }

  /** @param {string} typed what the form before has of it already */
  #showForgotten(typed) {
    const email = emailInput(typed);
    const form = submitForm({
      fields: [field('E-mail', email, 'If the account exists, it gets a link that works for one hour.')],
      submit: 'Send link',
      onSubmit: async () => {
        await request('POST', '/api/v1/auth/password/reset', { body: { email: email.value.trim() } });
        // Not in place of a form that is being filled in by now.
        if (form.isConnected) this.#showPassword(MAIL_SENT);
        else notify(MAIL_SENT);
      },
    });
    this.#show('Reset password', undefined, form, [this.#linkToPassword('Back to sign-in')]);
  }

  #linkToKey() {
    return button('Use an API key', () => this.#showKey(), { class: 'link' });
  }

  /** @param {string} text */
  #linkToPassword(text) {
    return button(text, () => this.#showPassword(), { class: 'link' });
  }

  /**
   * @param {string} title @param {string | undefined} message @param {HTMLFormElement} form @param {readonly (Node |
   * null)[]} links
   */
  #show(title, message, form, links) {
    replace(
      this.card,
      h('h1', null, title),
      message === undefined ? null : h('p', { class: 'note', role: 'status' }, message),
      form,
      h('div', { class: 'links' }, links),
    );
    focusFirst(this.card);
  }
}

/**
 * The page behind the link of an invite, of a reset, or of the first account.
 *
 * @param {{ kind: 'accept-invite' | 'reset-password' | 'setup', token: string, email: string | undefined, onDone: (notice:
 * string, email?: string) => void }} options
 */
export function tokenView({ kind, token, email, onDone }) {
  const words = LINKS[kind];
  const owner = emailInput();
  // What a password manager keeps the new password under.
  const username =
    kind === 'setup' ? [field('E-mail', owner)] : email === undefined ? [] : [field('E-mail', emailInput(email, true))];
  const password = passwordInput('new-password');
  const again = passwordInput('new-password');
  const form = submitForm({
    fields: [...username, field('New password', password, PASSWORD_HINT), field('Confirm password', again)],
    submit: words.submit,
    onSubmit: async () => {
      if (password.value !== again.value) throw new Problem(0, { detail: 'The passwords do not match.' });
      const whose = kind === 'setup' ? owner.value.trim() : email;
      await request('POST', words.path, { body: words.body(token, password.value, whose) });
      onDone(words.done, whose);
    },
  });
  const card = h(
    'div',
    { class: 'card' },
    h('h1', null, words.title),
    form,
    h(
      'div',
      { class: 'links' },
      button('Back to sign-in', () => onDone(''), { class: 'link' }),
    ),
  );
  return { element: door(card), focus: () => focusFirst(card) };
}

const READY = 'Your account is ready. Sign in with the password you just chose.';

/**
 * What each link leads to. @type {Readonly<Record<'accept-invite' | 'reset-password' | 'setup', { title: string, submit:
 * string, done: string, path: string, body: (token: string, password: string, email: string | undefined) => unknown
 * }>>}
 */
const LINKS = {
  'accept-invite': {
    title: 'Accept the invite',
    submit: 'Create account',
    done: READY,
    path: '/api/v1/auth/invite/accept',
    body: (token, password) => ({ invite_token: token, password }),
  },
  'reset-password': {
    title: 'Choose a new password',
    submit: 'Set password',
    done: 'Your password has been changed. Sign in with the new one.',
    path: '/api/v1/auth/password/reset/confirm',
    body: (token, password) => ({ reset_token: token, new_password: password }),
  },
  setup: {
    title: 'Create the owner account',
    submit: 'Create account',
    done: READY,
    path: '/api/v1/auth/register',
    body: (token, password, email) => ({ setup_token: token, email, password }),
  },
};

/** @param {Node} card */
const door = (card) =>
  h(
    'main',
    { class: 'door' },
    h('p', { class: 'brand' }, h('img', { src: '/favicon.svg', alt: '', width: 28, height: 28 }), 'svc-gateway'),
    card,
  );

/** @param {string} [value] @param {boolean} [isFixed] */
const emailInput = (value, isFixed = false) =>
  h('input', { type: 'email', required: true, autocomplete: 'username', value, readonly: isFixed });

/** @param {'current-password' | 'new-password'} autocomplete */
const passwordInput = (autocomplete) => h('input', { type: 'password', required: true, autocomplete });

/** @param {Element} card */
function focusFirst(card) {
  const inputs = [...card.querySelectorAll('input')];
  (inputs.find(({ value, type }) => value === '' && type !== 'checkbox') ?? inputs[0])?.focus();
}

/** The door: an API key, or e-mail and password where accounts exist; and the pages behind the links in mails. */
import { Problem, request } from '../api.js';
import { submitForm } from '../dialogs.js';
import { button, field, h, replace } from '../dom.js';
import { signInWithKey, signInWithPassword } from '../session.js';

const PASSWORD_HINT = 'At least 12 characters.';

/**
 * @param {{ methods: readonly string[], registration?: string, setup_required?: boolean, reset_by_mail?: boolean,
 * notice: string | undefined, lastKind: 'key' | 'account' | undefined, email: string | undefined, onSignedIn: () => void
 * }} options
 */
export function signInView({
  methods,
  registration,
  setup_required: isSetupRequired,
  reset_by_mail: isResetByMail,
  notice,
  lastKind,
  email: knownEmail,
  onSignedIn,
}) {
  const hasAccounts = methods.includes('password');
  const card = h('div', { class: 'card' });
  const page = door(card);

  /** @param {string | undefined} [message] */
  function showPassword(message) {
    const email = emailInput(knownEmail);
    const password = passwordInput('current-password');
    const remember = h('input', { type: 'checkbox' });
    show(
      'Sign in',
      message,
      submitForm({
        fields: [
          field('E-mail', email),
          field('Password', password),
          h('label', { class: 'check' }, remember, 'Stay signed in for 30 days'),
        ],
        submit: 'Sign in',
        onSubmit: async () => {
          await signInWithPassword(email.value.trim(), password.value, remember.checked);
          onSignedIn();
        },
      }),
      [
        isResetByMail ? button('Forgot password?', () => showForgotten(email.value), { class: 'link' }) : null,
        button('Use an API key', () => showKey(), { class: 'link' }),
        registration === 'open'
          ? button('Create an account', () => showRegister('Create an account', undefined), { class: 'link' })
          : null,
      ],
    );
  }

  /** @param {string | undefined} [message] */
  function showKey(message) {
    const key = h('input', { type: 'password', required: true, autocomplete: 'off', spellcheck: 'false' });
    show(
      'Sign in',
      message,
      submitForm({
        fields: [field('API key', key, 'You stay signed in for 24 hours. The key itself is not stored.')],
        submit: 'Sign in',
        onSubmit: async () => {
          const text = key.value.trim();
          if (!/^[\x21-\x7e]+$/.test(text))
            throw new Problem(0, { detail: 'This is not an API key: keys contain no spaces or accented letters.' });
          await signInWithKey(text);
          key.value = '';
          onSignedIn();
        },
      }),
      hasAccounts ? [button('Use e-mail and password', () => showPassword(), { class: 'link' })] : [],
    );
  }

  /** @param {string} title @param {string | undefined} message */
  function showRegister(title, message) {
    const email = emailInput();
    const password = passwordInput('new-password');
    show(
      title,
      message,
      submitForm({
        fields: [field('E-mail', email), field('Password', password, PASSWORD_HINT)],
        submit: 'Create account',
        onSubmit: async () => {
          await request('POST', '/api/v1/auth/register', {
            body: { email: email.value.trim(), password: password.value },
          });
          await signInWithPassword(email.value.trim(), password.value, false);
          onSignedIn();
        },
      }),
      [
        button('Use an API key', () => showKey(), { class: 'link' }),
        registration === 'first_account' ? null : button('Sign in', () => showPassword(), { class: 'link' }),
      ],
    );
  }

  /** @param {string} typed what the form before has of it already */
  function showForgotten(typed) {
    const email = emailInput(typed);
    show(
      'Reset password',
      undefined,
      submitForm({
        fields: [field('E-mail', email, 'If the account exists, it gets a link that works for one hour.')],
        submit: 'Send link',
        onSubmit: async () => {
          await request('POST', '/api/v1/auth/password/reset', { body: { email: email.value.trim() } });
          showPassword('If the account exists, an e-mail is on its way.');
        },
      }),
      [button('Back to sign-in', () => showPassword(), { class: 'link' })],
    );
  }

  /**
   * @param {string} title @param {string | undefined} message @param {HTMLFormElement} form @param {readonly (Node |
   * null)[]} links
   */
  function show(title, message, form, links) {
    replace(
      card,
      h('h1', null, title),
      message === undefined ? null : h('p', { class: 'note', role: 'status' }, message),
      form,
      h('div', { class: 'links' }, links),
    );
    focusFirst(card);
  }

  if (!hasAccounts || lastKind === 'key') showKey(notice);
  else if (isSetupRequired)
    showKey(
      'There are no accounts yet. To make the first, open the setup link that the gateway printed when it started.',
    );
  else if (registration === 'first_account')
    showRegister('Create the owner account', 'There are no accounts yet. The first one becomes the owner.');
  else showPassword(notice);
  return { element: page, focus: () => focusFirst(card) };
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

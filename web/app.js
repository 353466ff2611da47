/** The frame of the dashboard: who is signed in, which view is shown, and whether what is shown is live. */
import { Problem, request, whenUnconfirmed } from './api.js';
import { nowMs } from './clock.js';
import { closeQuestions } from './dialogs.js';
import { button, h, parts, replace, setText } from './dom.js';
import { agentName, SLASH } from './format.js';
import { LiveStream } from './live.js';
import { messageOf, notify, notifyOfEvent } from './notices.js';
import { OpsModel } from './ops-model.js';
import { can, current, restore, signOut, whenEnded, whenRoleChanged } from './session.js';
import { standing } from './standing.js';
import { accountsView } from './views/accounts.js';
import { agentsView } from './views/agents.js';
import { auditView } from './views/audit.js';
import { budgetsView } from './views/budgets.js';
import { keysView } from './views/keys.js';
import { operationsView } from './views/operations.js';
import { operationsLink } from './views/operations-link.js';
import { policiesView } from './views/policies.js';
import { signInView, tokenView } from './views/sign-in.js';

/**
 * @typedef {{ element: HTMLElement, renew?: () => Promise<void>, dispose?: () => void }} View what reads on request is
 * renewed when the stream is back
 */

const root = /** @type {HTMLElement} */ (document.getElementById('app'));
const model = new OpsModel();
/** @type {Set<() => void>} */
const listeners = new Set();
const operations = {
  model,
  status: () => stream?.status ?? 'connecting',
  onChange: (/** @type {() => void} */ listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};
const changed = () => {
  for (const listener of listeners) listener();
};

/**
 * What the gateway offers; asked once, before the first page. @type {{ methods: readonly string[], registration?:
 * string, setup_required?: boolean, reset_by_mail?: boolean }}
 */
let offer = { methods: [] };
/** @type {LiveStream | undefined} */
let stream;
/** @type {View | undefined} */
let view;
/** @type {ReturnType<typeof standing> | undefined} */
let above;
/** Counts pages, of which a view is none: what one of them waited for does not replace the next. */
let pages = 0;
/** Opens the view that the address names, while somebody is signed in. */
let followAddress = () => {};

/**
 * @typedef {{ path: string, title: string, isFor: () => boolean, open: (asked: URLSearchParams) => View }} Tab
 */

/** @type {readonly Tab[]} */
const TABS = [
  { path: '#/operations', title: 'Operations', isFor: () => true, open: (asked) => operationsView(operations, asked) },
  { path: '#/agents', title: 'Agents', isFor: () => true, open: agentsView },
  { path: '#/audit', title: 'Audit', isFor: () => true, open: auditView },
  { path: '#/budgets', title: 'Budgets', isFor: () => true, open: budgetsView },
  { path: '#/policies', title: 'Policies', isFor: () => true, open: policiesView },
  { path: '#/keys', title: 'Keys', isFor: () => can('admin'), open: keysView },
  {
    path: '#/accounts',
    title: 'Accounts',
    isFor: () => can('admin') && offer.methods.includes('password'),
    open: accountsView,
  },
];

/**
 * @param {string} [notice] @param {'key' | 'account'} [lastKind] how the session was opened that has ended @param
 * {string} [email] whose password was just chosen
 */
function showDoor(notice, lastKind, email) {
  const isShown = close();
  removeDialogs();
  const door = signInView({
    ...offer,
    notice: notice || undefined,
    lastKind,
    email,
    onSignedIn: () => isShown() && showInside(),
  });
  document.title = 'Sign in · svc-gateway';
  replace(root, door.element);
  door.focus();
}

function showInside() {
  close();
  model.clear();
  const session = current();
  // The first account exists now: the sign-in page must not offer to create it again.
  if (session?.kind === 'account' && offer.registration === 'first_account') offer = { methods: offer.methods };
  const status = h('span', { class: 'live', role: 'status' });
  const main = h('main', { id: 'main', tabindex: '-1' });
  const links = TABS.filter(({ isFor }) => isFor()).map((tab) => ({
    ...tab,
    link: h('a', { href: tab.path }, tab.title),
  }));
  above = standing();
  replace(
    root,
    skipLink(main),
    pageHead(
      links.map(({ link }) => link),
      status,
    ),
    above.element,
    main,
  );
  followAddress = () => openTab(links, main);
  stream = openStream(status);
  stream.start();
  openTab(links, main);
}

/** Leads the keyboard past the header. @param {HTMLElement} main */
const skipLink = (main) =>
  h(
    'a',
    {
      class: 'skip',
      href: '#main',
      onclick: (/** @type {Event} */ event) => {
        event.preventDefault();
        main.focus();
      },
    },
    'Skip to content',
  );

/** @param {readonly HTMLAnchorElement[]} links @param {HTMLElement} status */
function pageHead(links, status) {
  const session = current();
  const who = h(
    'span',
    { class: 'name' },
    h(
      'span',
      { title: `${session?.name} (${session?.subject}) · scopes: ${session?.scopes.join(', ')}` },
      session?.name,
    ),
    session?.orgId === null ? null : h('span', { class: 'tag' }, session?.orgId),
    can('write') ? null : h('span', { class: 'tag whole' }, 'read-only'),
  );
  return h(
    'header',
    { class: 'top' },
    h(
      'span',
      { class: 'brand' },
      h('img', { src: '/favicon.svg', alt: '', width: 22, height: 22 }),
      h('span', null, 'svc-gateway'),
    ),
    h('nav', { 'aria-label': 'Views' }, links),
    h('div', { class: 'who' }, status, who, button('Sign out', leave, { class: 'small' })),
  );
}

/**
 * Opens the view that the address names. @param {readonly (Tab & { link: HTMLAnchorElement })[]} links @param
 * {HTMLElement} main
 */
function openTab(links, main) {
  const [path, search] = location.hash.split('?', 2);
  const tab = links.find((candidate) => candidate.path === path) ?? links[0];
  if (tab === undefined) return;
  closeQuestions();
  const hadFocus = main.contains(document.activeElement);
  view?.dispose?.();
  for (const { link } of links) link.toggleAttribute('aria-current', false);
  tab.link.setAttribute('aria-current', 'page');
  tab.link.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  document.title = `${tab.title} · svc-gateway`;
  view = tab.open(new URLSearchParams(search));
  replace(main, view.element);
  // The link that was followed may have been in the view that is gone.
  if (hadFocus) main.focus();
}

/** The stream of events, with its state in the header. @param {HTMLElement} status */
const openStream = (status) =>
  new LiveStream({
    onOpen: (snapshot) => {
      model.begin(snapshot, nowMs());
      changed();
    },
    onFrame: (frame) => {
      if (frame.event_type === 'ops_change') {
        model.apply(frame, nowMs());
        changed();
      } else if (frame.event_type === 'halt' || frame.event_type === 'approval') above?.readSoon();
      else notifyOfFrame(frame);
    },
    onStatus: (state) => {
      changed();
      status.className = `live ${state}`;
      if (state === 'live') {
        setText(status, 'Live');
        void view?.renew?.();
        void above?.read();
      } else if (state === 'connecting') setText(status, 'Connecting…');
      else
        replace(
          status,
          'Connection lost – ',
          button('Retry', () => stream?.retry(), { class: 'link' }),
        );
    },
  });

/** Shown whichever view is open. @param {import('./live.js').Frame} frame */
function notifyOfFrame({ event_type: kind, org_id, agent_id, payload }) {
  const agent = { org_id, team_id: payload.team_id, agent_id };
  const who = operationsLink(agent, parts(agentName(agent), SLASH));
  if (kind === 'violation') notifyOfEvent(['Violation by ', who, `: ${payload.reason}`], 'error');
  else if (kind === 'budget')
    notifyOfEvent(
      [
        ...(payload.tier === 'global'
          ? [`The global ${payload.period} budget`]
          : [`The ${payload.period} budget of `, who]),
        ` is ${payload.percent}% used`,
      ],
      payload.percent >= 100 ? 'error' : 'info',
    );
}

/** Ends the page that is shown. Returns whether the one that comes in its place still is. */
function close() {
  followAddress = () => {};
  stream?.stop();
  stream = undefined;
  above?.dispose();
  above = undefined;
  view?.dispose?.();
  view = undefined;
  return beginPage();
}

function beginPage() {
  pages += 1;
  const mine = pages;
  return () => mine === pages;
}

/** Of a user who is not signed in any more; secrets, too. */
function removeDialogs() {
  for (const dialog of document.querySelectorAll('dialog')) dialog.remove();
}

async function leave() {
  const isShown = close();
  removeDialogs();
  // Nothing may stay on the screen while the gateway is being waited for.
  replace(root, h('main', { class: 'door' }, h('p', null, 'Signing out…')));
  try {
    await signOut();
  } catch (error) {
    const said = `You are not fully signed out: this browser keeps its cookie until you sign in and out again. ${messageOf(error)}`;
    return isShown() ? showDoor(said) : notify(said, 'error');
  }
  if (isShown()) await boot(); // a link may have been opened meanwhile
}

/**
 * The link of an invite or a mail, taken out of the address bar at once: its token belongs in no history. An e-mail,
 * which invites name, is only shown.
 */
function readLink() {
  const match = /^#\/(accept-invite|reset-password|setup)\/([\w-]+)(?:\?(.*))?$/.exec(location.hash);
  if (match === null) return undefined;
  return {
    kind: /** @type {'accept-invite' | 'reset-password' | 'setup'} */ (match[1]),
    token: /** @type {string} */ (match[2]),
    email: new URLSearchParams(match[3]).get('email') ?? undefined,
  };
}

/** @param {string} [notice] @param {string} [email] whose password was just chosen */
async function boot(notice, email) {
  const link = readLink();
  if (link !== undefined) return openLink(link);
  const isShown = beginPage();
  try {
    offer = await request('GET', '/api/v1/auth/methods');
    if (!isShown()) return;
    const isSignedIn = await restore();
    if (!isShown()) return;
    if (isSignedIn) {
      showInside();
      if (notice) notify(notice); // of an account that is not the one that is signed in here
    } else showDoor(notice, undefined, email);
  } catch (error) {
    if (!isShown()) return;
    replace(
      root,
      h(
        'main',
        { class: 'door' },
        h(
          'div',
          { class: 'card' },
          h('h1', null, 'The dashboard could not load'),
          h('p', null, reasonOf(error)),
          button('Try again', () => boot(notice, email), { class: 'solid' }),
          // Who has signed in with a password before is not kept out while the accounts cannot be reached.
          offer.methods.includes('password') && error instanceof Problem
            ? button('Use an API key', () => showDoor(undefined, 'key'), { class: 'link' })
            : null,
        ),
      ),
    );
  }
}

/** @param {NonNullable<ReturnType<typeof readLink>>} link */
function openLink(link) {
  const isShown = close();
  removeDialogs();
  history.replaceState(null, '', '/');
  const page = tokenView({
    ...link,
    onDone: (said, whose) => (isShown() ? void boot(said, whose) : notify(said)),
  });
  replace(root, page.element);
  page.focus();
}

/** @param {unknown} error */
function reasonOf(error) {
  if (error instanceof DOMException && error.name === 'SecurityError')
    return 'This browser blocks storage, which the dashboard needs to keep you signed in. Allow cookies and site data for this address.';
  return messageOf(error);
}

/** @param {readonly string[]} gateways of a cluster that do not act by an order yet */
function unconfirmedText(gateways) {
  const others = gateways.filter((name) => name !== 'database');
  return [
    ...(others.length > 0
      ? [`${others.join(', ')} did not confirm this in time, and will follow on reaching the database again.`]
      : []),
    ...(others.length < gateways.length
      ? ['The database could not be reached: it will hold at all gateways once this is written there.']
      : []),
  ].join(' ');
}

// Once for many orders at a time, which name the same gateways.
whenUnconfirmed((gateways) => notifyOfEvent(unconfirmedText(gateways), 'info'));
// Not in place of a page that a link has opened in the tab of somebody who was signed in: its token is nowhere else.
const isInside = () => stream !== undefined;
whenEnded((reason, kind) => isInside() && showDoor(reason, kind));
whenRoleChanged((role) => {
  if (!isInside()) return;
  showInside();
  notify(`Your role is now ${role}.`);
});
// A link from a mail may be opened in a tab that shows any page already.
window.addEventListener('hashchange', () => (readLink() === undefined ? followAddress() : void boot()));
void boot();

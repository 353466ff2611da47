/** Chooses the first screen, and the next one after a sign-in, a sign-out, or the end of a session. */
import { signal } from '@preact/signals';
import type { Methods } from '../base/api-types.ts';
import { messageOf, Problem, request, whenUnconfirmed } from '../base/request.ts';
import { startLive, stopLive } from '../live/live.ts';
import { restore, session, signOut, whenEnded, whenRoleChanged } from '../session/session.ts';
import { followStanding } from '../standing/standing.ts';
import { closeAllDialogs, closeQuestions } from '../ui/dialog.tsx';
import { notify, notifyOfEvent } from '../ui/notices.tsx';
import { startRouter, whenNavigated } from '../ui/router.ts';

export type Link = {
  readonly kind: 'accept-invite' | 'reset-password' | 'setup';
  readonly token: string;
  /** Only shown. */
  readonly email: string | undefined;
};

/** The screen in the window. */
export type Screen =
  | { readonly kind: 'blank' }
  | { readonly kind: 'leaving' }
  | { readonly kind: 'broken'; readonly reason: string; readonly retry: () => void; readonly mayUseKey: boolean }
  | { readonly kind: 'link'; readonly link: Link }
  | { readonly kind: 'door'; readonly notice?: string; readonly lastKind?: 'key' | 'account'; readonly email?: string }
  | { readonly kind: 'inside' };

export const screen = signal<Screen>({ kind: 'blank' });
/** The gateway's sign-in methods; asked once, before the first page. */
export const offer = signal<Methods>({ methods: [] });

let stopFollowing: (() => void) | undefined;

/** Ends what is shown. Returns whether what comes in its place still is. */
function show(next: Screen): () => boolean {
  stopFollowing?.();
  stopFollowing = undefined;
  stopLive();
  closeAllDialogs();
  screen.value = next;
  return () => screen.peek() === next;
}

export function showDoor(notice?: string, lastKind?: 'key' | 'account', email?: string): void {
  show({
    kind: 'door',
    ...(notice ? { notice } : {}),
    ...(lastKind === undefined ? {} : { lastKind }),
    ...(email === undefined ? {} : { email }),
  });
}

export function showInside(): void {
  // The first account exists now: the sign-in page must not offer to create it again.
  if (session.peek()?.kind === 'account' && offer.peek().registration === 'first_account')
    offer.value = { methods: offer.peek().methods };
  show({ kind: 'inside' });
  startLive();
  stopFollowing = followStanding();
}

export async function leave(): Promise<void> {
  // Nothing may stay on the screen while the gateway is being waited for.
  const isShown = show({ kind: 'leaving' });
  try {
    await signOut();
  } catch (error) {
    const said = `You are not fully signed out: this browser keeps its cookie until you sign in and out again. ${messageOf(error)}`;
    return isShown() ? showDoor(said) : notify(said, 'error');
  }
  if (isShown()) await open(); // a link may have been opened meanwhile
}

/**
 * The link of an invite or a mail, taken out of the address bar at once: its token belongs in no history. An e-mail,
 * which invites name, is only shown.
 */
function readLink(): Link | undefined {
  const [, kind, token = '', query] =
    /^#\/(accept-invite|reset-password|setup)\/([\w-]+)(?:\?(.*))?$/.exec(location.hash) ?? [];
  if (kind === undefined) return undefined;
  history.replaceState(null, '', '/');
  return { kind: kind as Link['kind'], token, email: new URLSearchParams(query).get('email') ?? undefined };
}

/** Takes up the session that there is, or asks who is there. `email` is whose password was just chosen. */
export async function open(notice?: string, email?: string): Promise<void> {
  const isShown = show({ kind: 'blank' });
  try {
    offer.value = await request('GET', '/api/v1/auth/methods');
    if (!isShown()) return;
    const isSignedIn = await restore();
    if (!isShown()) return;
    if (!isSignedIn) return showDoor(notice, undefined, email);
    showInside();
    if (notice) notify(notice); // of an account that is not the one that is signed in here
  } catch (error) {
    if (!isShown()) return;
    show({
      kind: 'broken',
      reason: reasonOf(error),
      retry: () => void open(notice, email),
      // Who has signed in with a password before is not kept out while the accounts cannot be reached.
      mayUseKey: offer.peek().methods.includes('password') && error instanceof Problem,
    });
  }
}

function reasonOf(error: unknown): string {
  if (error instanceof DOMException && error.name === 'SecurityError')
    return 'This browser blocks storage, which the dashboard needs to keep you signed in. Allow cookies and site data for this address.';
  return messageOf(error);
}

/** Which gateways of a cluster do not act by an order yet. */
function unconfirmedText(gateways: readonly string[]): string {
  const others = gateways.filter((name) => name !== 'database');
  return [
    ...(others.length > 0
      ? [`${others.join(', ')} did not confirm this in time, and will follow on reaching the database again.`]
      : []),
    ...(others.length < gateways.length
      ? ['The database could not be reached: the change takes effect at all gateways once it is written there.']
      : []),
  ].join(' ');
}

const isInside = (): boolean => screen.peek().kind === 'inside';

/** Opens the page of a link, if the address is one. */
function openLink(): boolean {
  const link = readLink();
  if (link !== undefined) show({ kind: 'link', link });
  return link !== undefined;
}

export async function boot(): Promise<void> {
  startRouter();
  whenNavigated(() => {
    closeQuestions();
    document.getElementById('main')?.focus({ preventScroll: true });
    document.getElementById('main')?.scrollTo(0, 0);
  });
  // Once for many orders at a time, which name the same gateways.
  whenUnconfirmed((gateways) => notifyOfEvent(unconfirmedText(gateways), 'info', `unconfirmed ${gateways}`));
  // Not in place of a page that a link has opened in the tab of somebody who was signed in: its token is nowhere else.
  whenEnded((reason, kind) => isInside() && showDoor(reason, kind));
  whenRoleChanged((role) => {
    if (!isInside()) return;
    showInside();
    notify(`Your role is now ${role}.`);
  });
  // A link from a mail may be opened in a tab that shows any page already.
  window.addEventListener('hashchange', () => void openLink());
  if (!openLink()) await open();
}

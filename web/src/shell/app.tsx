/** The frame of the dashboard: who is signed in, which page is shown, and whether what is shown is live. */
import { useSignalEffect } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { count, plural } from '../base/format.ts';
import { haltScopeWords } from '../control/halt-dialog.tsx';
import { retryNow, status } from '../live/live.ts';
import { can, session } from '../session/session.ts';
import { activeHalts, attention } from '../standing/standing.ts';
import { Dialogs, isAsking } from '../ui/dialog.tsx';
import { Empty, PageHead, Parts } from '../ui/names.tsx';
import { Notices } from '../ui/notices.tsx';
import { place } from '../ui/router.ts';
import { leave, offer, screen, showDoor, showInside } from './boot.ts';
import { LinkDoor } from './link-door.tsx';
import { Lookout } from './lookout.tsx';
import { PAGES, pageAt } from './pages.tsx';
import { openPalette } from './palette.tsx';
import { SignInDoor } from './sign-in.tsx';

export function App() {
  return (
    <>
      <Screen />
      <Dialogs />
      <Notices />
    </>
  );
}

function Screen() {
  const shown = screen.value;
  switch (shown.kind) {
    case 'inside':
      return <Inside key={session.value?.subject} />;
    case 'door':
      return <SignInDoor offer={offer.value} {...shown} onSignedIn={showInside} />;
    case 'link':
      return <LinkDoor key={shown.link.token} link={shown.link} />;
    case 'leaving':
      return (
        <main class="door">
          <p>Signing out…</p>
        </main>
      );
    case 'broken':
      return <Broken {...shown} />;
    case 'blank':
      return null;
  }
}

type BrokenProps = { readonly reason: string; readonly retry: () => void; readonly mayUseKey: boolean };

const Broken = ({ reason, retry, mayUseKey }: BrokenProps) => (
  <main class="door">
    <div class="card">
      <h1>The dashboard could not load</h1>
      <p>{reason}</p>
      <button type="button" class="solid" onClick={retry}>
        Try again
      </button>
      {mayUseKey && (
        <button type="button" class="link" onClick={() => showDoor(undefined, 'key')}>
          Use an API key
        </button>
      )}
    </div>
  </main>
);

function Inside() {
  const at = pageAt(place.value.path);
  const title = at?.page.title ?? 'Not found';
  useSignalEffect(() => {
    const n = attention.value;
    document.title = `${n > 0 ? `(${n}) ` : ''}${pageAt(place.value.path)?.page.title ?? 'Not found'} · svc-gateway`;
  });
  usePaletteKey();
  return (
    <div class="frame">
      {/* biome-ignore lint/a11y/useValidAnchor: it leads there, and takes the keyboard along */}
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById('main')?.focus();
        }}
      >
        Skip to content
      </a>
      <TopBar />
      <Navigation shown={title} />
      <main id="main" tabIndex={-1}>
        {place.value.path !== '/' && <HaltBanner />}
        {at === undefined ? <NotFound /> : at.page.render(at.params)}
      </main>
      <Lookout />
    </div>
  );
}

const NotFound = () => (
  <div class="page">
    <PageHead title="Not found" />
    <Empty>
      There is no such page. <a href="/">Go to the overview</a>
    </Empty>
  </div>
);

function usePaletteKey(): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      event.preventDefault();
      if (!isAsking()) openPalette();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
}

function TopBar() {
  const who = session.value;
  return (
    <header class="top">
      <a class="brand" href="/" aria-label="svc-gateway, to the overview">
        <img src="/favicon.svg" alt="" width={22} height={22} />
        <span>svc-gateway</span>
      </a>
      <button type="button" class="jump" onClick={openPalette} aria-keyshortcuts="Control+K">
        <span>Jump to…</span>
        <kbd>Ctrl K</kbd>
      </button>
      <div class="who">
        <LiveMark />
        <span class="name" title={`${who?.name} (${who?.subject}) · scopes: ${who?.scopes.join(', ')}`}>
          {who?.name}
        </span>
        {who?.orgId != null && <span class="tag">{who.orgId}</span>}
        {!can('write') && <span class="tag whole">read-only</span>}
        <button type="button" class="small" onClick={leave}>
          Sign out
        </button>
      </div>
    </header>
  );
}

function LiveMark() {
  const now = status.value;
  return (
    <span class={`live ${now}`} role="status">
      {now === 'live' ? (
        'Live'
      ) : now === 'connecting' ? (
        'Connecting…'
      ) : (
        <>
          Connection lost –{' '}
          <button type="button" class="link" onClick={retryNow}>
            Retry
          </button>
        </>
      )}
    </span>
  );
}

/** On a narrow screen the first four are below, the others open above them. */
function Navigation({ shown }: { readonly shown: string }) {
  const [isOpen, setOpen] = useState(false);
  const { path } = place.value;
  useEffect(() => setOpen(false), [path]);
  return (
    <nav aria-label="Pages" class={isOpen ? 'open' : ''}>
      {PAGES.filter(({ isLinked }) => isLinked?.() ?? true).map(({ title, paths, icon, waiting, isFirst }) => (
        <a
          key={title}
          href={paths[0] ?? '/'}
          class={isFirst ? 'first' : ''}
          aria-current={title === shown ? 'page' : undefined}
        >
          <svg viewBox="0 0 20 20" aria-hidden="true">
            <path d={icon} />
          </svg>
          <span class="nav-title">{title}</span>
          <Badge waiting={waiting?.() ?? 0} />
        </a>
      ))}
      <button type="button" class="more-pages" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <svg viewBox="0 0 20 20" aria-hidden="true">
          <path d="M4 6h12M4 10h12M4 14h12" />
        </svg>
        <span class="nav-title">Menu</span>
      </button>
    </nav>
  );
}

/** Not part of the link's name: a link is named by where it leads. */
const Badge = ({ waiting }: { readonly waiting: number }) =>
  waiting > 0 ? (
    <span class="badge" aria-hidden="true">
      {waiting > 99 ? '99+' : count(waiting)}
    </span>
  ) : null;

/** More than these nobody reads at a glance. */
const NAMED = 2;

function HaltBanner() {
  const halts = activeHalts.value;
  if (halts.length === 0) return null;
  return (
    <aside class="banner" aria-label="Halts in force">
      <strong>{plural(halts.length, 'halt')} in force:</strong>{' '}
      {halts.slice(0, NAMED).map(({ id, scope, reason }, at) => (
        <span key={id}>
          {at > 0 && '; '}
          <Parts text={haltScopeWords(scope)} /> – <bdi>{reason}</bdi>
        </span>
      ))}
      {halts.length > NAMED && ` and ${halts.length - NAMED} more`} · <a href="/">Overview</a>
    </aside>
  );
}

/** Which page is shown: the path and the query of the address, which a reload keeps and a link says to others. */
import { signal } from '@preact/signals';
import { type Query, queryOf } from '../base/request.ts';

export type Place = { readonly path: string; readonly query: URLSearchParams };

const here = (): Place => ({ path: location.pathname, query: new URLSearchParams(location.search) });

export const place = signal<Place>(here());

/** Called when the page is another, not when only its filters are. */
let onNavigate = (): void => undefined;

export function whenNavigated(listener: () => void): void {
  onNavigate = listener;
}

/**
 * Safari refuses more than a hundred changes of the address in ten seconds; a key that is held asks for three times as
 * many.
 */
const ASK_AGAIN_MS = 1_000;
let again: ReturnType<typeof setTimeout> | undefined;

export function navigate(to: string): void {
  clearTimeout(again);
  history.pushState(null, '', to);
  place.value = here();
  onNavigate();
}

/** Changes the query without a step in the history: going back leads out of the page, not through every letter. */
export function setQuery(changes: Query): void {
  const { path, query } = place.peek();
  const next = new URLSearchParams(queryOf({ ...Object.fromEntries(query), ...changes }));
  place.value = { path, query: next };
  follow();
}

function follow(): void {
  clearTimeout(again);
  const { path, query } = place.peek();
  const search = query.toString();
  try {
    history.replaceState(null, '', `${path}${search === '' ? '' : `?${search}`}`);
  } catch {
    again = setTimeout(follow, ASK_AGAIN_MS);
  }
}

/**
 * A plain click on a link within the page changes the page; with a key held, or elsewhere, the browser does as ever.
 */
function followLink(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = event.target instanceof Element ? event.target.closest('a') : null;
  if (link === null || link.target !== '' || link.hasAttribute('download') || link.origin !== location.origin) return;
  if (link.getAttribute('href')?.startsWith('#')) return;
  event.preventDefault();
  navigate(`${link.pathname}${link.search}`);
}

export function startRouter(): void {
  document.addEventListener('click', followLink);
  window.addEventListener('popstate', () => {
    const before = place.peek().path;
    place.value = here();
    if (place.peek().path !== before) onNavigate();
  });
}

export type Params = Readonly<Record<string, string>>;

/** The parameters of a pattern such as `/agents/:org/:team/:agent` in a path; undefined where it does not fit. */
export function matchPath(pattern: string, path: string): Params | undefined {
  const [wanted, given] = [pattern.split('/'), path.replace(/(.)\/$/, '$1').split('/')];
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [at, part] of wanted.entries()) {
    const text = given[at] ?? '';
    if (part.startsWith(':')) {
      if (text === '') return undefined;
      params[part.slice(1)] = decoded(text);
    } else if (part !== text) return undefined;
  }
  return params;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // a stray %: it is shown as it stands
  }
}

/** Which pages may make a browser act for its user, with its cookie or by opening a stream. */
import type { Fault } from '../../core/fault.ts';
import { fail, type Result } from '../../core/result.ts';

/**
 * A fault when the request comes from a page of another site. A request without an `Origin` comes from no page, or from
 * a browser that vouches for its own by SameSite. Own pages are those of the requested host, which a
 * proxy passes on, of SVC_PUBLIC_URL, and of SVC_CORS_ORIGINS.
 */
export function refuseForeignOrigin(
  origin: string | undefined,
  askedHost: string | undefined,
  ownOrigins: readonly string[],
): Result<never, Fault> | undefined {
  if (origin === undefined || ownOrigins.includes(origin)) return undefined;
  const { host, protocol } = URL.canParse(origin) ? new URL(origin) : NO_PAGE;
  // An origin leaves out the default port of its scheme, a proxy may name it.
  const asked = askedHost?.toLowerCase().replace(protocol === 'https:' ? /:443$/ : /:80$/, '');
  return host !== '' && host === asked ? undefined : fail({ kind: 'foreign_origin', origin: origin.slice(0, 256) });
}

const NO_PAGE = { host: '', protocol: '' };

/** Rows of tools that reach the web. */
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import { digestsOf, withDigests } from './arguments.ts';
import { readText } from './event-fields.ts';
import { one, type Row } from './rows.ts';

const MAX_PAGES = 100;
const PAGE = '`net.connect` on `<scheme>://<host><path>`';

/**
 * A page, as at the door of Envoy: a query may hold secrets, so the attributes have the digest of the whole URL, and an
 * approval binds it.
 */
export const web: Row = {
  becomes: PAGE,
  reads: ['url'],
  digests: ['url'],
  others: [],
  refuses: 'without the URL of a page',
  subjects: ({ input }) => {
    const given = readText(input, 'url');
    if (!given.ok) return given;
    const address = addressOf(given.value);
    if (address === undefined) return invalid('url', 'must be the URL of a page');
    const attributes = withDigests(input, { url: ['url'] });
    return attributes.ok ? one('net.connect', address, { ...attributes.value, url: address }) : attributes;
  },
};

/** A prompt that names the pages to read: one check for each. It is read as the agent reads it. */
export const webPrompt = (name: string): Row => ({
  becomes: `${PAGE} for each URL in the prompt; on the name of the tool without any`,
  reads: ['url'],
  digests: [name, 'url'],
  others: [],
  refuses: 'with both a prompt and a URL; with a word that has `://` and is no URL of http or https',
  subjects: (use) => {
    const { [name]: prompt, url } = use.input;
    if (prompt === undefined || prompt === null) return web.subjects(use);
    if (url !== undefined && url !== null) return invalid('url', `must not be given beside ${name}`);
    const text = readText(use.input, name);
    if (!text.ok) return text;
    const attributes = withDigests(use.input, { [name]: [name] });
    if (!attributes.ok) return attributes;
    const addresses = new Set<string>();
    for (const word of text.value.split(/\s+/)) {
      if (!word.includes('://')) continue;
      const address = URL.canParse(word) ? pageOf(new URL(word)) : undefined;
      if (address === undefined) return invalid(name, 'must name pages by valid URLs of http or https');
      addresses.add(address);
    }
    if (addresses.size > MAX_PAGES) return invalid(name, `must not name more than ${MAX_PAGES} pages`);
    if (addresses.size === 0) return one('net.connect', use.tool, attributes.value);
    return ok([...addresses].map((resource) => ({ action: 'net.connect', resource, attributes: attributes.value })));
  },
});

/** It reaches a search engine, and no address is known. */
export const engine: Row = {
  becomes: '`net.connect` on the name of the tool',
  reads: [],
  digests: [],
  others: [],
  refuses: '',
  subjects: ({ tool, input }) => one('net.connect', tool, input),
};

/** A connection to a URL within an argument, such as that of a WebSocket. */
export const socket = (name: string): Row => ({
  becomes: '`net.connect` on the address of its URL',
  reads: [name],
  digests: [],
  others: [],
  refuses: 'without a URL',
  subjects: ({ input }) => {
    const { url } = Object(input[name]) as { readonly url?: unknown };
    const address = typeof url === 'string' ? addressOf(url) : undefined;
    if (address === undefined) return invalid(name, 'must have the URL of a server');
    return one('net.connect', address, { ...input, [name]: address, ...digestsOf(name, input[name]) });
  },
});

/** As agents read it: `https:/a` and `https:\\a` are pages of a, and `a/b` is one that they put https before. */
function addressOf(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url !== undefined && (url.host !== '' || text.includes('://'))) return addressIn(url);
  if (text.includes('://') || !URL.canParse(`https://${text}`)) return undefined;
  return addressIn(new URL(`https://${text}`));
}

const addressIn = ({ protocol, host, pathname }: URL): string | undefined =>
  host === '' ? undefined : `${protocol}//${host}${pathname}`;

const pageOf = (url: URL): string | undefined =>
  url.protocol === 'http:' || url.protocol === 'https:' ? addressIn(url) : undefined;

/** Where webhooks may go: not into the gateway's own network, unless the operator allows it (docs/webhooks.md). */
import { BlockList, isIP } from 'node:net';

/** [network, prefix length]. IPv4 addresses inside IPv6 ones are looked at by themselves. */
const PRIVATE_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10], // between carriers and their customers
  ['127.0.0.0', 8],
  ['169.254.0.0', 16], // link-local, and the metadata services of clouds
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4], // multicast
  ['240.0.0.0', 4],
] as const;
const PRIVATE_IPV6 = [
  ['::', 96], // unspecified, loopback, and IPv4-compatible ones
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['fc00::', 7],
  ['fe80::', 9], // link-local and site-local
  ['ff00::', 8],
] as const;
/** [network, where in it the IPv4 address begins, in groups of 16 bits]. */
const EMBEDDING = [
  { network: '::ffff:0:0', prefix: 96, at: 6 },
  { network: '64:ff9b::', prefix: 96, at: 6 },
  { network: '2002::', prefix: 16, at: 1 },
] as const;

const listOf = (type: 'ipv4' | 'ipv6', networks: readonly (readonly [string, number])[]): BlockList => {
  const list = new BlockList();
  for (const [network, prefix] of networks) list.addSubnet(network, prefix, type);
  return list;
};
const privateIpv4 = listOf('ipv4', PRIVATE_IPV4);
const privateIpv6 = listOf('ipv6', PRIVATE_IPV6);
const embedding = EMBEDDING.map(({ network, prefix, at }) => ({ list: listOf('ipv6', [[network, prefix]]), at }));

/** Whether an address, as `isIP` knows it, is one of the internet at large. */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 4) return !privateIpv4.check(address, 'ipv4');
  if (isIP(address) !== 6 || address.includes('%')) return false;
  // BlockList matches IPv4 networks against mapped addresses by itself; the others are taken apart here.
  const inside = embedding.find(({ list }) => list.check(address, 'ipv6'));
  if (inside !== undefined) return !privateIpv4.check(ipv4In(address, inside.at), 'ipv4');
  return !privateIpv6.check(address, 'ipv6');
}

/** The IPv4 address in two groups of an IPv6 one. */
function ipv4In(address: string, at: number): string {
  // The parser of URLs writes each IPv6 address in one form: in lower case, without dots, shortened with `::`.
  const written = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail = ''] = written.split('::');
  const groupsOf = (part: string) => (part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16)));
  const last = groupsOf(tail);
  const first = groupsOf(head);
  const groups = [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last];
  const [high = 0, low = 0] = groups.slice(at, at + 2);
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

const MAX_URL = 2_048;

/** What is wrong with the URL of a webhook; undefined: nothing. Names are looked at when they are resolved. */
export function urlTrouble(text: string, isPrivateAllowed: boolean): string | undefined {
  if (text.length > MAX_URL) return `must have at most ${MAX_URL} characters`;
  if (/[\s\\\p{Cc}]/u.test(text) || !URL.canParse(text)) return 'must be a URL such as https://example.com/hook';
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://';
  if (url.username !== '' || url.password !== '')
    return 'must have no user name and no password; calls are signed instead';
  if (url.hash !== '') return 'must have no fragment';
  if (isPrivateAllowed) return undefined;
  const host = hostOf(url);
  const isLocalName = /(^|\.)localhost\.?$/.test(host);
  if (!isLocalName && (isIP(host) === 0 || isPublicAddress(host))) return undefined;
  return `must not lead to this machine or into its network (${host}); to allow it, set SVC_WEBHOOKS_ALLOW_PRIVATE=1`;
}

/** Without the brackets of an IPv6 address. */
export const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[(.*)\]$/, '$1');

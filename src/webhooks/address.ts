/**
 * Validates the targets of webhooks: not in the gateway's own network, unless the operator allows it
 * (docs/webhooks.md).
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

/** IPv6 addresses that stand for an IPv4 one, and where in their groups of 16 bits that begins. */
const EMBEDDING = [
  { network: ipaddr.IPv6.parseCIDR('::ffff:0:0/96'), at: 6 },
  { network: ipaddr.IPv6.parseCIDR('64:ff9b::/96'), at: 6 },
  { network: ipaddr.IPv6.parseCIDR('2002::/16'), at: 1 },
];
/** All of IPv6 that is given out to networks of the internet. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

/** Whether an address, as `isIP` knows it, is one of the internet at large, and in none of the special networks. */
export function isPublicAddress(text: string): boolean {
  if (isIP(text) === 0 || text.includes('%')) return false;
  if (isIP(text) === 4) return isPublicIpv4(ipaddr.IPv4.parse(text));
  const address = ipaddr.IPv6.parse(text);
  const inside = EMBEDDING.find(({ network }) => address.match(network));
  if (inside !== undefined) return isPublicIpv4(ipv4In(address, inside.at));
  return address.match(GLOBAL_UNICAST) && address.range() === 'unicast';
}

const isPublicIpv4 = (address: ipaddr.IPv4): boolean => address.range() === 'unicast';

function ipv4In({ parts }: ipaddr.IPv6, at: number): ipaddr.IPv4 {
  const [high = 0, low = 0] = parts.slice(at, at + 2);
  return new ipaddr.IPv4([high >> 8, high & 255, low >> 8, low & 255]);
}

const MAX_URL = 2_048;

/** Explains why the URL of a webhook is invalid; undefined: it is valid. Names are looked at when they are resolved. */
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

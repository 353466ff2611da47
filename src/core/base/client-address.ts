/** Client addresses as text: the form in which they are recorded, and which of them share a limit. */
import ipaddr from 'ipaddr.js';

/**
 * An IPv4 address is written as such even if it arrived on an IPv6 socket (`::ffff:192.0.2.1`). An IPv6 zone is left
 * out, because only this machine understands it (`fe80::1%eth0`). Any other text is returned unchanged.
 */
export function plainAddress(text: string): string {
  if (!text.includes(':')) return text;
  const [address = ''] = text.split('%', 1);
  const parsed = ipv6Of(address);
  return parsed?.isIPv4MappedAddress() === true ? parsed.toIPv4Address().toString() : address;
}

/**
 * The network to which per-address limits apply: a single IPv4 address, or the /64 of an IPv6 address. A /64 is the
 * least that a provider gives to a customer, who can then call from 2^64 addresses.
 */
export function networkOf(address: string): string {
  const plain = plainAddress(address);
  const groups = plain.includes(':') ? ipv6Of(plain)?.parts.slice(0, 4) : undefined;
  return groups === undefined ? plain : `${groups.map((group) => group.toString(16)).join(':')}::/64`;
}

/** Whether only this machine can reach a server that listens there. `host` as in a setting, without brackets. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);

const ipv6Of = (address: string): ipaddr.IPv6 | undefined =>
  ipaddr.IPv6.isValid(address) ? ipaddr.IPv6.parse(address) : undefined;

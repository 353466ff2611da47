/** Client addresses as text: the form in which they are recorded, and which of them share a limit. */

/**
 * An IPv4 address is written as such even if it arrived on an IPv6 socket (`::ffff:192.0.2.1`). An IPv6 zone is left
 * out, because only this machine understands it (`fe80::1%eth0`). Any other text is returned unchanged.
 */
export function plainAddress(text: string): string {
  if (!text.includes(':')) return text;
  const [address = ''] = text.split('%', 1);
  const groups = groupsOf(address);
  const isMapped = groups.length === 8 && groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  return isMapped
    ? groups
        .slice(6)
        .flatMap((group) => [group >> 8, group & 0xff])
        .join('.')
    : address;
}

/**
 * The network to which per-address limits apply: a single IPv4 address, or the /64 of an IPv6 address. A /64 is the
 * least that a provider gives to a customer, who can then call from 2^64 addresses.
 */
export function networkOf(address: string): string {
  const plain = plainAddress(address);
  return plain.includes(':')
    ? `${groupsOf(plain)
        .slice(0, 4)
        .map((group) => group.toString(16))
        .join(':')}::/64`
    : plain;
}

/** Whether only this machine can reach a server that listens there. `host` as in a setting, without brackets. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);

/** The eight groups of an IPv6 address, which the caller knows to be one. */
function groupsOf(address: string): number[] {
  const [before, after] = address.split('::', 2).map(groupsIn);
  if (before === undefined || after === undefined) return before ?? [];
  return [...before, ...Array<number>(Math.max(0, 8 - before.length - after.length)).fill(0), ...after];
}

const groupsIn = (text: string): number[] =>
  text === ''
    ? []
    : text.split(':').flatMap((group) => (group.includes('.') ? dottedGroups(group) : [Number.parseInt(group, 16)]));

function dottedGroups(dotted: string): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number);
  return [a * 256 + b, c * 256 + d];
}

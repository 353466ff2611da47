/**
 * Finds the client's address: the peer of its connection or, if that is a trusted proxy, the address that the proxy
 * names.
 */

import { BlockList, isIP } from 'node:net';
import { plainAddress } from '../../core/base/client-address.ts';

/** `peer` is the other end of the connection; `forwarded`: each `X-Forwarded-For`, as some proxies add their own. */
export type AddressOf = (peer: string, forwarded: readonly string[]) => string;

/** `proxies`: addresses, or networks such as `10.0.0.0/8`, whose `X-Forwarded-For` is trusted. */
export function addressBehind(proxies: readonly string[]): AddressOf {
  const list = new BlockList();
  for (const proxy of proxies) {
    const [address = '', bits] = proxy.split('/');
    if (bits === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(bits), familyOf(address));
  }
  const isProxy = (address: string): boolean => list.check(address, familyOf(address));
  return (socketPeer, forwarded) => {
    const peer = plainAddress(socketPeer);
    if (proxies.length === 0 || !isProxy(peer)) return peer;
    let address = peer;
    // Each proxy appends the address it was called from. Anything before the first address that is not a trusted proxy
    // may be forged.
    for (const hop of forwarded.flatMap((value) => value.split(',')).reverse()) {
      const before = withoutPort(hop.trim());
      if (before === undefined) return address;
      address = before;
      if (!isProxy(address)) return address;
    }
    return address;
  };
}

/** `1.2.3.4`, `1.2.3.4:5678`, `[::1]:5678` and `::1` as an address; undefined for any other text. */
function withoutPort(hop: string): string | undefined {
  const address = /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
  return isIP(address) === 0 || address.includes('%') ? undefined : plainAddress(address);
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

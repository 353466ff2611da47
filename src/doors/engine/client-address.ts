/**
 * Where a request comes from: the other end of its connection or, when that is a trusted proxy, the address that the
 * proxy names.
 */

import { BlockList, isIP } from 'node:net';
import { plainAddress } from '../../core/base/client-address.ts';
import type { RequestHead } from './engine.ts';
import type { Exchange } from './exchange.ts';

/** `peer` is the other end of the connection. */
export type AddressOf = (peer: string, req: Pick<RequestHead, 'forEach'>) => string;

/** `proxies`: addresses, or networks such as `10.0.0.0/8`, whose `X-Forwarded-For` is trusted. */
export function addressBehind(proxies: readonly string[]): AddressOf {
  const list = new BlockList();
  for (const proxy of proxies) {
    const [address = '', bits] = proxy.split('/');
    if (bits === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(bits), familyOf(address));
  }
  const isProxy = (address: string): boolean => list.check(address, familyOf(address));
  return (socketPeer, req) => {
    const peer = plainAddress(socketPeer);
    if (proxies.length === 0 || !isProxy(peer)) return peer;
    let address = peer;
    // Each proxy appends the address it was called from. Anything before the first address that is not a trusted proxy
    // may be forged.
    for (const hop of forwardedFor(req).reverse()) {
      const before = withoutPort(hop.trim());
      if (before === undefined) return address;
      address = before;
      if (!isProxy(address)) return address;
    }
    return address;
  };
}

/** The peer of the connection, or the client that trusted proxies name in its place. */
export function remoteAddressOf(req: RequestHead, exchange: Exchange, addressOf: AddressOf | undefined): string {
  const peer = exchange.remoteAddress();
  return addressOf === undefined ? peer : addressOf(peer, req);
}

/** The values of all headers of this name: some proxies add a line of their own. */
function forwardedFor(req: Pick<RequestHead, 'forEach'>): string[] {
  const hops: string[] = [];
  req.forEach((name, value) => {
    if (name === 'x-forwarded-for') hops.push(...value.split(','));
  });
  return hops;
}

/** `1.2.3.4`, `1.2.3.4:5678`, `[::1]:5678` and `::1` as an address; undefined for any other text. */
function withoutPort(hop: string): string | undefined {
  const address = /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
  return isIP(address) === 0 || address.includes('%') ? undefined : plainAddress(address);
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

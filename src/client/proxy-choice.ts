/** Which proxy the environment names for a gateway, by the rules of curl and kubectl. */
import { BlockList, isIP } from 'node:net';

/** As it was written: mistakes are reported once it is used. */
export type ProxySetting = { readonly variable: 'HTTPS_PROXY' | 'HTTP_PROXY'; readonly text: string };

type Environment = Readonly<Record<string, string | undefined>>;

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** `hostname` as a URL has it. */
export const isLoopback = (hostname: string): boolean => LOOPBACK.test(hostname);

/** Undefined to connect directly, as always to loopback: for the proxy that would be a different machine. */
export function proxyFor(apiUrl: string, env: Environment): ProxySetting | undefined {
  const { protocol, hostname, port } = new URL(apiUrl);
  const isSecure = protocol === 'https:';
  const variable = isSecure ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const text = valueOf(variable, env);
  if (text === '' || isLoopback(hostname)) return undefined;
  return isExempt(
    hostname.replace(/^\[|\]$/g, ''),
    port === '' ? (isSecure ? '443' : '80') : port,
    valueOf('NO_PROXY', env),
  )
    ? undefined
    : { variable, text };
}

/** Lower case first, even if empty: so a single command can be kept off the shell's proxy. */
const valueOf = (name: string, env: Environment): string => (env[name.toLowerCase()] ?? env[name] ?? '').trim();

const isExempt = (host: string, port: string, noProxy: string): boolean =>
  noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => entry === '*' || isWithin(host, entry) || isCovered(host, port, entry));

/**
 * `example.com`, `.example.com` and `*.example.com` cover that host and those below it; `host:8443` one port of them.
 */
function isCovered(host: string, port: string, entry: string): boolean {
  const [, bracketed, plain, onlyPort] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(entry) ?? [
    undefined,
    undefined,
    entry,
  ];
  const name = bracketed ?? (plain ?? '').replace(/^\*?\./, '');
  return name !== '' && (onlyPort === undefined || onlyPort === port) && (host === name || host.endsWith(`.${name}`));
}

/** `10.0.0.0/8` */
function isWithin(host: string, entry: string): boolean {
  const [, network = '', bits = ''] = /^([\d.]+|[\da-f:]+)\/(\d{1,3})$/.exec(entry) ?? [];
  const family = isIP(host);
  if (family === 0 || isIP(network) !== family || Number(bits) > (family === 4 ? 32 : 128)) return false;
  const kind = family === 4 ? 'ipv4' : 'ipv6';
  const list = new BlockList();
  list.addSubnet(network, Number(bits), kind);
  return list.check(host, kind);
}

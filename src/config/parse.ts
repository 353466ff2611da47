/** How the text of a setting becomes its value; undefined: it is none. */
import { isIP } from 'node:net';
import { isWitnessUrl } from '../audit-log/witness/target.ts';
import { isOrgName } from '../core/base/ids.ts';
import { isWellEscaped } from '../core/base/text.ts';
import { isBootstrapKey } from '../core/identity/api-key.ts';

export type Parse<T> = (text: string) => T | undefined;

export type Address = { readonly host: string; readonly port: number };

export const text: Parse<string> = (value) => value;

export const wholeNumber =
  (least: number, most: number): Parse<number> =>
  (value) => {
    const number = Number(value);
    return /^\d+$/.test(value) && number >= least && number <= most ? number : undefined;
  };

export const oneOf =
  <const T extends string>(...words: readonly T[]): Parse<T> =>
  (value) =>
    words.find((word) => word === value);

/** Any other word means no, and none is a mistake (docs/spec.md, Registration). */
export const switchedOn: Parse<boolean> = (value) => /^(1|true|yes)$/i.test(value);

export const address: Parse<Address> = (value) => {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:\s]+)):(\d{1,5})$/.exec(value);
  const port = Number(match?.[3]);
  const host = match?.[1] ?? match?.[2];
  return host === undefined || port > 65_535 ? undefined : { host, port };
};

const url =
  (...protocols: readonly string[]): Parse<string> =>
  (value) =>
    URL.canParse(value) && protocols.includes(new URL(value).protocol) ? value : undefined;

/** The host may be left out where the query names the folder of a socket, as PostgreSQL's own tools allow. */
export const databaseUrl: Parse<string> = (value) => {
  const whole = /[?&]host=/.test(value) ? value.replace('@/', '@localhost/') : value;
  return url('postgres:', 'postgresql:')(whole) === undefined || hasBadEscape(value) ? undefined : value;
};

/** The driver takes a stray % as it is, but cannot read escapes that are not UTF-8. */
const hasBadEscape = (value: string): boolean => !isWellEscaped(value) && !/%(?![0-9a-f]{2})/i.test(value);

/** Paths are appended to it, so it has no query and no fragment. */
export const baseUrl: Parse<string> = (value) => (/[?#]/.test(value) ? undefined : url('http:', 'https:')(value));

export const list = (value: string): readonly string[] =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

/** Spelled as browsers send them: any other spelling would never match. */
const isOrigin = (text: string): boolean =>
  !text.includes('*') &&
  (/^https?:/i.test(text)
    ? URL.canParse(text) && new URL(text).origin === text
    : /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#]+$/.test(text));
export const origins: Parse<readonly string[]> = (value) => (list(value).every(isOrigin) ? list(value) : undefined);

/** An address, or a network in CIDR notation. */
const isNetwork = (text: string): boolean => {
  const [, ip = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  return isIP(ip) !== 0 && Number(bits ?? 0) <= (isIP(ip) === 6 ? 128 : 32);
};
export const networks: Parse<readonly string[]> = (value) => (list(value).every(isNetwork) ? list(value) : undefined);

export const witnesses: Parse<readonly string[]> = (value) =>
  list(value).every(isWitnessUrl) ? list(value) : undefined;

export const orgName: Parse<string> = (value) => (isOrgName(value) ? value : undefined);

/** It appears in lists, headers and logs. */
export const nodeName: Parse<string> = (value) => (/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(value) ? value : undefined);

export const bootstrapKey: Parse<string> = (value) => (isBootstrapKey(value) ? value : undefined);

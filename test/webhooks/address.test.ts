import { describe, expect, test } from 'vitest';
import { isPublicAddress, urlTrouble } from '../../src/webhooks/address.ts';

describe('addresses of webhooks', () => {
  test.each([
    '8.8.8.8',
    '172.32.0.1',
    '100.128.0.1',
    '2606:4700::1111',
    '::ffff:8.8.8.8',
    '64:ff9b::808:808',
    '2002:808:808::1',
  ])('%s is of the internet', (address) => expect(isPublicAddress(address)).toBe(true));

  test.each([
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '127.255.255.254',
    '169.254.169.254',
    '172.16.0.1',
    '172.31.255.255',
    '192.0.0.1',
    '192.0.2.1',
    '192.88.99.1',
    '192.168.1.1',
    '198.18.0.1',
    '198.51.100.1',
    '203.0.113.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::ffff:127.0.0.1',
    '::ffff:a00:1',
    '0:0:0:0:0:ffff:169.254.169.254',
    '64:ff9b::7f00:1',
    '64:ff9b:1::1',
    '2002:7f00:1::',
    '2002:a00:1::1',
    'fc00::1',
    'fd12:3456::1',
    'fe80::1',
    'fe80::1%eth0',
    'febf::1',
    'fec0::1',
    'ff02::1',
    '::ffff:0:7f00:1',
    '::ffff:0:808:808',
    '100::1',
    '2001::1',
    '2001:0:a00:1::1',
    '2001:2::1',
    '2001:10::1',
    '2001:db8::1',
    '2002:c000:201::1',
    '3fff::1',
    '4000::1',
    '5f00::1',
    'example.com',
  ])('%s is not', (address) => expect(isPublicAddress(address)).toBe(false));

  test.each([
    'https://example.com/hook?token=1',
    'http://example.com:8080',
    'https://93.184.216.34/',
    'https://[2606:4700::1111]:8443/',
    'https://localhost.example.com/',
  ])('%s may be called', (url) => expect(urlTrouble(url, false)).toBeUndefined());

  test.each([
    'http://127.0.0.1/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://127.1/',
    'http://①②⑦.⓪.⓪.①/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://[::ffff:0:127.0.0.1]/',
    'http://[2001:db8::1]/',
    'http://[fe80::1]/',
    'http://169.254.169.254/latest/meta-data',
    'http://10.0.0.1:9000/',
    'http://localhost/',
    'http://LOCALHOST./',
    'http://a.localhost/',
  ])('%s may be called only where the operator allows it', (url) => {
    expect(urlTrouble(url, false)).toMatch(/SVC_WEBHOOKS_ALLOW_PRIVATE=1$/);
    expect(urlTrouble(url, true)).toBeUndefined();
  });

  test.each([
    ['', 'must be a URL'],
    ['example.com/hook', 'must be a URL'],
    ['ftp://example.com/', 'must begin with https:// or http://'],
    ['file:///etc/passwd', 'must begin with'],
    ['https://user:secret@example.com/', 'must have no user name'],
    ['https://example.com/#part', 'must have no fragment'],
    ['https://exam ple.com/', 'must be a URL'],
    ['https:\\\\example.com', 'must be a URL'],
    ['https://example.com/\0', 'must be a URL'],
    [`https://example.com/${'x'.repeat(2_048)}`, 'must have at most 2048 characters'],
  ])('%s is no URL of a webhook', (url, trouble) => {
    expect(urlTrouble(url, true)).toContain(trouble);
    expect(urlTrouble(url, false)).toContain(trouble);
  });
});

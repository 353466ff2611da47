/**
 * The binaries of the native HTTP library, which come from third parties: another content under the same version would
 * run with all rights of the gateway. docs/native-library.md says how to compare them with the official release.
 */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../src/system/package-files.ts';

/** As `sha256sum` prints them. */
const SUMS = {
  'uWebSockets.js': `
e92644395ac8d37cb078098f843fb1b82e59701832f38fed00a9bdcfb87ba939  uws_darwin_arm64_115.node
6180345d453e2e113feb2b0d76376493cd6a90056c3483fc22de7b0c340dc231  uws_darwin_arm64_127.node
2187391c702fa7ad3bf685eff7712c15cf24fa7cf324a131dfcbae3fd0f20a9a  uws_darwin_arm64_137.node
8555586f69116620ac17540b2a7a2459c5db1cebee5c36fd77157dd352fabf82  uws_darwin_arm64_141.node
f661b97951ffdf54324e514becda0a2740f723c9fd3c7098e812a0e7714651ed  uws_darwin_x64_115.node
fd551673f3ce1f104d7cec3ba8f628d9d04853eff1045c9d95983372ed90bca0  uws_darwin_x64_127.node
98fd7e9456e2d37d3262b05b053d673830927f91c63c0c2ae73bde8d19eef293  uws_darwin_x64_137.node
e64e8a42347b5f9861b0f2bfa0981d8e48914e9b26ec73e133ba454d9a580777  uws_darwin_x64_141.node
6bdbc8ff976b4371af1906175e9025804bacc38a414969f4f02314e6b99f206c  uws_linux_arm64_115.node
82b79bd18d1e3563de336156005bd01b7f39fc387b65173d69a29da4ee79f895  uws_linux_arm64_127.node
88618b30ddf6b2b62310db89f40a701616676352aac5e0f6184dd8ef876199ce  uws_linux_arm64_137.node
81d0186dd1549ed6a7f47e68e323573fc27d69d2920527654ce2dd993af2b0ec  uws_linux_arm64_141.node
5b126ee00bf754b02e97e4c27090365a8562c5820c93f93918ac2212d4503e91  uws_linux_x64_115.node
4b55b1f2cb7a7913febbb65a89496412b96af77e838552980092ba6b33723aac  uws_linux_x64_127.node
98128405dba2fb608448e921a979530f70c946a2cc9889c15f2fa70c2d00ab05  uws_linux_x64_137.node
813d788b347c6fd76b779d8932311ec05a044e612b4b83af220f16e6ea789683  uws_linux_x64_141.node
1ffbe9b09607fd9c90e98661383de2bd844b06d4f25ab502f3361d8d8fac559f  uws_win32_x64_115.node
b4fa85dd015d6d32655f75e9d5b2480124b7649d9265a2b84d8dafe37f88f838  uws_win32_x64_127.node
84ae72d2149e6ffa2a44063344073599027b1ce8bffaab3957903f966b0c6bb9  uws_win32_x64_137.node
59346e454b89d2d0ed1609b7581683bb9fde7edaf3b3f04fe4f6fe03e34c8afd  uws_win32_x64_141.node
`,
  'uwebsockets.js-for-old-glibc/binaries': `
3e5d284ef20c3a641e3e1e4571f983d56869fb5cc8c037242c3edc6e83d4d86b  uws_darwin_arm64_108.node
2a3aff854929518a3bc066527340ab0fc47c970cda4cdbb86f5d65b03ee83885  uws_darwin_arm64_115.node
cbf5a7dd9270b57044e5d4439d64cc3073067be3a29578ddb4e2c84417ec851e  uws_darwin_arm64_93.node
35bf16c62269afbafc6c91c06b9c3e690bdba7357b2ce0e2c34bc37f8c053a38  uws_darwin_x64_108.node
cdb95fb0b602155506b5430791c0dce4341ec1268ff23bdace8f1c77e306e4f7  uws_darwin_x64_115.node
a173ecd15cff580dcc63bb173d7ee0370b2dee9e573a3bd1ddf1ebc67f69a379  uws_darwin_x64_93.node
44f342406e3d2378a195b322d8b19ee0a766e33a19e6db424914a0b02eb05190  uws_linux_arm64_108.node
fa46518766a985c6a79daef039f40cccd8e98e9a288f2ceaf31a0a18901bbfd5  uws_linux_arm64_115.node
9262dcb6a48abf7927ed9e0af590ee953c8823af5e16108b56f6c2cce070ac64  uws_linux_arm64_93.node
9fd6ab892105269ea41a0a6cddc401f14f35c4c555dfdfc6714d14174d49771b  uws_linux_arm_108.node
e1c6907fe5877bfdc3bcaa29fa78ab9dd142c4ca8d65102fbc18c9a47e478d31  uws_linux_arm_115.node
58f0ccf097eea0015a7ece9ead82a9b756f7d904ccba53e589b9dcf30c2fb2ee  uws_linux_arm_93.node
a2d801a6ff997af0f6ee079abd1d5f8ae74f355c91f106e985e74876a78d34d9  uws_linux_x64_108.node
f158fb441f7e2e37b3ab9a56782fe37f4c0d33b5cd32e96ee5c0120ce7db7ced  uws_linux_x64_115.node
cc7f24ca9321fa29a9f1be0fa000c1d868d189bd300a16812b5cce0c147a27d6  uws_linux_x64_93.node
b31ee017129b11990e8b45f1feeda5caf6cdab386e6c4f4a6432495b8404b9fd  uws_win32_x64_108.node
6dd62494c776ba94a1265969caaa1cc88d02a9a3efb14ef35ef2a1215393cdd9  uws_win32_x64_115.node
5831a8c685bef8a155b7cc05894567cf9095fca4ac5f034dfea23302ac653f41  uws_win32_x64_93.node
`,
} as const;

const INTEGRITY = {
  'uWebSockets.js': 'sha512-SuPpEjSKZ7P58L/27BXXsrGsMwLmPupfYny8oJsOmFZ4+zX7Ca97nBPtZ3ngKbfeDZzTyi7rXri74INGerhugg==',
  'uwebsockets.js-for-old-glibc':
    'sha512-r5X0aOQcuT6pLwTRLD+mPnAM/nlKtvIK4Z+My++A8tTOR0qTjNRx8UB8jzRj3D+p9PMAp5LnpCUUGmz7/TppwA==',
} as const;

const read = (path: string): Buffer => readFileSync(join(PACKAGE_ROOT, path));

describe('native packages', () => {
  test.each(Object.entries(INTEGRITY))('%s is pinned by its integrity, and may be missing', (name, integrity) => {
    const { packages } = JSON.parse(read('package-lock.json').toString()) as { packages: Record<string, object> };
    expect(packages[`node_modules/${name}`]).toMatchObject({ integrity, optional: true });
  });

  test.each(Object.entries(SUMS))('the binaries of %s are those that were reviewed', (folder, expected) => {
    const path = join(PACKAGE_ROOT, 'node_modules', folder);
    if (!existsSync(path)) return; // optional: `npm ci` goes on without it
    const sums = readdirSync(path)
      .filter((name) => name.endsWith('.node'))
      .sort()
      .map(
        (name) =>
          `${createHash('sha256')
            .update(read(`node_modules/${folder}/${name}`))
            .digest('hex')}  ${name}\n`,
      );
    expect(sums.join('')).toBe(expected.trimStart());
  });
});

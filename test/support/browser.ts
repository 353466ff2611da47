/** A real browser for a test: the Chromium of the machine. */
import { existsSync } from 'node:fs';
import { chromium, type Browser } from 'playwright-core';

const USUAL_PLACES = [
  '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/usr/bin/google-chrome-stable', '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome', '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** Undefined when there is none: CHROMIUM_PATH names one in an unusual place. */
export const BROWSER_PATH: string | undefined = [process.env.CHROMIUM_PATH ?? '', ...USUAL_PLACES].find((path) => path !== '' && existsSync(path));

export const NO_BROWSER = 'there is no Chromium here; install it, or name it with CHROMIUM_PATH';

export async function openBrowser(): Promise<Browser> {
  if (BROWSER_PATH === undefined) throw new Error(NO_BROWSER);
  return chromium.launch({
    executablePath: BROWSER_PATH,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
  });
}

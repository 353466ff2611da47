/** A real browser for a test: the Chromium of the machine. */
import { existsSync } from 'node:fs';
import { type Browser, chromium, type Page } from 'playwright-core';
import { expect, onTestFinished } from 'vitest';

/** The headless shell first: the same engine without windows, which nobody sees, for half the work of the rest. */
const USUAL_PLACES = [
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/usr/bin/google-chrome-stable',
  '/snap/bin/chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** Undefined when there is none: CHROMIUM_PATH names one in an unusual place. */
export const BROWSER_PATH: string | undefined = [process.env.CHROMIUM_PATH ?? '', ...USUAL_PLACES].find(
  (path) => path !== '' && existsSync(path),
);

export const NO_BROWSER = 'there is no Chromium here; install it, or name it with CHROMIUM_PATH';

/**
 * Each page has a window of its own, for which Chromium also draws a menu below its address line and keeps a process in
 * reserve: three processes that no test sees, and more work than the page. The others are those that playwright turns
 * off, because only the last list counts.
 */
const FEATURES_OFF = [
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'SpareRendererForSitePerProcess',
  'AimEnabled',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'DestroyProfileOnBrowserClose',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'ThirdPartyStoragePartitioning',
];

/** A name that leads the browser to this machine, as a name server of somebody else might say. */
export const FOREIGN_HOST = 'evil.test';

async function openBrowser(): Promise<Browser> {
  if (BROWSER_PATH === undefined) throw new Error(NO_BROWSER);
  return chromium.launch({
    executablePath: BROWSER_PATH,
    // It makes a socket in its temp folder, and ends where the path of that is longer than the system takes.
    env: { ...process.env, TMPDIR: '/tmp' },
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      `--host-resolver-rules=MAP ${FOREIGN_HOST} 127.0.0.1`,
      `--disable-features=${FEATURES_OFF.join()}`,
      '--renderer-process-limit=1', // the dashboard asks to be apart from what was shown before, which here is an empty page in a process of its own
    ],
  });
}

let shared: Promise<Browser> | undefined;

/** A single browser serves all files that this process runs; it ends with the process. */
export async function sharedBrowser(): Promise<Browser> {
  const browser = await (shared ??= openBrowser());
  if (browser.isConnected()) return browser;
  shared = undefined;
  return sharedBrowser();
}

/** A page without cookies of others, for one test: any error and any dialog of a script fails that test. */
export async function openPage(browser: Browser, url: string): Promise<Page> {
  const { page, surprises } = await newPage(browser);
  onTestFinished(async () => {
    await page.context().close();
    expect(surprises).toEqual([]);
  });
  await page.goto(url);
  return page;
}

export type OpenedPage = {
  readonly page: Page;
  /** The errors and dialogs of scripts so far. */
  readonly surprises: string[];
};

/**
 * A notice goes after six seconds, in which a busy machine may not come to read it, let alone to press what is in it.
 */
const NOTICES_STAY = `{
  const { setTimeout } = globalThis;
  globalThis.setTimeout = (run, ms, ...args) => setTimeout(run, ms === 6_000 ? 600_000 : ms, ...args);
}`;

export async function newPage(browser: Browser): Promise<OpenedPage> {
  const page = await (await browser.newContext()).newPage();
  await page.context().addInitScript(NOTICES_STAY); // before a clock, which puts its own in its place
  const surprises: string[] = [];
  page.on('pageerror', (error) => surprises.push(String(error)));
  page.on('dialog', (dialog) => {
    surprises.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) surprises.push(message.text());
  });
  page.setDefaultTimeout(30_000);
  return { page, surprises };
}

// Takes the pictures of the dashboard in docs/images: starts the demo, lets its fleet work for some minutes, and has a
// Chromium look at it. Run it when the pages have changed: npm run docs:pictures
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const DEMO = fileURLToPath(new URL('./demo.mjs', import.meta.url));
const FOLDER = fileURLToPath(new URL('../docs/images/', import.meta.url));
const WORK_MS = Number(process.env.PICTURES_AFTER_SECS ?? 600) * 1_000;
const SIZE = { width: 1440, height: 900 };
const PICTURES = [
  ['dashboard-overview', '/?window=15m', 'light'],
  ['dashboard-operations', '/operations?state=active', 'light'],
  ['dashboard-approvals', '/approvals', 'light'],
];
const BROWSERS = [
  process.env.CHROMIUM_PATH ?? '',
  '/usr/bin/chromium-headless-shell',
  '/usr/bin/chromium',
  '/usr/bin/google-chrome',
];

const executablePath = BROWSERS.find((path) => path !== '' && existsSync(path));
if (executablePath === undefined)
  throw new Error('there is no Chromium here; install it, or name it with CHROMIUM_PATH');

const demo = spawn(process.execPath, [DEMO], { stdio: ['ignore', 'pipe', 'inherit'] });
let said = '';
const [url, key] = await new Promise((resolve, reject) => {
  demo.once('exit', () => reject(new Error(`the demo has ended:\n${said}`)));
  demo.stdout.on('data', (chunk) => {
    said += chunk;
    const [, shownUrl, shownKey] = /URL +(\S+)\n +Key +(\S+)\n/.exec(said) ?? [];
    if (shownKey !== undefined) resolve([shownUrl, shownKey]);
  });
});
console.log(`the fleet works for ${WORK_MS / 1_000} s`);
await sleep(WORK_MS);
mkdirSync(FOLDER, { recursive: true });
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu'] });
for (const [name, path, colorScheme] of PICTURES) {
  const context = await browser.newContext({ colorScheme, viewport: SIZE });
  const page = await context.newPage();
  await page.goto(url + path);
  await page.getByRole('button', { name: 'API key' }).click();
  await page.getByRole('textbox', { name: 'API key' }).fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
  // The request that differs from what was approved last.
  if (path === '/approvals')
    await page
      .getByRole('link', { name: /deploy\.run.*acme/ })
      .first()
      .click();
  await sleep(2_500);
  await page.screenshot({ path: `${FOLDER}${name}.png` });
  await context.close();
}
await browser.close();
demo.removeAllListeners('exit');
demo.kill('SIGTERM');

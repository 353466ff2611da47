import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { signIn, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of many operations are skipped: ${NO_BROWSER}`);

const frame = (at: number, state: string, second: number): string =>
  JSON.stringify({
    id: `f-${at}-${second}`,
    event_type: 'ops_change',
    org_id: `org-${at % 3}`,
    agent_id: `agent-${at % 200}`,
    timestamp: new Date().toISOString(),
    payload: {
      ...{ op_id: `op-${at}:s`, state, team_id: 'search', action: 'tool.call', resource: `web_search ${at}` },
      registered_at: new Date(1_760_000_000_000 + at).toISOString(),
      updated_at: new Date(1_760_000_000_000 + at + second * 1_000).toISOString(),
      ended: null,
    },
  });

/** How long the page takes between two pictures, while it is scrolled. */
const FRAMES = `new Promise((done) => {
  const list = document.querySelector('.ops-scroll');
  const times = [];
  let last = performance.now();
  const step = (now) => {
    times.push(now - last);
    last = now;
    list.scrollTop += 60;
    if (times.length < 120) requestAnimationFrame(step);
    else done(times.slice(2).sort((one, other) => one - other));
  };
  requestAnimationFrame(step);
})`;

describe.skipIf(BROWSER_PATH === undefined)('many operations at the dashboard', () => {
  const { gateway, openPage } = useDashboard();

  test('10,000 rows are scrolled smoothly, and 2,000 changes a second are kept up with', async () => {
    const page = await openPage(`${gateway().url}/operations`);
    let send = (_message: string): void => undefined;
    await page.routeWebSocket(/\/api\/v1\/stream/, (socket) => {
      socket.connectToServer();
      send = (message) => socket.send(message);
    });
    await signIn(page, ADMIN_KEY);
    for (let at = 0; at < 10_000; at += 1) send(frame(at, 'running', 0));
    await page.getByText(/^10,000 operations/).waitFor();
    expect(await page.locator('tr[data-op]').count()).toBeLessThan(60);
    const times = (await page.evaluate(FRAMES)) as number[];
    // Half of all pictures within two of the 60 that a second has: a machine that tests beside has not more to give.
    expect(times[Math.floor(times.length / 2)]).toBeLessThan(34);
    const startedAt = Date.now();
    for (let second = 1; second <= 3; second += 1) {
      for (let at = 0; at < 2_000; at += 1) send(frame(at, second % 2 === 1 ? 'paused' : 'running', second));
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, startedAt + second * 1_000 - Date.now())));
    }
    await eventually(async () => expect(await page.getByText(/8,000 running · 2,000 paused/).count()).toBe(1), 5_000);
  });

  test('all can be reached, and a filter finds one of them', async () => {
    const page = await openPage(`${gateway().url}/operations`);
    let send = (_message: string): void => undefined;
    await page.routeWebSocket(/\/api\/v1\/stream/, (socket) => {
      socket.connectToServer();
      send = (message) => socket.send(message);
    });
    await signIn(page, ADMIN_KEY);
    for (let at = 0; at < 500; at += 1) send(frame(at, 'running', 0));
    await page.getByText(/^500 operations/).waitFor();
    await page.locator('.ops-scroll').evaluate((list: { scrollTop: number; scrollHeight: number }) => {
      list.scrollTop = list.scrollHeight;
    });
    await page.locator('tr[data-op="op-0:s"]').waitFor();
    await page.getByRole('searchbox', { name: 'Search' }).fill('op-123:s');
    await page.getByText(/^1 of 500 operations/).waitFor();
  });
});

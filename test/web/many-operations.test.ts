import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { signIn, useDashboard } from '../support/dashboard.ts';
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

/** The page takes events from the test as if they had come over its stream: one call brings thousands. */
const EAVESDROP = `{
  const { WebSocket } = window;
  let stream;
  window.WebSocket = class extends WebSocket {
    constructor(url) {
      super(url);
      stream = this;
    }
  };
  window.receive = (messages) => {
    for (const data of messages) stream.dispatchEvent(new MessageEvent('message', { data }));
  };
}`;

const receive = (page: Page, messages: readonly string[]): Promise<void> =>
  page.evaluate(`receive(${JSON.stringify(messages)})`);

const STEPS = 60;
const SCROLL = `new Promise((done) => {
  const list = document.querySelector('.ops-scroll');
  let steps = 0;
  const step = () => {
    list.scrollTop += 60;
    steps += 1;
    requestAnimationFrame(steps < ${STEPS} ? step : () => done());
  };
  requestAnimationFrame(step);
})`;

/** The processor time of a page's thread so far: a machine that is busy with other things adds nothing to it. */
async function processorOf(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  return async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration')!.value * 1_000;
  };
}

describe.skipIf(BROWSER_PATH === undefined)('many operations at the dashboard', () => {
  const { gateway, openPage } = useDashboard();

  async function listening(): Promise<Page> {
    const page = await openPage(`${gateway().url}/operations`);
    await page.evaluate(EAVESDROP);
    await signIn(page, ADMIN_KEY);
    return page;
  }
  const running = (count: number): readonly string[] =>
    Array.from({ length: count }, (_, at) => frame(at, 'running', 0));

  test('10,000 rows are scrolled smoothly, and 2,000 changes a second are kept up with', async () => {
    const page = await listening();
    await receive(page, running(10_000));
    await page.getByText(/^10,000 operations/).waitFor();
    expect(await page.locator('tr[data-op]').count()).toBeLessThan(60);
    const processorMs = await processorOf(page);
    const idleMs = await processorMs();
    await page.evaluate(SCROLL);
    const scrolledMs = (await processorMs()) - idleMs;
    expect(scrolledMs).toBeGreaterThan(0);
    expect(scrolledMs / STEPS).toBeLessThan(34); // two of the 60 pictures that a second has

    const beforeMs = await processorMs();
    for (let tenth = 0; tenth < 10; tenth += 1) {
      const changes = Array.from({ length: 200 }, (_, at) => frame(tenth * 200 + at, 'paused', 1));
      await receive(page, changes);
      // It is drawn each time.
      await page.getByText(`${(9_800 - tenth * 200).toLocaleString('en-US')} running`).waitFor();
    }
    await page.getByText(/8,000 running · 2,000 paused/).waitFor();
    expect((await processorMs()) - beforeMs).toBeLessThan(1_000);
  });

  test('all can be reached, and a filter finds one of them', async () => {
    const page = await listening();
    await receive(page, running(500));
    await page.getByText(/^500 operations/).waitFor();
    await page.locator('.ops-scroll').evaluate((list: { scrollTop: number; scrollHeight: number }) => {
      list.scrollTop = list.scrollHeight;
    });
    await page.locator('tr[data-op="op-0:s"]').waitFor();
    await page.getByRole('searchbox', { name: 'Search' }).fill('op-123:s');
    await page.getByText(/^1 of 500 operations/).waitFor();
  });
});

import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of the audit log at the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('the audit log at the dashboard', () => {
  const { underClock } = useDashboard();

  test('a page that followed for days joins loaded entries without a gap', async () => {
    const page = await underClock();
    let newest = 300;
    await page.route('**/api/v1/logs?*', (route) => {
      const before = Number(new URL(route.request().url()).searchParams.get('cursor') ?? newest + 1);
      return route.fulfill({
        json: {
          entries: Array.from({ length: 100 }, (_, index) => entry(before - 1 - index)),
          next_cursor: String(before - 100),
        },
      });
    });
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    await page.locator('tr[data-id="300"]').waitFor();
    for (let looks = 0; looks < 22; looks += 1) {
      newest += 90;
      await page.clock.runFor(2_000);
      await page.locator(`tr[data-id="${newest}"]`).waitFor();
    }
    const before = await shownIds(page);
    expect(before.length).toBeLessThanOrEqual(2_000);
    await page.getByRole('button', { name: 'Load more' }).click();
    await eventually(async () => expect((await shownIds(page)).length).toBe(before.length + 100));
    expect(await shownIds(page)).toEqual(Array.from({ length: before.length + 100 }, (_, index) => newest - index));
  });

  test('following the log shows when new entries cannot be read, while that lasts', async () => {
    const page = await underClock();
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    await page.locator('tr[data-id]').first().waitFor();
    await page.route('**/api/v1/logs?*', (route) =>
      route.fulfill({ status: 503, json: { detail: 'the log is being restored' } }),
    );
    await page.clock.runFor(2_000);
    const notice = page.getByText('Could not load new entries. Retrying… The log is being restored');
    await notice.waitFor();
    await page.unroute('**/api/v1/logs?*');
    await page.clock.runFor(2_000);
    await notice.waitFor({ state: 'detached' });
  });

  test('typing in a filter changes nothing until it is applied', async () => {
    const page = await underClock();
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    await page.locator('tr[data-id]').first().waitFor();
    const asked: string[] = [];
    page.on('request', (request) => {
      if (/\/api\/v1\/(logs|budgets)\?/.test(request.url()))
        asked.push(new URL(request.url()).searchParams.get('org_id') ?? '');
    });
    await page.getByLabel('Org').pressSequentially('ac');
    for (let looks = 0; looks < 3; looks += 1) await page.clock.runFor(2_000);
    await eventually(() => expect(asked.length).toBeGreaterThan(0));
    expect(new Set(asked)).toEqual(new Set(['']));
    await page.getByLabel('Org').fill('');
    await page.getByRole('link', { name: 'Budgets' }).click();
    await page.getByRole('cell', { name: 'All orgs' }).waitFor();
    await page.getByLabel('Org').pressSequentially('ac');
    asked.length = 0;
    await page.clock.runFor(12_000);
    await eventually(() => expect(asked.length).toBeGreaterThan(0));
    expect(new Set(asked)).toEqual(new Set(['']));
    await page.getByLabel('Org').press('Enter');
    await eventually(() => expect(asked.at(-1)).toBe('ac'));
  });

  test('a late answer of the audit log makes no entry appear twice', async () => {
    const page = await underClock();
    let answer = (): void => {};
    await page.route('**/api/v1/logs?*', async (route) => {
      const isNarrow = new URL(route.request().url()).searchParams.get('decision') === 'deny';
      if (isNarrow)
        await new Promise<void>((resolve) => {
          answer = resolve;
        });
      return route.fulfill({ json: { entries: (isNarrow ? [1] : [3, 2, 1]).map(entry), next_cursor: null } });
    });
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    await page.getByRole('button', { name: 'OpPaused, entry 3' }).waitFor();
    await page.getByLabel('Decision').selectOption('deny');
    await page.getByLabel('Decision').selectOption('');
    await page.locator('tbody:not(.earlier)').waitFor();
    const answered = page.waitForResponse(/decision=deny/);
    answer();
    await answered;
    const looked = page.waitForResponse(/logs\?per_page/);
    await page.clock.fastForward(3_000);
    await looked;
    await page.clock.fastForward(3_000);
    expect(await page.getByRole('button', { name: /^OpPaused, entry/ }).count()).toBe(3);
  });
});

const entry = (id: number) => ({
  id,
  timestamp: '2026-11-22T00:00:00Z',
  event_type: 'OpPaused',
  lineage: { org_id: null, team_id: 't', agent_id: 'a' },
  op_id: `t:${id}`,
  decision: null,
  reason: null,
  policy: null,
  rule_id: null,
  actor: 'key:k',
  payload: {},
  prev_hash: '',
  hash: '',
});

const shownIds = (page: Page): Promise<number[]> =>
  page
    .locator('tr[data-id]')
    .evaluateAll((rows: { dataset: { id: string } }[]) => rows.map(({ dataset }) => Number(dataset.id)));

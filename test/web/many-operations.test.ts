import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { focusOn, rowOf, stateOf, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of many operations at the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('many operations at once', () => {
  const { agent, gateway, signedIn } = useDashboard();

  test('all operations of a runaway agent are paused, then terminated, after a question, and those of no other', async () => {
    const page = await signedIn();
    const wild = await agent('acme', 'search', 'wild');
    for (const trace of ['wild-1', 'wild-2', 'wild-3']) await wild(trace);
    await (await agent('acme', 'search', 'calm'))('calm-1');
    await stateOf(rowOf(page, 'calm-1:s'), 'running');
    const all = page.getByRole('group', { name: 'All operations that match the filter' });
    expect(await all.count()).toBe(0); // nothing is filtered: it would be everybody
    await page.getByLabel('Search').fill('acme search wild');
    await all.getByRole('button', { name: 'Pause all' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.textContent()).toContain('Pause 3 operations?Their agents are told at once.acme / search / wild');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await page.getByText('paused', { exact: true }).count()).toBe(1); // the filter's word, in no row
    await all.getByRole('button', { name: 'Pause all' }).click();
    await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
    for (const opId of ['wild-1:s', 'wild-2:s', 'wild-3:s']) await stateOf(rowOf(page, opId), 'paused');
    await all.getByRole('button', { name: 'Pause all' }).click();
    await page.getByText('None of these can be paused.').waitFor();
    await gateway().call('POST', '/api/v1/ops/wild-2:s/resume');
    await stateOf(rowOf(page, 'wild-2:s'), 'running');
    await all.getByRole('button', { name: 'Terminate all' }).click();
    await dialog.getByRole('button', { name: 'Terminate' }).click();
    await eventually(async () => {
      const { ops } = (await gateway().call('GET', '/api/v1/ops')).body as { ops: { op_id: string; state: string }[] };
      expect(Object.fromEntries(ops.map(({ op_id: id, state }) => [id, state]))).toEqual({ 'wild-1:s': 'terminated', 'wild-2:s': 'terminated', 'wild-3:s': 'terminated', 'calm-1:s': 'running' });
    }, 15_000);
    await page.getByLabel('Search').fill('');
    await all.waitFor({ state: 'hidden' });
  });

  test('what was paused together is resumed together', async () => {
    const page = await signedIn();
    const held = await agent('acme', 'search', 'held');
    for (const trace of ['held-1', 'held-2']) {
      await held(trace);
      await gateway().call('POST', `/api/v1/ops/${trace}:s/pause`);
    }
    for (const trace of ['held-1', 'held-2']) await stateOf(rowOf(page, `${trace}:s`), 'paused');
    await page.getByLabel('Search').fill('acme search held');
    const all = page.getByRole('group', { name: 'All operations that match the filter' });
    await all.getByRole('button', { name: 'Resume all' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.textContent()).toContain('Resume 2 operations?Their agents are told at once.acme / search / held');
    await dialog.getByRole('button', { name: 'Resume', exact: true }).click();
    for (const trace of ['held-1', 'held-2']) await stateOf(rowOf(page, `${trace}:s`), 'running');
    await all.getByRole('button', { name: 'Resume all' }).click();
    await page.getByText('None of these can be resumed.').waitFor();
  });

  test('the keyboard stays where it was when nothing is left that matches the filter', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'last'))('last-1');
    await page.getByLabel('Search').fill('last-1');
    await page.getByLabel('State').selectOption('running');
    await rowOf(page, 'last-1:s').waitFor();
    const button = page.getByRole('button', { name: 'Terminate all' });
    await button.press('Enter');
    await page.getByRole('dialog').getByRole('button', { name: 'Terminate' }).press('Enter');
    await page.getByText('No operations match the filter.').waitFor();
    await focusOn(button);
  });

  test('of a long id both ends are seen, so that the operations of one trace are told apart', async () => {
    const page = await signedIn();
    await page.setViewportSize({ width: 1024, height: 768 });
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    await gateway().call('POST', '/api/v1/ops', { op_id: `${trace}:00f067aa0ba902b7`, agent: { org_id: 'acme', team_id: 't', agent_id: 'a' } });
    const row = rowOf(page, `${trace}:00f067aa0ba902b7`);
    await row.waitFor();
    const cell = row.locator('td').first();
    expect(await cell.evaluate(({ scrollWidth, clientWidth }: { scrollWidth: number; clientWidth: number }) => scrollWidth <= clientWidth)).toBe(true);
    const [whole, half] = await cell.locator('bdi').evaluateAll((halves: { scrollWidth: number; clientWidth: number; offsetWidth: number }[]) => halves.map(({ scrollWidth, offsetWidth }) => offsetWidth >= 60 && scrollWidth > offsetWidth));
    expect([whole, half]).toEqual([true, false]);
    expect(await cell.textContent()).toBe(`${trace}:00f067aa0ba902b7`);
  });
});

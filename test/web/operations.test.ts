import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { addressBecomes, goTo, rowOf, stateOf, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of operations at the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('operations at the dashboard', () => {
  const { agent, gateway, openPage, signedIn } = useDashboard();
  const opOf = async (id: string) => (await gateway().call('GET', `/api/v1/ops/${id}`)).body;

  test('appear with what they do first, and are controlled from their rows', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'crawler'))('row-1');
    const row = rowOf(page, 'row-1:s');
    await row.getByText('web_search').waitFor();
    await stateOf(row, 'running');
    expect(await row.locator('td').first().textContent()).toBe('tool.callweb_search');
    const widths = await page
      .locator('table.ops thead th')
      .evaluateAll((cells: { offsetWidth: number }[]) => cells.map(({ offsetWidth }) => offsetWidth));
    expect(Math.max(...widths)).toBe(widths[0]);
    const dialog = page.getByRole('dialog');
    await row.getByRole('button', { name: 'Pause tool.call web_search of acme / search / crawler' }).click();
    await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
    await stateOf(row, 'paused');
    await row.getByRole('button', { name: /^Resume/ }).click();
    await dialog.getByRole('button', { name: 'Resume', exact: true }).click();
    await stateOf(row, 'running');
    await row.getByRole('button', { name: /^Terminate/ }).click();
    await dialog.getByRole('button', { name: 'Terminate', exact: true }).click();
    await stateOf(row, 'terminated');
    expect((await opOf('row-1:s')).ended).toBe('terminated');
  });

  test('are told by the words of how they ended, a denial with its reason', async () => {
    const page = await signedIn();
    const ask = await agent('acme', 'search', 'ends');
    await ask('ends-1');
    await gateway().call('POST', '/api/v1/ops/ends-1:s/complete', {
      outcome: 'OUTCOME_FAILURE',
      error: 'no such page',
    });
    await ask('ends-2', 'launch_rocket');
    await stateOf(rowOf(page, 'ends-1:s'), 'failed');
    await rowOf(page, 'ends-1:s').getByText('no such page').waitFor();
    await stateOf(rowOf(page, 'ends-2:s'), 'denied');
    await rowOf(page, 'ends-2:s')
      .getByText(/allows/)
      .waitFor();
  });

  test('are filtered by the names of the API, in the address', async () => {
    for (const name of ['found', 'found-not']) await (await agent('filtered', 'search', name))(`${name}-1`);
    const page = await signedIn();
    await goTo(page, '/operations?org_id=filtered&agent_id=found&action=tool.*');
    await rowOf(page, 'found-1:s').waitFor();
    expect(await page.locator('tr[data-op]').count()).toBe(1);
    await page.getByRole('button', { name: 'Clear' }).click();
    await addressBecomes(page, '/operations');
    await page.getByRole('searchbox', { name: 'Search' }).fill('filtered/search/found');
    await addressBecomes(page, '/operations?q=filtered%2Fsearch%2Ffound');
    await page.getByText(/^1 of /).waitFor();
    await page.getByLabel('State').selectOption('denied');
    await addressBecomes(page, '/operations?q=filtered%2Fsearch%2Ffound&ended=denied');
    await page.getByText('No operations match the filter.').waitFor();
    await page.reload();
    expect(await page.getByLabel('State').inputValue()).toBe('denied');
  });

  test('are paused, resumed and terminated together by a filter, once confirmed', async () => {
    const page = await signedIn();
    const wild = await agent('acme', 'search', 'wild');
    for (const trace of ['wild-1', 'wild-2', 'wild-3']) await wild(trace);
    expect(await page.getByRole('button', { name: 'Pause all' }).count()).toBe(0); // it would be everybody
    await page.getByRole('searchbox', { name: 'Search' }).fill('acme search wild');
    const dialog = page.getByRole('dialog');
    for (const [verb, state] of [
      ['Pause', 'paused'],
      ['Resume', 'running'],
      ['Terminate', 'terminated'],
    ] as const) {
      await page.getByRole('button', { name: `${verb} all` }).click();
      await dialog.getByText(`${verb} 3 operations?`).waitFor();
      await dialog.getByText('acme / search / wild · 3').waitFor();
      await dialog.getByRole('button', { name: verb, exact: true }).click();
      for (const opId of ['wild-1:s', 'wild-2:s', 'wild-3:s']) await stateOf(rowOf(page, opId), state);
    }
    await page.getByText('3 operations were terminated.').waitFor();
  });

  test('show a refused control as it was, with the reason in the dialog', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'refused'))('refused-1');
    await page.route('**/api/v1/ops/*/pause*', (route) =>
      route.fulfill({ status: 503, contentType: 'application/problem+json', body: '{"detail":"out of order"}' }),
    );
    const row = rowOf(page, 'refused-1:s');
    await row.getByRole('button', { name: /^Pause/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByRole('dialog').getByRole('alert').getByText('Out of order').waitFor();
    await page.keyboard.press('Escape');
    await stateOf(row, 'running');
  });

  test('have a page each, with controls, details and a timeline that goes on', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'told'))('told-1');
    await rowOf(page, 'told-1:s')
      .getByRole('link', { name: /web_search/ })
      .click();
    await addressBecomes(page, '/operations/told-1%3As?org_id=acme');
    await page.getByRole('heading', { name: 'tool.call web_search' }).waitFor();
    await page.reload();
    const timeline = page.getByRole('region', { name: 'Timeline' });
    await timeline.getByText('Allowed', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Pause', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click();
    await timeline.getByText('Paused', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Terminate', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Terminate', exact: true }).click();
    await timeline.getByText('Ended: terminated').waitFor();
    await page.getByRole('link', { name: 'acme / search / told' }).first().click();
    await page.getByRole('heading', { name: 'acme / search / told' }).waitFor();
    await goTo(page, '/operations/unknown%3As');
    await page.getByText('No operation of this id is known.').waitFor();
  });

  test('hold still under the keyboard, and the new ones wait to be shown', async () => {
    const page = await openPage(`${gateway().url}/operations?q=held-`);
    const ask = await agent('acme', 'search', 'held');
    await ask('held-1');
    await page.getByRole('textbox', { name: 'API key' }).fill(ADMIN_KEY);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await rowOf(page, 'held-1:s')
      .getByRole('button', { name: /^Pause/ })
      .focus();
    await page.keyboard.press('Shift+Tab'); // so that the focus is seen
    await page.keyboard.press('Tab');
    await ask('held-2');
    await page.getByRole('button', { name: 'Show 1 new operation' }).click();
    await rowOf(page, 'held-2:s').waitFor();
  });

  test('are controlled by the keyboard alone, from the palette to the dialog', async () => {
    const page = await signedIn();
    await (await agent('acme', 'keys', 'typed'))('typed-1');
    await rowOf(page, 'typed-1:s').waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Jump to' }).fill('typed web');
    await page
      .getByRole('option', { name: /acme \/ keys \/ typed/ })
      .first()
      .waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'tool.call web_search' }).waitFor();
    await page.getByRole('button', { name: 'Terminate', exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').getByText('Terminate this operation?').waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await eventually(async () => expect((await opOf('typed-1:s')).ended).toBe('terminated'));
  });

  test('show names as text, whatever they hold', async () => {
    const page = await signedIn();
    const name = '<img src=x onerror=alert(1)>';
    await (await agent('acme', 'search', '<b>bold</b>'.replaceAll('/', '⁄')))('named-1');
    await gateway().call('POST', '/api/v1/ops', {
      op_id: 'named-2:s',
      agent: { org_id: 'acme', team_id: 'search', agent_id: name.replaceAll(' ', '\u00b7') },
    });
    await rowOf(page, 'named-1:s').getByText('acme / search / <b>bold<⁄b>').waitFor();
    await rowOf(page, 'named-2:s').getByText('<img·src=x·onerror=alert(1)>').waitFor();
    await page.getByRole('searchbox', { name: 'Search' }).fill('\u202efdp.exe');
    await page.getByText('No operations match the filter.').waitFor();
  });
});

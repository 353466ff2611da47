import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { hashBecomes, holdBack, rowOf, stateOf, useDashboard } from '../support/dashboard.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of agents at the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('agents at the dashboard', () => {
  const { agent, gateway, signedIn } = useDashboard();

  test("an agent's count of operations in flight links to exactly those", async () => {
    const ask = await agent('acme', 'counted', 'worker');
    for (const trace of ['counted-1', 'counted-2', 'counted-3']) await ask(trace);
    await ask('counted-4', 'launch_rocket'); // denied, and so at an end
    await gateway().call('POST', '/api/v1/ops/counted-2:s/pause');
    await gateway().call('POST', '/api/v1/ops/counted-3:s/complete');
    const page = await signedIn();
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('row', { name: 'acme / counted / worker' }).getByRole('link', { name: '2' }).click();
    await page.getByText(/^2 of /).waitFor();
    expect(
      (
        await page
          .locator('tr[data-op]')
          .evaluateAll((rows: { dataset: { op: string } }[]) => rows.map(({ dataset }) => dataset.op))
      ).sort(),
    ).toEqual(['counted-1:s', 'counted-2:s']);
    expect(await page.getByLabel('State').locator('option:checked').textContent()).toBe('in flight');
    await page.getByLabel('State').selectOption('');
    await page.getByText(/^4 operations/).waitFor();
  });

  test('an agent is found by its id in any org and team', async () => {
    for (const [org, team, name] of [
      ['acme', 'one', 'wanted'],
      ['globex', 'two', 'wanted'],
      ['acme', 'one', 'other'],
    ] as const)
      await agent(org, team, name);
    const page = await signedIn();
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('cell', { name: 'acme / one / other', exact: true }).waitFor();
    await page.getByRole('searchbox', { name: 'Agent' }).fill('wanted');
    await page.getByRole('searchbox', { name: 'Agent' }).press('Enter');
    await page.getByRole('cell', { name: 'acme / one / other', exact: true }).waitFor({ state: 'detached' });
    expect(await page.locator('tbody td.strong').allTextContents()).toEqual([
      'acme / one / wanted',
      'globex / two / wanted',
    ]);
    await hashBecomes(page, '#/agents?agent_id=wanted');
  });

  test('removing a running agent says what stays open and links to it', async () => {
    const check = await agent('acme', 'leaving', 'runner');
    const page = await signedIn();
    await page.getByRole('link', { name: 'Agents' }).click();
    await page
      .getByRole('row', { name: 'acme / leaving / runner' })
      .getByRole('cell', { name: '0', exact: true })
      .waitFor();
    for (const trace of ['left-1', 'left-2']) await check(trace); // of which the list that is open tells nothing
    await page.getByRole('button', { name: 'Remove acme / leaving / runner' }).dblclick();
    await page
      .getByRole('dialog')
      .getByText('Its 2 operations in flight stay open. Terminate them first: a removed agent cannot be told to stop.')
      .waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText('acme / leaving / runner was removed. It left 2 operations open.').waitFor();
    await page.getByRole('link', { name: '2 operations' }).click();
    await stateOf(rowOf(page, 'left-1:s'), 'running');
    await page.getByRole('button', { name: 'Terminate all' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Terminate' }).click();
    await page.getByText('2 operations were terminated.').waitFor();
    expect((await gateway().call('GET', '/api/v1/ops/left-2:s')).body.state).toBe('terminated');
  });

  test('registering a registered agent says so, and its token stays valid', async () => {
    const check = await agent('acme', 'known', 'worker');
    const page = await signedIn();
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('button', { name: 'Register agent' }).click();
    const form = page.getByRole('dialog', { name: 'Register an agent' });
    await form.getByLabel('Org').fill('acme');
    await form.getByLabel('Team').fill('known');
    await form.getByLabel('Agent', { exact: true }).fill('worker');
    await form.getByRole('button', { name: 'Register' }).click();
    await form.getByText('This agent is already registered.').waitFor();
    await check('after-the-form');
    expect((await gateway().call('GET', '/api/v1/ops/after-the-form:s')).body.state).toBe('running');
    await form.getByLabel('Org').fill('');
    await form.getByRole('button', { name: 'Register' }).click();
    await page.getByRole('dialog', { name: 'Agent token' }).waitFor();
    await page.getByRole('button', { name: 'Done' }).click();
  });

  test('a registration called off before it was sent is not made', async () => {
    const page = await signedIn();
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('button', { name: 'Register agent' }).click();
    await page.getByRole('dialog').getByLabel('Team').fill('called-off');
    await page.getByRole('dialog').getByLabel('Agent', { exact: true }).fill('early');
    const held = await holdBack(page, /agents\?.*team_id=called-off/);
    await page.getByRole('dialog').getByRole('button', { name: 'Register' }).click();
    await held.asked;
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await held.release();
    const { body } = await gateway().call('GET', '/api/v1/agents?team_id=called-off');
    expect(body.agents).toEqual([]);
  });
});

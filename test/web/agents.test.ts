import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { useDashboard } from '../support/dashboard.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of agents at the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('agents at the dashboard', () => {
  const { agent, signedIn } = useDashboard();

  test('an agent is found by its id, in whichever org and team it is', async () => {
    for (const [org, team, name] of [['acme', 'one', 'wanted'], ['globex', 'two', 'wanted'], ['acme', 'one', 'other']] as const) await agent(org, team, name);
    const page = await signedIn();
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('cell', { name: 'acme / one / other', exact: true }).waitFor();
    await page.getByRole('searchbox', { name: 'Agent' }).fill('wanted');
    await page.getByRole('searchbox', { name: 'Agent' }).press('Enter');
    await page.getByRole('cell', { name: 'acme / one / other', exact: true }).waitFor({ state: 'detached' });
    expect(await page.locator('tbody td.strong').allTextContents()).toEqual(['acme / one / wanted', 'globex / two / wanted']);
    expect(new URL(page.url()).hash).toBe('#/agents?agent_id=wanted');
  });
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { addressBecomes, goTo, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of policies at the dashboard are skipped: ${NO_BROWSER}`);

const GOOD = `name: tools
scope: global
rules:
  - { id: search, actions: ["tool.call"], resources: ["web_search"], effect: allow }
  - { id: no-rockets, actions: ["tool.call"], resources: ["launch_rocket"], effect: deny, reason: no rockets }
`;
const BAD = GOOD.replace('effect: allow', 'effect: alow');

describe.skipIf(BROWSER_PATH === undefined)('policies at the dashboard', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-policies-'));
  const file = join(folder, 'tools.yaml');
  writeFileSync(file, GOOD);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const { agent, gateway, signedIn } = useDashboard({ SVC_POLICY_PATH: folder });

  test('are shown by document and rule, with hits, and their source', async () => {
    await (await agent('acme', 'search', 'denied'))('hit-1', 'launch_rocket');
    const page = await signedIn();
    await goTo(page, '/policies');
    const shown = page.getByRole('region', { name: 'Document tools' });
    await shown.getByText('no rockets').waitFor();
    await shown.getByRole('link', { name: /hits? of no-rockets/ }).click();
    await addressBecomes(page, '/audit?policy=tools&rule_id=no-rockets');
    await goTo(page, '/policies?policy=tools&rule_id=no-rockets');
    await shown.getByRole('button', { name: 'Source' }).click();
    await shown.locator('.marked').getByText('no-rockets').first().waitFor();
  });

  test('say what they would decide, and why, by the set in force or by a draft', async () => {
    const page = await signedIn();
    await goTo(page, '/policies');
    const playground = page.getByRole('region', { name: 'Playground' });
    await playground.getByLabel('Agent').fill('acme/search');
    await playground.getByLabel('Action').fill('tool.call');
    await playground.getByLabel('Resource').fill('launch_rocket');
    await playground.getByRole('button', { name: 'Explain' }).click();
    await playground.getByRole('alert').getByText('org/team/agent').waitFor();
    await playground.getByLabel('Agent').fill('acme/search/crawler');
    await playground.getByLabel('Attributes').fill('{"size": ');
    await playground.getByRole('button', { name: 'Explain' }).click();
    await playground.getByRole('alert').getByText('JSON object').waitFor();
    await playground.getByLabel('Attributes').fill('{"size": 3}');
    await playground.getByRole('button', { name: 'Explain' }).click();
    await playground.getByText('deny', { exact: true }).first().waitFor();
    await playground.getByText('← decided').waitFor();
    const before = (await gateway().call('GET', '/api/v1/policies')).body.version;
    await playground.getByLabel('Against a draft').check();
    const draft = playground.getByLabel(/^Draft of/);
    await draft.fill(GOOD.replace('effect: deny', 'effect: allow').replace(', reason: no rockets', ''));
    await playground.getByRole('button', { name: 'Explain' }).click();
    await playground.getByText('By the draft').waitFor();
    await playground.getByText('allow', { exact: true }).first().waitFor();
    await draft.fill(BAD);
    await playground.getByRole('button', { name: 'Explain' }).click();
    await playground
      .getByRole('alert')
      .getByText(/yaml:4:\d+/)
      .waitFor();
    expect((await gateway().call('GET', '/api/v1/policies')).body.version).toBe(before);
  });

  test('report a failed reload live, with file and line, until it succeeds', async () => {
    const page = await signedIn();
    await goTo(page, '/policies');
    await page.getByRole('button', { name: 'Reload files' }).waitFor();
    writeFileSync(file, BAD);
    await page.getByText('Not reloaded: the previous policies stay in force').waitFor();
    await page
      .getByRole('main')
      .getByText(/tools\.yaml:4:\d+/)
      .waitFor();
    await page.reload();
    await page
      .getByRole('main')
      .getByText(/tools\.yaml:4:\d+/)
      .waitFor();
    await eventually(async () => expect(await page.title()).toBe('(1) Policies · svc-gateway'));
    writeFileSync(file, GOOD);
    await page.getByText('Not reloaded: the previous policies stay in force').waitFor({ state: 'detached' });
    await eventually(async () => expect(await page.title()).toBe('Policies · svc-gateway'));
    await page.getByRole('button', { name: 'Reload files' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Reload' }).click();
    await page.getByText('Policies reloaded: nothing has changed.').waitFor();
  });

  test('show who changed which rule, and what a shadow would decide otherwise', async () => {
    writeFileSync(file, GOOD.replace('reason: no rockets', 'reason: never'));
    const version = await eventually(async () => {
      await gateway().call('POST', '/api/v1/policies/reload');
      const { body } = await gateway().call('GET', '/api/v1/policies/rules?policy=tools');
      expect(body.rules[1].reason).toBe('never');
      const [newest] = (await gateway().call('GET', '/api/v1/policies/versions')).body.versions;
      expect(newest).toMatchObject({ version: body.version, until: null });
      return String(newest.version);
    });
    const allows = GOOD.replace('effect: deny, reason: no rockets', 'effect: allow');
    await gateway().call('PUT', '/api/v1/policies/shadow', { files: [{ name: 'tools.yaml', text: allows }] });
    await (await agent('acme', 'search', 'shadowed'))('hit-2', 'launch_rocket');
    const page = await signedIn();
    await goTo(page, '/policies');
    const history = page.getByRole('region', { name: 'History' });
    await history.getByRole('link', { name: version.slice(0, 12) }).click();
    const changes = history.getByRole('region', { name: `Changes of ${version.slice(0, 12)}` });
    await changes.getByText('tools · no-rockets').waitFor();
    await changes.locator('del').getByText('no rockets').waitFor();
    await changes.locator('ins').getByText('never').waitFor();
    const shadow = page.getByRole('region', { name: 'Shadow' });
    await shadow
      .getByRole('row', { name: /tools · no-rockets.*deny.*allow/ })
      .getByRole('link', { name: '1' })
      .click();
    await addressBecomes(page, '/audit?shadow=differs&decision=deny');
    await page.getByRole('main').getByText('launch_rocket').first().waitFor();
    await goTo(page, '/policies');
    await shadow.getByRole('button', { name: 'End the shadow' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End it' }).click();
    await shadow.waitFor({ state: 'detached' });
    expect((await gateway().call('GET', '/api/v1/policies/shadow')).status).toBe(404);
  });
});

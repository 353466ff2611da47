import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { linesOf, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of long names at the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('long names at the dashboard', () => {
  const { gateway, signedIn } = useDashboard();

  test('a long name does not displace others among the busiest agents', async () => {
    const page = await signedIn();
    const long = `escalation-${'x'.repeat(100)}`;
    for (const [index, names] of [
      ['short', 'brief', long],
      [long, 'short', 'brief'],
    ].entries()) {
      for (const [nth, name] of names.entries()) {
        for (let op = 0; op < 4 - nth; op += 1)
          await gateway().call('POST', '/api/v1/ops', {
            op_id: `crowd-${index}-${nth}-${op}:s`,
            agent: { org_id: 'acme', team_id: `crowd-${index}`, agent_id: name },
          });
      }
      await page.getByLabel('Search').fill(`acme/crowd-${index}`);
      const shown = page.getByRole('group', { name: 'Busiest agents' }).getByRole('button');
      await eventually(async () =>
        expect(await shown.allTextContents()).toEqual(
          names.map((name, nth) => `acme / crowd-${index} / ${name}${4 - nth}`),
        ),
      );
      for (const width of [1440, 1280]) {
        await page.setViewportSize({ width, height: 800 });
        const widths = await shown
          .locator('> span:first-child')
          .evaluateAll((spans: { offsetWidth: number }[]) => spans.map(({ offsetWidth }) => offsetWidth));
        for (const each of widths) expect(each).toBeGreaterThan(90); // enough to tell whose it is
      }
    }
  });

  test('a long name hides neither the org nor read-only, also at 200 %', async () => {
    const { body } = await gateway().call('POST', '/api/v1/iam/api-keys', {
      name: 'a key whose name says in detail what it is for and who has asked for it, in June',
      scopes: ['read'],
      org_id: 'acme',
    });
    const page = await signedIn(body.key);
    const banner = page.getByRole('banner');
    for (const width of [1280, 1090, 900, 640]) {
      await page.setViewportSize({ width, height: 700 });
      for (const said of ['acme', 'read-only']) {
        const { right, isWhole } = await banner.getByText(said, { exact: true }).evaluate((tag: any) => ({
          right: tag.getBoundingClientRect().right as number,
          isWhole: tag.offsetWidth > 0 && tag.scrollWidth <= tag.clientWidth,
        }));
        expect(isWhole).toBe(true);
        expect(right).toBeLessThan((await banner.getByRole('button', { name: 'Sign out' }).boundingBox())!.x);
      }
    }
  });

  test('the busiest agents of one team can be distinguished', async () => {
    const page = await signedIn();
    const names = ['crawler-101', 'crawler-102', 'crawler-103'];
    for (const [nth, name] of names.entries()) {
      for (let op = 0; op < 4 - nth; op += 1)
        await gateway().call('POST', '/api/v1/ops', {
          op_id: `alike-${nth}-${op}:s`,
          agent: { org_id: 'acme', team_id: 'research-and-development', agent_id: name },
        });
    }
    await page.getByLabel('Search').fill('acme/research-and-development');
    const shown = page.getByRole('group', { name: 'Busiest agents' }).getByRole('button');
    await eventually(async () =>
      expect(await shown.allTextContents()).toEqual(
        names.map((name, nth) => `acme / research-and-development / ${name}${4 - nth}`),
      ),
    );
    for (const width of [1440, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      const cut = await shown
        .locator('.name > bdi')
        .evaluateAll((ends: { offsetWidth: number; scrollWidth: number }[]) =>
          ends.map(({ offsetWidth, scrollWidth }) => scrollWidth > offsetWidth),
        );
      expect(cut).toEqual([false, false, false]);
    }
  });

  test('a long name breaks no short one in the columns beside it', async () => {
    const long = `long-${'x'.repeat(90)}`;
    await gateway().call('POST', '/api/v1/iam/api-keys', { name: long, scopes: ['read'], org_id: 'globex' });
    await gateway().call('POST', '/api/v1/usage', {
      agent: { org_id: 'globex', team_id: 'support', agent_id: long },
      cost_usd: 1,
    });
    await gateway().call('POST', '/api/v1/ops', {
      op_id: '4bf92f3577b34da6a3ce929d0e0e4736:00f067aa0ba902b7',
      agent: { org_id: 'globex', team_id: 'support', agent_id: long },
    });
    const page = await signedIn();
    for (const width of [1440, 1024]) {
      await page.setViewportSize({ width, height: 800 });
      await page.getByRole('link', { name: 'Keys' }).click();
      const key = page.getByRole('table', { name: 'API keys' }).getByRole('row', { name: long });
      await key.waitFor();
      expect(await linesOf(key.getByRole('cell', { name: 'globex', exact: true }))).toBe(1);
      expect(await linesOf(key.getByRole('cell', { name: /^svc_/ }))).toBe(1);
      await page.getByRole('link', { name: 'Audit', exact: true }).click();
      const id = page.locator('td.what .id', { hasText: '4bf92f3577b34da6a3ce929d0e0e4736:00f067aa0ba902b7' }).first();
      await id.waitFor();
      expect(await linesOf(id)).toBe(width === 1440 ? 1 : 2);
    }
  });

  test('a long agent name shortens its team, and neither the org nor the agent', async () => {
    await gateway().call('POST', '/api/v1/ops', {
      op_id: 'gives-way:s',
      agent: { org_id: 'globex', team_id: `customer-success-${'automation-'.repeat(9)}`, agent_id: 'renewals' },
    });
    const page = await signedIn();
    const cell = page.locator('tr[data-op="gives-way:s"] td').nth(2);
    for (const width of [1440, 1024, 768, 390]) {
      await page.setViewportSize({ width, height: 800 });
      await cell.waitFor();
      const isCut = await cell
        .locator('bdi')
        .evaluateAll((names: { scrollWidth: number; offsetWidth: number }[]) =>
          names.map(({ scrollWidth, offsetWidth }) => scrollWidth > offsetWidth),
        );
      expect(isCut).toEqual([false, true, false]);
      expect(
        await cell.evaluate(
          (box: any) =>
            box.querySelector('bdi:last-child').getBoundingClientRect().right <= box.getBoundingClientRect().right,
        ),
      ).toBe(true);
    }
  });

  test('a long org leaves the agent whole, and marks it and the team as shortened', async () => {
    await gateway().call('POST', '/api/v1/ops', {
      op_id: 'long-org:s',
      agent: { org_id: `initech-${'holding-'.repeat(8)}`, team_id: 'support', agent_id: 'renewals' },
    });
    const page = await signedIn();
    const names = page.locator('tr[data-op="long-org:s"] td').nth(2).locator('bdi');
    for (const width of [1440, 768, 390]) {
      await page.setViewportSize({ width, height: 800 });
      await names.first().waitFor();
      const shown = await names.evaluateAll((each: { scrollWidth: number; offsetWidth: number }[]) =>
        // Below 12 pixels no sign fits, and nothing says that there is more.
        each.map(({ scrollWidth, offsetWidth }) => ({ isCut: scrollWidth > offsetWidth, isSeen: offsetWidth > 12 })),
      );
      expect(shown).toEqual([
        { isCut: true, isSeen: true },
        { isCut: true, isSeen: true },
        { isCut: false, isSeen: true },
      ]);
    }
  });

  test("on a portrait tablet a row's owner fits one line, and buttons are usable", async () => {
    const name = 'quarterly-report';
    await gateway().call('POST', '/api/v1/iam/api-keys', {
      name,
      scopes: ['read', 'write', 'admin'],
      org_id: 'globex',
    });
    await gateway().call('POST', '/api/v1/agents', { agent: { org_id: 'globex', team_id: 'sales', agent_id: name } });
    const page = await signedIn();
    for (const width of [768, 900, 1024]) {
      await page.setViewportSize({ width, height: 800 });
      for (const [view, table, button] of [
        ['Keys', 'API keys', `Revoke ${name}`],
        ['Agents', 'Registered agents', `Remove globex / sales / ${name}`],
      ] as const) {
        await page.getByRole('link', { name: view }).click();
        const row = page.getByRole('table', { name: table }).getByRole('row', { name });
        expect(await linesOf(row.getByText(name, { exact: true }))).toBe(1);
        const place = await row.getByRole('button', { name: button }).boundingBox();
        expect(place!.x + place!.width).toBeLessThanOrEqual(width);
      }
    }
  });

  test('on a phone the name of a row has the whole width of its card', async () => {
    const name = 'nightly-reconciliation-of-invoices';
    await gateway().call('POST', '/api/v1/iam/api-keys', { name, scopes: ['read'] });
    const page = await signedIn();
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole('link', { name: 'Keys' }).click();
    expect(
      await linesOf(
        page.getByRole('table', { name: 'API keys' }).getByRole('row', { name }).getByText(name, { exact: true }),
      ),
    ).toBe(1);
  });

  test('on the narrowest screen all rights of a key are readable', async () => {
    await gateway().call('POST', '/api/v1/iam/api-keys', { name: 'may-do-all', scopes: ['read', 'write', 'admin'] });
    const page = await signedIn();
    await page.setViewportSize({ width: 320, height: 640 });
    await page.getByRole('link', { name: 'Keys' }).click();
    const row = page.getByRole('table', { name: 'API keys' }).getByRole('row', { name: 'may-do-all' });
    for (const scope of ['read', 'write', 'admin']) {
      const place = await row.getByText(scope, { exact: true }).boundingBox();
      expect(place!.x + place!.width).toBeLessThan(304); // where the panel ends
    }
  });
});

import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { hashBecomes, ownTime, rowOf, running, signIn, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of the views of the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('the views of the dashboard', () => {
  const { agent, gateway, openPage, signedIn, underClock } = useDashboard();
  const owner = { org_id: 'acme', team_id: 't', agent_id: 'a' };
  const start = (opId: string, by = owner) => gateway().call('POST', '/api/v1/ops', { op_id: opId, agent: by });

  test('the view names stand above a long view, never on it', async () => {
    for (let index = 0; index < 40; index += 1) await agent('acme', 'long', `n${index}`);
    const page = await signedIn();
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('button', { name: 'Remove acme / long / n39' }).waitFor();
    for (const width of [1440, 1024, 390]) {
      await page.setViewportSize({ width, height: 700 });
      const [nav, heading] = await Promise.all(
        [page.getByRole('navigation'), page.getByRole('heading', { name: 'Agents' })].map((element) =>
          element.boundingBox(),
        ),
      );
      expect(nav!.y + nav!.height).toBeLessThanOrEqual(heading!.y);
    }
  });

  test('the owner of an operation is readable at 1024 pixels and on a portrait tablet', async () => {
    const page = await signedIn();
    await start('4bf92f3577b34da6a3ce929d0e0e4736:00f067aa0ba902b7', {
      org_id: 'initech',
      team_id: 'billing',
      agent_id: 'reconciler-214',
    });
    const cell = rowOf(page, '4bf92f3577b34da6a3ce929d0e0e4736:00f067aa0ba902b7').getByRole('cell', {
      name: 'initech / billing / reconciler-214',
    });
    for (const width of [1024, 999, 768]) {
      await page.setViewportSize({ width, height: 700 });
      await cell.waitFor();
      expect(
        await cell.evaluate(
          (element: { scrollWidth: number; clientWidth: number }) => element.scrollWidth - element.clientWidth,
        ),
      ).toBe(0);
    }
  });

  test("a view's filters are in its address, over reloads, links and sign-in", async () => {
    const page = await signedIn();
    await page.getByLabel('Search').fill('crawler 1');
    await page.getByLabel('Org').fill('acme & co');
    await page.getByLabel('State').selectOption('paused');
    await hashBecomes(page, '#/operations?q=crawler+1&org_id=acme+%26+co&state=paused');
    await page.reload();
    await eventually(async () =>
      expect(await valuesOf(page, ['Search', 'Org', 'State'])).toEqual(['crawler 1', 'acme & co', 'paused']),
    );
    const other = await openPage(
      `${gateway().url}/#/audit?event_type=OpPaused&org_id=acme&since=2026-03-01T10%3A00%3A00.000Z`,
    );
    await signIn(other, ADMIN_KEY);
    expect(await valuesOf(other, ['Event', 'Org'])).toEqual(['OpPaused', 'acme']);
    await other.getByLabel('Team').fill('search');
    await other.getByLabel('Team').blur();
    await hashBecomes(
      other,
      '#/audit?event_type=OpPaused&org_id=acme&team_id=search&since=2026-03-01T10%3A00%3A00.000Z',
    );
    await other.getByRole('link', { name: 'Audit', exact: true }).click();
    await eventually(async () => expect(await valuesOf(other, ['Event', 'Org', 'Team'])).toEqual(['', '', '']));
    await other.goto(`${gateway().url}/#/operations?state=no-such-state`);
    await eventually(async () => expect(await valuesOf(other, ['State'])).toEqual(['']));
  });

  test('rows stay in place under a pointer on a button and under a finger', async () => {
    const page = await openPage();
    const frames: string[] = [];
    page.on('websocket', (socket) => socket.on('framereceived', ({ payload }) => frames.push(String(payload))));
    await page.clock.install();
    await signIn(page, ADMIN_KEY);
    await page.getByLabel('Search').fill('rests-');
    await start('rests-1:s');
    const row = rowOf(page, 'rests-1:s');
    await running(page, row);
    await page.setViewportSize({ width: 390, height: 800 });
    await page.clock.runFor(200);
    const place = await row.boundingBox();
    await row.getByRole('button', { name: 'Terminate' }).hover();
    await page.clock.fastForward(30_000);
    await start('rests-2:s');
    await running(page, page.getByRole('button', { name: 'Show 1 new operation' }));
    expect(await rowOf(page, 'rests-2:s').count()).toBe(0);
    // Nor does the word of what waits push them away.
    expect(await row.boundingBox()).toEqual(place);
    await page.mouse.move(0, 0);
    await running(page, rowOf(page, 'rests-2:s'));
    // A finger holds the rows for seconds only: time passes no more before the page has heard of the third.
    await page.clock.pauseAt(Number(await page.evaluate('Date.now()')) + 60_000);
    await row.dispatchEvent('pointerdown', { bubbles: true, pointerType: 'touch' });
    await start('rests-3:s');
    await eventually(() => expect(frames.join()).toContain('rests-3:s'));
    await page.clock.runFor(1_500);
    await page.getByRole('button', { name: 'Show 1 new operation' }).waitFor();
    expect(await rowOf(page, 'rests-3:s').count()).toBe(0);
    await page.clock.runFor(4_000);
    await running(page, rowOf(page, 'rests-3:s'));
  });

  test('on a wide screen at 400 % every button of an operation is within reach', async () => {
    const page = await openPage();
    await ownTime(page);
    await signIn(page, ADMIN_KEY);
    await page.setViewportSize({ width: 320, height: 700 });
    await (await agent('acme', 'narrow', 'reconciler-214'))('4bf92f3577b34da6a3ce929d0e0e4737');
    await page.getByLabel('Search').fill('e4737');
    const row = rowOf(page, '4bf92f3577b34da6a3ce929d0e0e4737:s');
    await running(page, row.getByText('running'));
    await page.clock.fastForward(1_450_000);
    await running(page, row.getByText(/^\d\d min \d\d s$/));
    const rights = await row
      .locator('td, button:not([hidden])')
      .evaluateAll((found: { getBoundingClientRect(): { right: number } }[]) =>
        found.map((element) => element.getBoundingClientRect().right),
      );
    expect(rights.length).toBe(8);
    expect(Math.max(...rights)).toBeLessThanOrEqual(320);
  });

  test('a double click does not answer the question it opened', async () => {
    const page = await signedIn();
    await page.setViewportSize({ width: 390, height: 844 });
    for (let index = 0; index < 20; index += 1) await start(`twice-${index}:s`);
    await page.getByLabel('Search').fill('twice-');
    await rowOf(page, 'twice-19:s').getByRole('button', { name: 'Terminate' }).click();
    const yes = page.getByRole('dialog').getByRole('button', { name: 'Terminate' });
    const { x, y, width, height } = (await yes.boundingBox())!;
    const place = [x + width / 2, y + height / 2] as const;
    await page.getByRole('button', { name: 'Cancel' }).click();
    // The list is scrolled until a button of a row lies where that of the question was.
    const isUnder = ([left, top]: readonly [number, number]) => {
      const list = (globalThis as any).document.querySelector('.ops-scroll');
      const isHit = () =>
        (globalThis as any).document
          .elementFromPoint(left, top)
          ?.getAttribute('aria-label')
          ?.startsWith('Terminate twice-') === true;
      while (!isHit() && list.scrollTop < 400) list.scrollTop += 5;
      return isHit();
    };
    await eventually(async () => expect(await page.evaluate(isUnder, place)).toBe(true));
    await page.mouse.dblclick(...place);
    expect(await yes.isVisible()).toBe(true);
    await yes.click();
    await page.getByText(/· 1 terminated/).waitFor();
  });

  test('rows move at most once a second, however many operations come', async () => {
    const page = await underClock();
    await page.getByLabel('Search').fill('busy-');
    await start('busy-1:s');
    await running(page, rowOf(page, 'busy-1:s'));
    await page.clock.runFor(2_000);
    const before = Number(await page.evaluate('performance.now()'));
    for (let index = 2; index <= 6; index += 1) await start(`busy-${index}:s`);
    await running(page, rowOf(page, 'busy-6:s'));
    await start('busy-7:s');
    await running(page, rowOf(page, 'busy-7:s'));
    expect(Number(await page.evaluate('performance.now()')) - before).toBeGreaterThanOrEqual(1_000);
  });

  test('an audit entry being read or opened does not move', async () => {
    const writer = { org_id: 'busy', team_id: 't', agent_id: 'a' };
    const write = async (count: number) => {
      for (let done = 0; done < count; done += 50)
        await Promise.all(
          Array.from({ length: 50 }, (_, index) => start(`audit-${performance.now()}-${index}:s`, writer)),
        );
    };
    const { body } = await gateway().call('POST', '/api/v1/iam/api-keys', {
      name: 'busy',
      scopes: ['read'],
      org_id: 'busy',
    });
    await write(250);
    const page = await signedIn(body.key);
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    const more = page.getByRole('button', { name: 'Load more' });
    await more.click();
    await eventually(async () => expect(await page.locator('tbody tr').count()).toBe(200));
    const asked = page.waitForResponse(/\/api\/v1\/logs/);
    await write(150);
    await asked;
    await page.getByRole('button', { name: 'Show new entries' }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(200);
    await page.getByRole('button', { name: 'Show new entries' }).click();
    await eventually(async () => expect(await page.locator('tbody tr').count()).toBe(100));
    const first = page.locator('tbody tr').first().getByRole('button');
    await page.setViewportSize({ width: 390, height: 800 });
    await first.hover();
    const place = await first.boundingBox();
    const name = await first.getAttribute('aria-label');
    await write(50);
    await page.getByRole('button', { name: 'Show new entries' }).waitFor();
    expect(await first.getAttribute('aria-label')).toBe(name);
    expect(await first.boundingBox()).toEqual(place);
    await page.mouse.move(0, 0);
    await eventually(async () => expect(await first.getAttribute('aria-label')).not.toBe(name));
  });

  test('budgets stay current when there are more than a page', async () => {
    const spend = (name: string, usd: number) =>
      gateway().call('POST', '/api/v1/usage', {
        agent: { org_id: 'acme', team_id: 't', agent_id: name },
        cost_usd: usd,
      });
    await Promise.all(Array.from({ length: 210 }, (_, index) => spend(`n${index}`, 1)));
    const page = await underClock();
    await page.getByRole('link', { name: 'Budgets' }).click();
    const everything = page.locator('tr:has-text("All orgs")');
    await everything.getByText('$210.00').first().waitFor();
    await spend('n0', 5);
    await everything.getByText('$215.00').first().waitFor();
    // What follows is on its way when the list would be read again.
    const held: (() => void)[] = [];
    await page.route('**/api/v1/budgets?*cursor=*', (route) => {
      held.push(() => void route.continue());
    });
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('link', { name: 'Budgets' }).click();
    await everything.waitFor();
    await page.getByRole('button', { name: 'Load more' }).click();
    await eventually(() => expect(held).toHaveLength(1));
    await page.clock.runFor(6_000);
    for (const answer of held) answer();
    await eventually(async () => expect(await page.locator('tbody tr').count()).toBeGreaterThan(200));
    // What was loaded stays, and is kept up to date as well.
    await page.unroute('**/api/v1/budgets?*cursor=*');
    const rows = await page.locator('tbody tr').count();
    const last = page.locator('tbody tr').last();
    const name = /n\d+/.exec((await last.textContent()) ?? '')?.[0] ?? '';
    await last.evaluate((element: { scrollIntoView(): void }) => element.scrollIntoView());
    await spend(name, 7);
    await eventually(async () => {
      await page.clock.runFor(1_000);
      expect(await last.textContent()).toMatch(name === 'n0' ? /\$13\.00/ : /\$8\.00/);
    });
    expect(await page.locator('tbody tr').count()).toBe(rows);
    expect(await page.evaluate('document.getElementById("app").scrollTop')).toBeGreaterThan(1_000);
  });

  test('budgets near their end are found beyond the first page, nearest first', async () => {
    const page = await signedIn();
    const period = (spent: number, limit: number | null) => ({
      spent_usd: spent,
      limit_usd: limit,
      period_start: '2026-11-22T00:00:00Z',
      reset: '2026-11-23T00:00:00Z',
    });
    const budget = (name: string, today: number, month: number | null = null, reserved = 0) => ({
      tier: 'agent',
      org_id: 'acme',
      team_id: 't',
      agent_id: name,
      daily: period(today, 10),
      monthly: period(month ?? today, month === null ? null : 100),
      reserved_usd: reserved,
    });
    await page.route('**/api/v1/budgets?*', (route) => {
      const asked = new URL(route.request().url()).searchParams;
      if (asked.get('org_id') === 'elsewhere')
        return route.fulfill({ json: { budgets: [budget('fine', 1)], next_cursor: null } });
      return route.fulfill({
        json:
          asked.get('cursor') === null
            ? { budgets: [budget('fine', 7.9), budget('near', 8), budget('by-month', 1, 97)], next_cursor: 'second' }
            : { budgets: [budget('over', 12), budget('reserved', 5, null, 4)], next_cursor: null },
      });
    });
    await page.getByRole('link', { name: 'Budgets' }).click();
    const whose = () => page.getByRole('table', { name: 'Budgets' }).locator('tbody td:nth-child(2)').allTextContents();
    await eventually(async () => expect((await whose()).length).toBe(5));
    await page.getByLabel('Show').selectOption('80% used or more');
    await eventually(async () =>
      expect(await whose()).toEqual([
        'acme / t / over',
        'acme / t / by-month',
        'acme / t / reserved',
        'acme / t / near',
      ]),
    );
    await hashBecomes(page, '#/budgets?show=near');
    await page.getByLabel('Org').fill('elsewhere');
    await page.getByLabel('Org').press('Enter');
    await page.getByText('No budget of this org is 80% used or more.').waitFor();
    await page.getByLabel('Show').selectOption('All budgets');
    await page.getByRole('cell', { name: 'acme / t / fine' }).waitFor();
  });

  test('leaving the budgets, or changing the search, stops it', async () => {
    const page = await signedIn();
    const asked: (string | null)[] = [];
    const answers: (() => Promise<void>)[] = [];
    await page.route('**/api/v1/budgets?*', (route) => {
      asked.push(new URL(route.request().url()).searchParams.get('org_id'));
      answers.push(() => route.fulfill({ json: { budgets: [], next_cursor: 'more' } }));
    });
    await page.goto(`${gateway().url}/#/budgets?show=near`);
    await eventually(() => expect(asked).toEqual([null]));
    await page.getByLabel('Org').fill('other');
    await page.getByLabel('Org').press('Enter');
    await eventually(() => expect(asked).toEqual([null, 'other']));
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('heading', { name: 'Policies' }).waitFor();
    for (const answer of answers) await answer();
    // By the time this has come back, the next page would have been asked for.
    for (let times = 0; times < 3; times += 1)
      await page.evaluate('fetch("/healthz").then((response) => response.text())');
    expect(asked).toEqual([null, 'other']);
  });

  test('old results fade while new ones load, and failures are reported', async () => {
    for (const team of ['early', 'later']) await agent('faded', team, `of-${team}`);
    const page = await underClock();
    await page.goto(`${gateway().url}/#/agents?org_id=faded`);
    const early = page.getByRole('cell', { name: 'faded / early / of-early', exact: true });
    await early.waitFor();
    const held: ((status: number) => void)[] = []; // not known as soon as the page has asked, but a moment later
    await page.route('**/api/v1/agents?*', async (route) => {
      const status = await new Promise<number>((resolve) => {
        held.push(resolve);
      });
      return status === 200
        ? route.continue()
        : route.fulfill({ status, contentType: 'application/problem+json', body: '{"detail":"out of order"}' });
    });
    const opacity = () =>
      page.locator('tbody').evaluate((body) => (globalThis as any).getComputedStyle(body).opacity) as Promise<string>;
    expect(await opacity()).toBe('1');
    await page.getByLabel('Team').fill('later');
    await page.getByLabel('Team').press('Enter');
    await eventually(() => expect(held).toHaveLength(1));
    await eventually(async () => expect(Number(await opacity())).toBeLessThan(0.5));
    held[0]?.(503);
    await page.getByText('these rows may be out of date').waitFor();
    // On a narrow screen, too, it is in sight: not below the last of a hundred rows.
    await page.setViewportSize({ width: 390, height: 844 });
    const [said, first] = await Promise.all(
      [page.getByText('these rows may be out of date'), page.locator('tbody tr').first()].map((element) =>
        element.boundingBox(),
      ),
    );
    expect(said!.y).toBeLessThanOrEqual(first!.y);
    await page.setViewportSize({ width: 1280, height: 720 });
    await page.clock.runFor(20_000);
    await eventually(() => expect(held).toHaveLength(2));
    expect(await early.count()).toBe(1);
    held[1]?.(200);
    await early.waitFor({ state: 'detached' }); // the other stands there from the beginning
    expect(await page.getByRole('cell', { name: 'faded / later / of-later', exact: true }).count()).toBe(1);
    expect(await page.getByText('out of date').count()).toBe(0);
    await eventually(async () => expect(await opacity()).toBe('1'));
  });

  test('stale budgets are not shown as current', async () => {
    const page = await underClock();
    await page.getByRole('link', { name: 'Budgets' }).click();
    await page.getByRole('cell', { name: 'All orgs' }).waitFor();
    await page.route('**/api/v1/budgets?*', (route) =>
      route.fulfill({ status: 500, contentType: 'application/problem+json', body: '{"detail":"out of order"}' }),
    );
    await running(page, page.getByText('Could not refresh: these rows may be out of date.'));
    await page.unroute('**/api/v1/budgets?*');
    await eventually(async () => {
      await page.clock.runFor(1_000);
      expect(await page.getByText('Could not refresh: these rows may be out of date.').count()).toBe(0);
    });
  });

  test('loaded rows never mix with older ones, during a load or after a failure', async () => {
    const page = await signedIn();
    const agents = (team: string, count: number, from = 0) =>
      Array.from({ length: count }, (_, index) => ({
        org_id: 'acme',
        team_id: team,
        agent_id: `${team}-${from + index}`,
        parent: null,
        registered_at: '2026-11-22T00:00:00Z',
        last_seen_at: null,
        active_ops: 0,
      }));
    const held: ((status: number) => void)[] = [];
    await page.route('**/api/v1/agents?*', async (route) => {
      const asked = new URL(route.request().url()).searchParams;
      if (asked.get('cursor') !== null)
        return route.fulfill({ json: { agents: agents('more', 1), next_cursor: null } });
      if (asked.get('team_id') === null)
        return route.fulfill({ json: { agents: agents('old', 100), next_cursor: 'second' } });
      const status = await new Promise<number>((resolve) => {
        held.push(resolve);
      });
      return status === 200
        ? route.fulfill({ json: { agents: agents('new', 1), next_cursor: null } })
        : route.fulfill({ status, contentType: 'application/problem+json', body: '{"detail":"no such team"}' });
    });
    await page.getByRole('link', { name: 'Agents' }).click();
    const more = page.getByRole('button', { name: 'Load more' });
    await more.waitFor();
    await page.getByLabel('Team').fill('new');
    await page.getByLabel('Team').press('Enter');
    await eventually(() => expect(held).toHaveLength(1));
    expect(await more.isVisible()).toBe(false);
    held[0]?.(404);
    await page.getByText('these rows may be out of date').waitFor();
    expect(await more.isVisible()).toBe(false);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await eventually(() => expect(held).toHaveLength(2));
    held[1]?.(200);
    await page.getByRole('cell', { name: 'acme / new / new-0', exact: true }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(1);
  });

  test('in forced colours the open view and the spent share stay visible', async () => {
    const page = await signedIn();
    await page.emulateMedia({ forcedColors: 'active' });
    await page.route('**/api/v1/budgets?*', (route) => {
      const period = {
        spent_usd: 4,
        limit_usd: 10,
        period_start: '2026-11-22T00:00:00Z',
        reset: '2026-11-23T00:00:00Z',
      };
      return route.fulfill({
        json: {
          budgets: [
            {
              tier: 'global',
              org_id: null,
              team_id: null,
              agent_id: null,
              daily: period,
              monthly: period,
              reserved_usd: 0,
            },
          ],
          next_cursor: null,
        },
      });
    });
    await page.getByRole('link', { name: 'Budgets' }).click();
    await page.getByRole('meter').first().waitFor();
    const colours = (selector: string, property: string) =>
      page.evaluate(
        `[...document.querySelectorAll('${selector}')].map((element) => getComputedStyle(element)['${property}'])`,
      ) as Promise<string[]>;
    const [shown] = await colours('nav [aria-current]', 'borderBottomColor');
    expect(await colours('nav a:not([aria-current])', 'borderBottomColor')).not.toContain(shown);
    const [spent] = await colours('.spent', 'backgroundColor');
    const [track] = await colours('.track', 'backgroundColor');
    expect(spent).not.toBe(track);
  });

  test('a search for part of a name says that the whole is needed', async () => {
    const page = await signedIn();
    for (const [view, field, text] of [
      ['Agents', 'Team', 'No agents match. Enter full names.'],
      ['Audit', 'Operation', 'No entries match the filters. Enter full names and IDs.'],
      ['Budgets', 'Org', 'No budgets match. Enter the full name of the org.'],
    ] as const) {
      await page.getByRole('link', { name: view, exact: true }).click();
      await page.getByLabel(field, { exact: true }).fill('a-part-of-a-na');
      await page.getByLabel(field, { exact: true }).press('Enter');
      await page.getByText(text, { exact: true }).waitFor();
    }
  });

  test('an agent is found by its team', async () => {
    for (const team of ['one', 'two']) await agent('found', team, `of-${team}`);
    const page = await signedIn();
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('heading', { name: 'Agents' }).waitFor();
    await page.getByLabel('Org').fill('found');
    await page.getByLabel('Team').fill('two');
    await page.getByLabel('Team').press('Enter');
    await page.getByRole('cell', { name: 'found / one / of-one', exact: true }).waitFor({ state: 'detached' });
    await page.getByRole('cell', { name: 'found / two / of-two', exact: true }).waitFor();
    // Emptied, with the cursor still in it, it leaves out nobody.
    await page.getByLabel('Team').focus();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.press('Delete');
    await page.getByRole('cell', { name: 'found / one / of-one', exact: true }).waitFor();
  });

  test('on paper there are the drawn operations and no empty pages', async () => {
    await Promise.all(Array.from({ length: 100 }, (_, index) => start(`paper-${index}:s`)));
    const page = await signedIn();
    await page.getByLabel('Search').fill('paper-');
    await page.getByText(/^100 (of|operations) /).waitFor();
    await page.emulateMedia({ media: 'print' });
    const { height, rows } = (await page.evaluate(
      '({ height: document.querySelector("table.ops").offsetHeight, rows: document.querySelectorAll("tr[data-op]").length })',
    )) as { height: number; rows: number };
    expect(rows).toBeLessThan(60);
    expect(height).toBeLessThan((rows + 2) * 44);
  });

  test("durations follow the gateway's clock in a browser an hour ahead", async () => {
    await start('hour-1:s');
    await start('hour-2:s');
    await gateway().call('POST', '/api/v1/ops/hour-2:s/terminate');
    await agent('clock', 'of', 'the-browser');
    const page = await openPage();
    await page.clock.install({ time: Date.now() + 3_600_000 });
    await page.reload();
    await signIn(page, ADMIN_KEY);
    await page.getByLabel('Search').fill('hour-');
    for (const opId of ['hour-1:s', 'hour-2:s'])
      expect(await rowOf(page, opId).locator('.since').textContent()).toMatch(/^(\d+ s|\d min \d\d s)$/);
    await page.goto(`${gateway().url}/#/agents?org_id=clock`);
    await page
      .getByRole('cell', { name: /^(\d+ s ago|\d min ago|just now)$/ })
      .first()
      .waitFor();
  });

  test('a time shows its zone, and numbers align', async () => {
    const page = await signedIn();
    await page.getByRole('link', { name: 'Audit', exact: true }).click();
    const zone = (await page.evaluate(
      'new Intl.DateTimeFormat("en-US", { timeZoneName: "short" }).formatToParts().find(({ type }) => type === "timeZoneName").value',
    )) as string;
    await page
      .getByRole('cell', {
        name: new RegExp(`^[A-Z][a-z]{2} \\d\\d, \\d\\d:\\d\\d:\\d\\d ${zone.replace('+', '\\+')}$`),
      })
      .first()
      .waitFor();
    expect(
      await page.evaluate(
        'import("/format.js").then(({ shortTime }) => shortTime(new Date(new Date().getFullYear(), 10, 21, 0, 3, 10).toISOString()))',
      ),
    ).toMatch(/^Nov 21, 00:03:10 /);
    await page.getByRole('link', { name: 'Budgets' }).click();
    await page.getByText(`${zone}, monthly budgets`).waitFor();
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('cell', { name: '8', exact: true }).waitFor();
    expect(
      await page.evaluate(
        '[...document.querySelectorAll(".number")].map((cell) => [cell.textContent, getComputedStyle(cell).textAlign])',
      ),
    ).toEqual([
      ['Rules', 'right'],
      ['8', 'right'],
    ]);
  });
});

const valuesOf = (page: Page, labels: readonly string[]): Promise<string[]> =>
  Promise.all(labels.map((label) => page.getByLabel(label, { exact: true }).inputValue()));

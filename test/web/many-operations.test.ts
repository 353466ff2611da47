import type { Page } from 'playwright-core';
import { describe, expect, onTestFinished, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { focusOn, rowOf, stateOf, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway } from '../support/gateway.ts';

if (BROWSER_PATH === undefined)
  console.warn(`the tests of many operations at the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('many operations at once', () => {
  const { agent, gateway, signedIn } = useDashboard();

  test('all operations of one agent are paused, then terminated, on confirmation', async () => {
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
    expect(await dialog.textContent()).toContain(
      'Pause 3 operations?Their agents are told immediately.acme / search / wild',
    );
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await page.getByText('paused', { exact: true }).count()).toBe(1); // the filter's word, in no row
    await all.getByRole('button', { name: 'Pause all' }).click();
    await dialog.getByRole('button', { name: 'Pause', exact: true }).click();
    for (const opId of ['wild-1:s', 'wild-2:s', 'wild-3:s']) await stateOf(rowOf(page, opId), 'paused');
    await all.getByRole('button', { name: 'Pause all' }).click();
    await page.getByText('None of these operations can be paused.').waitFor();
    await gateway().call('POST', '/api/v1/ops/wild-2:s/resume');
    await stateOf(rowOf(page, 'wild-2:s'), 'running');
    await all.getByRole('button', { name: 'Terminate all' }).click();
    await dialog.getByRole('button', { name: 'Terminate' }).click();
    await eventually(async () => {
      const { ops } = (await gateway().call('GET', '/api/v1/ops')).body as { ops: { op_id: string; state: string }[] };
      expect(Object.fromEntries(ops.map(({ op_id: id, state }) => [id, state]))).toEqual({
        'wild-1:s': 'terminated',
        'wild-2:s': 'terminated',
        'wild-3:s': 'terminated',
        'calm-1:s': 'running',
      });
    }, 15_000);
    await page.getByText('3 operations were terminated.').waitFor();
    await page.getByLabel('Search').fill('');
    await all.waitFor({ state: 'hidden' });
  });

  test('the busiest agent is named, and one press shows its operations alone', async () => {
    const page = await signedIn();
    await page.getByLabel('Search').fill('runs-');
    for (const [name, operations] of [
      ['runs', 2],
      ['runs-away', 4],
      ['runs-away-2', 3],
    ] as const) {
      const ask = await agent('acme', 'search', name);
      for (let index = 0; index < operations; index += 1) await ask(`runs-${name}-${index}`);
    }
    const names = page.getByRole('group', { name: 'Busiest agents' }).getByRole('button');
    await eventually(async () =>
      expect(await names.allTextContents()).toEqual([
        'acme / search / runs-away4',
        'acme / search / runs-away-23',
        'acme / search / runs2',
      ]),
    );
    await names.first().click();
    await page.getByText(/^4 of /).waitFor();
    expect(await page.getByLabel('Search').inputValue()).toBe('acme / search / runs-away');
    expect(await shownAgents(page)).toEqual(['acme / search / runs-away']);
  });

  test('stopping all names the most affected agents; only destructive parts are red', async () => {
    const page = await signedIn();
    for (const [name, opCount] of [
      ['few', 1],
      ['many', 3],
      ['some', 2],
    ] as const) {
      const ask = await agent('hit', 'on', name);
      for (let index = 0; index < opCount; index += 1) await ask(`hit-${name}-${index}`);
    }
    await page.getByLabel('Search').fill('hit/on');
    await page.getByText(/^6 of /).waitFor();
    const dialog = page.getByRole('dialog');
    const colours: unknown[] = [];
    for (const verb of ['Pause', 'Terminate']) {
      await page.getByRole('button', { name: `${verb} all` }).click();
      expect(await dialog.locator('.line').allTextContents()).toEqual([
        'hit / on / many · 3',
        'hit / on / some · 2',
        'hit / on / few · 1',
      ]);
      colours.push(
        await dialog
          .getByRole('button', { name: verb })
          .evaluate((button: any) => (globalThis as any).getComputedStyle(button).backgroundColor),
      );
      await page.keyboard.press('Escape');
    }
    expect(colours[0]).not.toBe(colours[1]);
  });

  test('operations, budgets and notices lead to all operations of an agent', async () => {
    const page = await signedIn();
    for (const name of ['led', 'led-2']) {
      const ask = await agent('leads', 'on', name);
      for (const trace of ['1', '2']) await ask(`${name}-${trace}`);
      if (name === 'led') await ask('led-3', 'launch_rocket');
    }
    await (await agent('misleads', 'on', 'other'))('misled-1');
    await gateway().call('POST', '/api/v1/usage', {
      agent: { org_id: 'leads', team_id: 'on', agent_id: 'led' },
      cost_usd: 1,
    });
    const search = page.getByLabel('Search');
    await rowOf(page, 'led-1:s').getByRole('link', { name: 'leads / on / led' }).click();
    await page.getByText(/^3 of /).waitFor();
    expect(await shownAgents(page)).toEqual(['leads / on / led']);
    await page.getByRole('link', { name: 'Budgets' }).click();
    await page
      .getByRole('table', { name: 'Budgets' })
      .getByRole('link', { name: 'leads / on / led', exact: true })
      .click();
    await page.getByText(/^3 of /).waitFor();
    expect(await search.inputValue()).toBe('leads / on / led');
    await page.getByRole('link', { name: 'Budgets' }).click();
    await page.getByRole('table', { name: 'Budgets' }).getByRole('link', { name: 'leads', exact: true }).click();
    await page.getByText(/^5 of /).waitFor();
    expect(await shownAgents(page)).not.toContain('misleads / on / other');
    await page.getByRole('link', { name: 'Policies' }).click();
    const { body: thief } = await gateway().call('POST', '/api/v1/agents', {
      agent: { org_id: 'leads', team_id: 'on', agent_id: 'thief' },
    });
    await gateway().call(
      'POST',
      '/svc.governance.v1.PolicyService/CheckAction',
      {
        agent: { orgId: 'leads', teamId: 'on', agentId: 'led' },
        credentialToken: thief.credential_token,
        traceId: 'led-4',
        spanId: 's',
        action: 'tool.call',
        resource: 'web_search',
      },
      null,
    );
    await page.getByRole('status').getByRole('link', { name: 'leads / on / thief' }).click();
    await eventually(async () => expect(await search.inputValue()).toBe('leads / on / thief'));
  });

  test('the busiest agents are ranked by operations in flight, then finished ones', async () => {
    const page = await signedIn();
    await page.getByLabel('Search').fill('busy-');
    const refused = await agent('acme', 'search', 'refused');
    for (let index = 0; index < 5; index += 1) await refused(`busy-refused-${index}`, 'launch_rocket');
    const working = await agent('acme', 'search', 'working');
    for (let index = 0; index < 2; index += 1) await working(`busy-working-${index}`);
    const names = page.getByRole('group', { name: 'Busiest agents' }).getByRole('button');
    await eventually(async () => expect(await names.allTextContents()).toEqual(['acme / search / working2']));
    await page.getByLabel('State').selectOption('denied');
    await eventually(async () => expect(await names.allTextContents()).toEqual(['acme / search / refused5']));
  });

  test('agents are found by the name shown, also with slashes', async () => {
    const page = await signedIn();
    for (const [org, team, name] of [
      ['named', 'seek', 'a1'],
      ['named', 'seek', 'a10'],
      ['named', 'reseek', 'a1'],
      ['', 'named', 'a1'],
    ] as const) {
      await gateway().call('POST', '/api/v1/ops', {
        op_id: `named-${org}-${team}-${name}/x:s`,
        agent: { org_id: org, team_id: team, agent_id: name },
      });
    }
    for (const [text, found] of [
      ['named a1', ['named / seek / a1', 'named / seek / a10', 'named / reseek / a1', '– / named / a1']],
      ['named / seek / a1', ['named / seek / a1']],
      ['named/seek', ['named / seek / a1', 'named / seek / a10']],
      ['Named /seek/ a10', ['named / seek / a10']],
      ['– / named / a1', ['– / named / a1']],
      ['/named', ['– / named / a1']],
      ['-seek-a1/x', ['named / seek / a1']],
    ] as const) {
      await page.getByLabel('Search').fill(text);
      await eventually(async () => expect(new Set(await shownAgents(page))).toEqual(new Set(found)));
    }
    await page.getByLabel('Search').fill('named/see');
    await page.getByText('With a slash, enter full names from the left').waitFor();
  });

  test('a bulk control is done once confirmed, says what came since, and guards leaving', async () => {
    const page = await signedIn();
    const start = (opId: string) =>
      gateway().call('POST', '/api/v1/ops', {
        op_id: opId,
        agent: { org_id: 'acme', team_id: 'doomed', agent_id: 'a' },
      });
    for (let index = 0; index < 12; index += 1) await start(`doomed-${index}:s`);
    await page.getByLabel('Search').fill('acme/doomed');
    await page.getByLabel('State').selectOption('pending');
    await page.getByText(/^12 (of|operations) /).waitFor();
    let release = (): void => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route('**/doomed-*/terminate*', async (route) => {
      await released;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Terminate all' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Terminate' }).click();
    await page.getByText(/^12 (of|operations) .* · 12 not yet confirmed$/).waitFor();
    const isHeldBack = () => page.evaluate('!window.dispatchEvent(new Event("beforeunload", { cancelable: true }))');
    expect(await isHeldBack()).toBe(true);
    // Nor when others that were asked for since are done.
    await gateway().call('POST', '/api/v1/ops', {
      op_id: 'quick:s',
      agent: { org_id: 'acme', team_id: 'quick', agent_id: 'a' },
    });
    await page.getByLabel('Search').fill('acme/quick');
    await rowOf(page, 'quick:s').waitFor();
    await page.getByRole('button', { name: 'Terminate all' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Terminate' }).click();
    await page.getByText('1 operation was terminated.').waitFor();
    expect(await isHeldBack()).toBe(true);
    await page.getByLabel('Search').fill('acme/doomed');
    await start('doomed-late:s');
    await page.getByText(/^13 (of|operations) /).waitFor();
    release();
    await page.getByText('12 operations were terminated. 1 more can now be terminated.').waitFor();
    expect(await isHeldBack()).toBe(false);
    await page.getByText(/^1 of /).waitFor();
    expect(await page.getByText('not yet confirmed').count()).toBe(0);
  });

  test('an operation paused by another is not reported as ended', async () => {
    const page = await signedIn();
    const ask = await agent('acme', 'search', 'shared');
    for (const nth of [1, 2]) await ask(`shared-${nth}`);
    await page.getByLabel('Search').fill('shared-');
    await page.getByText(/^2 of /).waitFor();
    await page.route('**/shared-1*/pause*', async (route) => {
      expect((await gateway().call('POST', '/api/v1/ops/shared-1:s/pause')).status).toBe(200);
      await route.continue();
    });
    await page.getByRole('button', { name: 'Pause all' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Pause' }).click();
    await page.getByText('1 operation was paused. 1 was no longer running.').waitFor();
  });

  test('operations paused together are resumed together', async () => {
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
    expect(await dialog.textContent()).toContain(
      'Resume 2 operations?Their agents are told immediately.acme / search / held',
    );
    await dialog.getByRole('button', { name: 'Resume', exact: true }).click();
    for (const trace of ['held-1', 'held-2']) await stateOf(rowOf(page, `${trace}:s`), 'running');
    await all.getByRole('button', { name: 'Resume all' }).click();
    await page.getByText('None of these operations can be resumed.').waitFor();
  });

  test('the focus stays when nothing matches the filter any more', async () => {
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

  test('a long id shows both ends, so that operations of one trace differ', async () => {
    const page = await signedIn();
    await page.setViewportSize({ width: 1024, height: 768 });
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
    await gateway().call('POST', '/api/v1/ops', {
      op_id: `${trace}:00f067aa0ba902b7`,
      agent: { org_id: 'acme', team_id: 't', agent_id: 'a' },
    });
    const row = rowOf(page, `${trace}:00f067aa0ba902b7`);
    await row.waitFor();
    const cell = row.locator('td').first();
    expect(
      await cell.evaluate(
        ({ scrollWidth, clientWidth }: { scrollWidth: number; clientWidth: number }) => scrollWidth <= clientWidth,
      ),
    ).toBe(true);
    const [whole, half] = await cell
      .locator('bdi')
      .evaluateAll((halves: { scrollWidth: number; clientWidth: number; offsetWidth: number }[]) =>
        halves.map(({ scrollWidth, offsetWidth }) => offsetWidth >= 60 && scrollWidth > offsetWidth),
      );
    expect({ whole, half }).toEqual({ whole: true, half: false });
    expect(await cell.textContent()).toBe(`${trace}:00f067aa0ba902b7`);
  });

  test('state counts and bulk buttons both follow the filter', async () => {
    const page = await signedIn();
    for (const name of ['meant', 'others']) {
      const ask = await agent('acme', `counted-${name}`, 'a');
      for (let index = 0; index < 3; index += 1) await ask(`counted-${name}-${index}`);
    }
    await gateway().call('POST', '/api/v1/ops/counted-meant-0:s/pause');
    await stateOf(rowOf(page, 'counted-meant-0:s'), 'paused');
    await page.getByLabel('Search').fill('acme/counted-meant');
    await page.getByText(/^3 of [\d,]+ operations · 2 running · 1 paused$/).waitFor();
    await page.getByLabel('State').selectOption('paused');
    await page.getByText(/^1 of [\d,]+ operations · 1 paused$/).waitFor();
    await page.getByLabel('Search').fill('acme/counted-nowhere');
    await page.getByText(/^0 of [\d,]+ operations$/).waitFor();
  });

  test('an operation that ended during the question is reported, not terminated', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'quicker'))('quicker-1');
    const row = rowOf(page, 'quicker-1:s');
    await stateOf(row, 'running');
    let asked = 0;
    await page.route('**/quicker-1*/terminate*', (route) => {
      asked += 1;
      return route.continue();
    });
    await row.getByRole('button', { name: 'Terminate' }).click();
    await gateway().call('POST', '/api/v1/ops/quicker-1:s/terminate');
    await stateOf(row, 'terminated');
    await page.getByRole('dialog').getByRole('button', { name: 'Terminate' }).click();
    await page.locator('#notices').getByText('quicker-1:s was already finished.').waitFor();
    await stateOf(row, 'terminated');
    expect(asked).toBe(0);
  });

  test('the newest operations come first, also after long uptime and a reload', async () => {
    const forgetful = await startTestGateway({ env: { SVC_OPS_TTL_SECS: '1', SVC_OPS_SWEEP_SECS: '1' } });
    onTestFinished(async () => {
      await forgetful.stop();
    });
    const start = async (opId: string) =>
      expect(
        (
          await forgetful.call('POST', '/api/v1/ops', {
            op_id: opId,
            agent: { org_id: 'acme', team_id: 't', agent_id: 'a' },
          })
        ).status,
      ).toBe(201);
    for (const opId of ['gone-1:s', 'old-1:s', 'gone-2:s', 'old-2:s']) await start(opId);
    for (const opId of ['gone-1:s', 'gone-2:s']) await forgetful.call('POST', `/api/v1/ops/${opId}/terminate`);
    await eventually(async () => expect((await forgetful.call('GET', '/api/v1/ops')).body.ops).toHaveLength(2));
    for (const opId of ['new-1:s', 'new-2:s']) await start(opId); // where those were that are gone
    const page = await signedIn(ADMIN_KEY, forgetful.url);
    const shown = () =>
      page
        .locator('tr[data-op]')
        .evaluateAll((rows: { dataset: { op: string } }[]) => rows.map(({ dataset }) => dataset.op));
    await eventually(async () => expect(await shown()).toEqual(['new-2:s', 'new-1:s', 'old-2:s', 'old-1:s']));
    await start('new-3:s');
    await eventually(async () =>
      expect(await shown()).toEqual(['new-3:s', 'new-2:s', 'new-1:s', 'old-2:s', 'old-1:s']),
    );
    await page.reload();
    await eventually(async () =>
      expect(await shown()).toEqual(['new-3:s', 'new-2:s', 'new-1:s', 'old-2:s', 'old-1:s']),
    );
  });
});

const shownAgents = (page: Page): Promise<readonly string[]> =>
  page
    .locator('tr[data-op]')
    .evaluateAll((rows: { cells: { textContent: string }[] }[]) => [
      ...new Set(rows.map(({ cells }) => cells[2]!.textContent)),
    ]);

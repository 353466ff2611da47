import { readFileSync } from 'node:fs';
import type { Locator, Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { ownTime, rowOf, running, signIn, stateOf, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY } from '../support/gateway.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('the dashboard', () => {
  const { agent, gateway, openPage, signedIn } = useDashboard({ SVC_OPS_TTL_SECS: '3000' });

  test('an operator signs in with a key, which the browser does not store', async () => {
    const page = await openPage();
    await signIn(page, ADMIN_KEY);
    expect(await page.getByRole('navigation').getByRole('link').allTextContents()).toEqual([
      'Operations',
      'Agents',
      'Audit',
      'Budgets',
      'Policies',
      'Keys',
    ]);
    const kept = await page.evaluate(
      'JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie, document.documentElement.outerHTML, location.href])',
    );
    expect(kept).not.toContain(ADMIN_KEY);
    await page.reload();
    await page.getByText('Live', { exact: true }).waitFor();
  });

  test('a wrong key is refused in words, and the form stays', async () => {
    const page = await openPage();
    await page.getByLabel('API key').fill('svc_wrong_key');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('This API key is unknown, expired or revoked.').waitFor();
    await page.getByLabel('API key').fill('schlüssel mit leerzeichen');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').getByText('This is not an API key').waitFor();
  });

  test('an operation appears with its check and is controlled from its row', async () => {
    const page = await signedIn();
    const check = await agent('acme', 'search', 'crawler');
    await check('live-1');
    const row = rowOf(page, 'live-1:s');
    await stateOf(row, 'running');
    expect(await row.textContent()).toContain('acme / search / crawler');
    await row.getByRole('button', { name: 'Pause' }).click();
    await stateOf(row, 'paused');
    expect((await gateway().call('GET', '/api/v1/ops/live-1:s')).body.state).toBe('paused');
    await row.getByRole('button', { name: 'Resume' }).click();
    await stateOf(row, 'running');
    await row.getByRole('button', { name: 'Terminate' }).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.textContent()).toContain('live-1:s');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect((await gateway().call('GET', '/api/v1/ops/live-1:s')).body.state).toBe('running');
    await row.getByRole('button', { name: 'Terminate' }).click();
    await dialog.getByRole('button', { name: 'Terminate' }).click();
    await stateOf(row, 'terminated');
    expect(await row.getByRole('button').count()).toBe(0);
    expect((await gateway().call('GET', '/api/v1/ops/live-1:s')).body.state).toBe('terminated');
  });

  test('a refused control is reverted, with the reason', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'late'))('late-1');
    const row = rowOf(page, 'late-1:s');
    await stateOf(row, 'running');
    await page.route('**/api/v1/ops/*/pause*', (route) =>
      route.fulfill({
        status: 409,
        contentType: 'application/problem+json',
        body: JSON.stringify({ detail: 'cannot pause it now', code: 'invalid_transition' }),
      }),
    );
    await row.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('cannot pause it now').waitFor();
    await stateOf(row, 'running');
  });

  test('names are shown as text, whatever markup they hold', async () => {
    const page = await signedIn();
    const image = '<img/src=x/onerror=alert(1)>';
    await (await agent('acme', '<b>team', '<script>alert(1)<'))(image, '<img src=x onerror=alert(1)>');
    await rowOf(page, `${image}:s`).getByText('acme / <b>team / <script>alert(1)<').waitFor();
    await gateway().call('POST', '/api/v1/iam/api-keys', { name: '<img src=x onerror=alert(1)>', scopes: ['read'] });
    for (const [view, text] of [
      ['Agents', '<script>alert(1)<'],
      ['Audit', '<img src=x onerror=alert(1)>'],
      ['Keys', '<img src=x onerror=alert(1)>'],
    ] as const) {
      await page.getByRole('link', { name: view, exact: true }).click();
      await page.getByText(text).first().waitFor();
      expect(await page.locator('main img, main script, main b').count()).toBe(0);
    }
  });

  test('a key of one org sees its own data only, and a read-only one has no buttons', async () => {
    const { body } = await gateway().call('POST', '/api/v1/iam/api-keys', {
      name: 'watcher',
      scopes: ['read'],
      org_id: 'globex',
    });
    const page = await signedIn(body.key);
    await (await agent('acme', 'search', 'elsewhere'))('foreign-1');
    await (await agent('globex', 'support', 'triage'))('own-1');
    await stateOf(rowOf(page, 'own-1:s'), 'running');
    expect(await rowOf(page, 'foreign-1:s').count()).toBe(0);
    expect(await rowOf(page, 'own-1:s').getByRole('button').count()).toBe(0);
    expect(await page.getByRole('columnheader').allTextContents()).toEqual([
      'Operation',
      'Action',
      'Agent',
      'State',
      'Time in state',
    ]);
    expect(await page.getByRole('navigation').getByRole('link').allTextContents()).toEqual([
      'Operations',
      'Agents',
      'Audit',
      'Budgets',
      'Policies',
    ]);
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('cell', { name: 'globex / support / triage' }).waitFor();
    expect(await page.getByText('acme').count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Register agent' }).count()).toBe(0);
    // The header says both on the narrowest screen, on one line.
    await page.setViewportSize({ width: 320, height: 700 });
    const head = page.getByRole('banner');
    const places = await Promise.all(
      [
        head.getByText('Live'),
        head.getByText('globex'),
        head.getByText('read-only', { exact: true }),
        head.getByRole('button', { name: 'Sign out' }),
      ].map((said) => said.boundingBox()),
    );
    expect(places.map((place) => place !== null && place.x >= 0 && place.x + place.width <= 320)).toEqual([
      true,
      true,
      true,
      true,
    ]);
    expect(new Set(places.map((place) => Math.floor((place?.y ?? 0) / 40))).size).toBe(1);
  });

  test('operations are found by text, org and state', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'finder'))('find-a');
    await (await agent('initech', 'ops', 'seeker'))('find-b');
    await gateway().call('POST', '/api/v1/ops/find-b:s/pause');
    await stateOf(rowOf(page, 'find-b:s'), 'paused');
    const shown = () =>
      page
        .locator('tr[data-op^="find-"]')
        .evaluateAll((rows: { dataset: { op: string } }[]) => rows.map((row) => row.dataset.op));
    await page.getByLabel('Search').fill('find seeker');
    await eventually(async () => expect(await shown()).toEqual(['find-b:s']));
    await page.getByLabel('Search').fill('find-');
    await page.getByLabel('Org').fill('acme');
    await eventually(async () => expect(await shown()).toEqual(['find-a:s']));
    await page.getByLabel('Org').fill('');
    await page.getByLabel('State').selectOption('paused');
    await eventually(async () => expect(await shown()).toEqual(['find-b:s']));
  });

  test('the org filter offers the orgs with operations as they appear', async () => {
    const start = (org: string) =>
      gateway().call('POST', '/api/v1/ops', { op_id: `${org}:s`, agent: { org_id: org, team_id: 't', agent_id: 'a' } });
    await start('offered-2');
    const page = await signedIn();
    const offered = async () =>
      (
        await page
          .locator('datalist option')
          .evaluateAll((options: { value: string }[]) => options.map(({ value }) => value))
      ).filter((org) => org.startsWith('offered-'));
    await eventually(async () => expect(await offered()).toEqual(['offered-2']));
    expect(await page.getByLabel('Org').getAttribute('list')).toBe(await page.locator('datalist').getAttribute('id'));
    await start('offered-1');
    await eventually(async () => expect(await offered()).toEqual(['offered-1', 'offered-2']));
  });

  test('a stream that lost events is reopened for a new snapshot', async () => {
    const page = await openPage();
    let opened = 0;
    await page.routeWebSocket(/\/api\/v1\/stream/, (socket) => {
      opened += 1;
      let isTold = opened > 1;
      socket.connectToServer().onMessage((message) => {
        if (opened > 1) socket.send(message);
        if (!isTold) socket.send('{"event_type":"lagged","payload":{"dropped":7}}');
        isTold = true;
      });
    });
    await page.clock.install();
    await (await agent('acme', 'search', 'lagging'))('lagged-1');
    await page.getByLabel('API key').fill(ADMIN_KEY);
    await page.getByRole('button', { name: 'Sign in' }).click();
    // A reader that lags again and again is let rest.
    await running(page, rowOf(page, 'lagged-1:s'));
    expect(opened).toBe(2);
  });

  test('a finished operation is shown for as long as the gateway keeps it', async () => {
    const page = await openPage();
    await ownTime(page);
    await signIn(page, ADMIN_KEY);
    const end = async (opId: string) => {
      await gateway().call('POST', '/api/v1/ops', {
        op_id: opId,
        agent: { org_id: 'acme', team_id: 't', agent_id: 'a' },
      });
      await gateway().call('POST', `/api/v1/ops/${opId}/terminate`);
      await eventually(async () => {
        await page.clock.runFor(200);
        expect(await rowOf(page, opId).getByText('terminated').count()).toBe(1);
      });
    };
    await end('brief-1:s');
    // After such a leap the page opens a new line, and what that brings would be another test: it comes back later.
    await page.route('**/ws-ticket', (route) => route.abort());
    await page.clock.fastForward(2_700_000);
    expect(await rowOf(page, 'brief-1:s').count()).toBe(1);
    await page.clock.fastForward(400_000);
    await rowOf(page, 'brief-1:s').waitFor({ state: 'detached' });
    await page.unroute('**/ws-ticket');
    await eventually(async () => {
      await page.clock.runFor(1_000);
      expect(await page.getByText('Live', { exact: true }).isVisible()).toBe(true);
    });
    // Nor is one shown again that ended while another view was open.
    await end('forgotten-1:s');
    await page.route('**/ws-ticket', (route) => route.abort());
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('heading', { name: 'Policies' }).waitFor();
    await page.clock.fastForward(3_100_000);
    await page.getByRole('link', { name: 'Operations', exact: true }).click();
    await page.getByRole('heading', { name: 'Operations' }).waitFor();
    expect(await rowOf(page, 'forgotten-1:s').count()).toBe(0);
  });

  test('before the snapshot nothing claims that no operations are in flight', async () => {
    const page = await openPage();
    let release = (): void => {};
    await page.routeWebSocket(/\/api\/v1\/stream/, (socket) => {
      let held: (string | Buffer)[] | undefined = [];
      release = () => {
        for (const message of held ?? []) socket.send(message);
        held = undefined;
      };
      socket.connectToServer().onMessage((message) => {
        if (held === undefined) socket.send(message);
        else held.push(message);
      });
    });
    await (await agent('acme', 'search', 'slow'))('slow-1');
    // A snapshot that is quiet for seconds counts as whole: time stands still while it is held back.
    await page.clock.install();
    await page.clock.pauseAt(Number(await page.evaluate('Date.now()')) + 1_000);
    await page.getByLabel('API key').fill(ADMIN_KEY);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.clock.runFor(500);
    await page.getByText('Loading operations…').waitFor();
    release();
    await running(page, rowOf(page, 'slow-1:s'));
    await page.clock.runFor(4_000);
    await page.getByText('Loading').waitFor({ state: 'detached' });
  });

  test('a pointer resting on the first row does not block new rows', async () => {
    const page = await openPage();
    const held: (string | Buffer)[] = [];
    let deliver = (message: string | Buffer): void => {
      held.push(message);
    };
    let release = (_count: number): void => {};
    await page.routeWebSocket(/\/api\/v1\/stream/, (socket) => {
      release = (count) => {
        for (const message of held.splice(0, count)) socket.send(message);
      };
      socket.connectToServer().onMessage((message) => deliver(message));
    });
    const ask = await agent('acme', 'search', 'rested-on');
    for (const trace of ['rest-1', 'rest-2', 'rest-3']) await ask(trace);
    await page.getByLabel('API key').fill(ADMIN_KEY);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Loading operations…').waitFor();
    await eventually(async () => expect(held.filter((message) => String(message).includes('"rest-')).length).toBe(3));
    const heading = await page.getByRole('columnheader', { name: 'Operation' }).boundingBox();
    await page.mouse.move(heading!.x + 40, heading!.y + heading!.height + 22);
    release(1);
    await page.locator('tr[data-op] a:hover').waitFor();
    deliver = (message) => {
      held.push(message);
      release(Infinity);
    };
    release(Infinity);
    for (const opId of ['rest-1:s', 'rest-2:s', 'rest-3:s']) await rowOf(page, opId).waitFor();
    expect(await page.getByRole('button', { name: 'new operation' }).count()).toBe(0);
  });

  test('works in a browser whose tabs cannot talk to each other', async () => {
    const page = await openPage();
    await page.addInitScript('delete window.BroadcastChannel');
    await page.reload();
    await signIn(page, ADMIN_KEY);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
  });

  test('a slow list says that it is loading', async () => {
    const page = await signedIn();
    let answer = (): void => {};
    const asked = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route('**/api/v1/logs?*', async (route) => {
      await asked;
      await route.continue();
    });
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByRole('main').getByText('Loading…').waitFor();
    answer();
    await page
      .getByRole('button', { name: /, entry / })
      .first()
      .waitFor();
    expect(await page.getByText('Loading…').count()).toBe(0);
  });

  test('a right-to-left name does not swap places with its neighbours', async () => {
    const page = await signedIn();
    await (await agent('مؤسسة', 'فريق', 'وكيل'))('rtl-1');
    const names = rowOf(page, 'rtl-1:s').getByRole('cell').nth(2).locator('bdi');
    await names.first().waitFor();
    expect(await names.allTextContents()).toEqual(['مؤسسة', 'فريق', 'وكيل']);
    const [org, team, last] = await leftsOf(names);
    expect(org).toBeLessThan(team!);
    expect(team).toBeLessThan(last!);
    // Nor where it is asked about, which is read out with the question.
    await gateway().call('POST', '/api/v1/ops', {
      op_id: 'עקבה:42',
      agent: { org_id: 'مؤسسة', team_id: 'فريق', agent_id: 'وكيل' },
    });
    await rowOf(page, 'עקבה:42').getByRole('button', { name: 'Terminate' }).click();
    const asked = page.getByRole('dialog').locator('bdi');
    expect(await asked.allTextContents()).toEqual(['مؤسسة', 'فريق', 'وكيل', 'עקבה', '42']);
    const [org2, team2, last2, trace, span] = await leftsOf(asked);
    expect(org2).toBeLessThan(team2!);
    expect(team2).toBeLessThan(last2!);
    expect(trace).toBeLessThan(span!);
    expect(
      await page
        .getByRole('dialog')
        .evaluate(
          (dialog: any) => dialog.ownerDocument.getElementById(dialog.getAttribute('aria-describedby')).textContent,
        ),
    ).toContain('is told to stop immediately. This cannot be undone.עקבה:42');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await rowOf(page, 'עקבה:42').getByRole('link', { name: 'עקבה:42' }).click();
    const [loggedTrace, loggedSpan] = await leftsOf(page.locator('td.what bdi', { hasText: /^(עקבה|42)$/ }));
    expect(loggedTrace).toBeLessThan(loggedSpan!);
  });

  test('invisible and direction characters are shown as their codes', async () => {
    const page = await signedIn();
    await (await agent('acme', 'hidden', 'a1'))('hidden-1', 'web_\u202efdp\u2066.\u200bexe');
    const shown = 'tool.call web_\\u202efdp\\u2066.\\u200bexe hidden-1:s';
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByText(shown, { exact: true }).first().waitFor();
    await page.getByRole('row').filter({ hasText: shown }).getByRole('button').first().click();
    expect(await page.getByRole('dialog').textContent()).toContain('"resource": "web_\\u202efdp\\u2066.\\u200bexe"\n');
  });

  test('names keep their places in budgets, and break only on a narrow screen', async () => {
    const page = await signedIn();
    await page.setViewportSize({ width: 400, height: 800 });
    const long = 'a-name-that-does-not-fit-on-one-line-of-a-narrow-screen';
    await gateway().call('POST', '/api/v1/usage', {
      agent: { org_id: 'ארגון', team_id: 'צוות', agent_id: 'סוכן' },
      cost_usd: 1,
    });
    await agent('narrow', long, long);
    await page.getByRole('link', { name: 'Budgets' }).click();
    const [org, team, last] = await leftsOf(page.locator('tr:has-text("סוכן") bdi'));
    expect(org).toBeLessThan(team!);
    expect(team).toBeLessThan(last!);
    await page.getByRole('link', { name: 'Agents' }).click();
    const name = page.locator('tr:has-text("narrow") bdi').first();
    expect((await name.boundingBox())?.height).toBeLessThan(30); // one line of it
  });

  test('an operation links to its audit entries, and to who paused it', async () => {
    const page = await signedIn();
    await (await agent('acme', 'search', 'traced'))('traced-1');
    await gateway().call('POST', '/api/v1/ops/traced-1:s/pause');
    await rowOf(page, 'traced-1:s').getByRole('link', { name: 'traced-1:s' }).click();
    await page.getByRole('button', { name: /^OpPaused/ }).click();
    const entry = await page.getByRole('dialog').textContent();
    expect(entry).toContain('"op_id": "traced-1:s"');
    expect(entry).toContain('"actor": "key:');
  });

  test('halts in force and waiting approvals are above every view, until they end', async () => {
    const page = await signedIn();
    const above = page.getByRole('complementary', { name: 'Halts and approvals' });
    expect(await above.count()).toBe(0);
    const halted = { scope: 'team:acme/halted', reason: '<b>a drill</b>', actions: ['deploy.*'] };
    const { body } = await gateway().call('POST', '/api/v1/halts', halted);
    await above.getByText('1 halt in force:').waitFor();
    await (await agent('acme', 'search', 'asking'))('asking-1', 'deploy_production');
    await above.getByText('1 request waits for an approval.').waitFor();
    await page.getByRole('link', { name: 'Budgets' }).click();
    expect(await above.textContent()).toBe(
      '1 halt in force: team:acme / halted (deploy.*) – <b>a drill</b>. svc halts ls' +
        '1 request waits for an approval. Decide with svc approvals watch',
    );
    const { body: waiting } = await gateway().call('GET', '/api/v1/approvals?state=pending');
    await gateway().call('POST', `/api/v1/approvals/${waiting.approvals[0].id}/deny`, { reason: 'no' });
    await gateway().call('POST', `/api/v1/halts/${body.halt.id}/release`, { reason: 'over' });
    await above.waitFor({ state: 'hidden' });
  });

  test('a new key is shown once, and a revoked one signs its user out', async () => {
    const page = await signedIn();
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('short-lived');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    const key = (await page.getByRole('dialog', { name: 'New API key' }).getByRole('status').textContent()) ?? '';
    expect(key).toMatch(/^svc_/);
    await page.getByRole('button', { name: 'Done' }).click();
    await page.locator('dialog').waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain(key);
    const other = await signedIn(key);
    await page.getByRole('button', { name: 'Revoke short-lived' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await other.getByText('Your session has ended').waitFor();
    await other.getByLabel('API key').waitFor();
  });

  test('the audit log follows new entries', async () => {
    const page = await signedIn();
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByLabel('Event').selectOption('ActionDenied');
    await (await agent('acme', 'search', 'denied'))('followed-1', 'launch_rocket');
    await page.getByText('no policy allows tool.call on launch_rocket for acme/search/denied').waitFor();
    await gateway().call('POST', '/access/v1/evaluation', {
      subject: { type: 'agent', id: 'acme/search/denied' },
      action: { name: 'tool.call' },
      resource: { type: 'tool', id: 'try_rocket' },
    });
    await page.getByText('tool.call try_rocket (dry run)').waitFor();
  });

  test('filtered audit entries are saved as a file, and failures are reported', async () => {
    const ask = await agent('acme', 'search', 'exported');
    await ask('exported-1');
    await ask('exported-2', 'launch_rocket');
    const page = await signedIn();
    await page.goto(`${gateway().url}/#/audit?agent_id=exported&decision=deny`);
    const saved = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export CSV' }).click();
    const file = await saved;
    expect(file.suggestedFilename()).toBe('audit.csv');
    const [head, ...lines] = readFileSync(await file.path(), 'utf8')
      .trimEnd()
      .split(/\r?\n/);
    expect(head).toContain('event_type');
    expect(lines.map((line) => /exported-\d:s/.exec(line)?.[0])).toEqual(['exported-2:s']);
    await page.route('**/api/v1/logs/export?*', (route) =>
      route.fulfill({
        status: 503,
        contentType: 'application/problem+json',
        body: '{"detail":"too many searches at once"}',
      }),
    );
    await page.getByRole('button', { name: 'Export CSV' }).click();
    await page.getByText('Too many searches at once').waitFor();
    await page.getByRole('button', { name: 'Export CSV', disabled: false }).waitFor();
  });

  // Last: the pages of the others would show them as well.
  test('of hundreds of operations only those in view are drawn, and all are reachable', async () => {
    await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        gateway().call('POST', '/api/v1/ops', {
          op_id: `crowd-${index}:s`,
          agent: { org_id: 'crowd', team_id: 't', agent_id: 'a' },
        }),
      ),
    );
    const { body } = await gateway().call('POST', '/api/v1/iam/api-keys', {
      name: 'crowd',
      scopes: ['read'],
      org_id: 'crowd',
    });
    const page = await signedIn(body.key);
    await page.getByText('200 operations').waitFor();
    expect(await page.locator('tr[data-op]').count()).toBeLessThan(60);
    for (const width of [1280, 820, 390]) {
      await page.setViewportSize({ width, height: 800 });
      await eventually(async () => expect(await fromTheEnd(page)).toBeLessThan(2));
      expect(await page.locator('tr[data-op]').count()).toBeLessThan(60);
    }
  });
});

const leftsOf = async (elements: Locator): Promise<readonly number[]> => {
  await elements.first().waitFor();
  return elements.evaluateAll((found: { getBoundingClientRect(): { left: number } }[]) =>
    found.map((element) => element.getBoundingClientRect().left),
  );
};

/** How far the last row is from the lower edge of its list when that is scrolled to its end, in pixels. */
const fromTheEnd = (page: Page): Promise<number> =>
  page.evaluate(`(() => {
  const list = document.querySelector('.ops-scroll');
  list.scrollTop = list.scrollHeight;
  const row = [...document.querySelectorAll('tr[data-op]')].find(({ ariaRowIndex }) => ariaRowIndex === '201');
  return row === undefined ? Infinity : Math.abs(list.getBoundingClientRect().bottom - row.getBoundingClientRect().bottom);
})()`);

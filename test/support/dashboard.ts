/** The dashboard in a real browser: a gateway, pages that are signed in, and agents that ask. */
import type { Browser, Locator, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { newPage, type OpenedPage, openPage, sharedBrowser } from './browser.ts';
import { eventually } from './eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from './gateway.ts';

export type Dashboard = {
  gateway(): TestGateway;
  /** A page of its own, in which any error and any dialog of a script fails the test. */
  openPage(url?: string): Promise<Page>;
  /**
   * Without a key, the page that the tests of the suite share: where one installs a clock, patches a script, signs out
   * or leaves a request unanswered, it opens a page of its own.
   */
  signedIn(key?: string, url?: string): Promise<Page>;
  /**
   * Another page that the tests of the suite share: one with a clock, by which a test lets time leap or stand still.
   */
  underClock(): Promise<Page>;
  /** Registers an agent, and returns a function by which it asks whether it may call a tool. */
  agent(org: string, team: string, name: string): Promise<(trace: string, resource?: string) => Promise<void>>;
};

/** Starts one gateway for all tests of the suite in which it is called. */
export function useDashboard(env: Readonly<Record<string, string>> = {}): Dashboard {
  let gateway: TestGateway;
  let browser: Browser;
  const kept: { plain?: OpenedPage; underClock?: OpenedPage } = {};
  beforeAll(async () => {
    [gateway, browser] = await Promise.all([startTestGateway({ env }), sharedBrowser()]);
  });
  afterAll(async () => {
    for (const each of Object.values(kept)) await each.page.context().close();
    await gateway?.stop();
  });

  const open = (url = gateway.url): Promise<Page> => openPage(browser, url);

  async function keptPage(kind: keyof typeof kept): Promise<Page> {
    const known = kept[kind];
    const { page, surprises } = known ?? (kept[kind] = await newPage(browser));
    onTestFinished(async ({ task }) => {
      const hasFailed = task.result?.state === 'fail' || surprises.length > 0;
      if (hasFailed) delete kept[kind]; // what it has left is no other test's concern
      if (hasFailed) await page.context().close();
      expect(surprises).toEqual([]);
    });
    if (kind === 'underClock') await (known === undefined ? page.clock.install() : page.clock.resume());
    if (known !== undefined) await tidied(page);
    else {
      await page.goto(`${gateway.url}/operations`);
      await signIn(page, ADMIN_KEY);
    }
    return page;
  }

  return {
    gateway: () => gateway,
    openPage: open,
    async signedIn(key, url) {
      if (key === undefined && url === undefined) return keptPage('plain');
      const page = await open(url);
      await signIn(page, key ?? ADMIN_KEY);
      return page;
    },
    underClock: () => keptPage('underClock'),
    async agent(org, team, name) {
      const { body } = await gateway.call('POST', '/api/v1/agents', {
        agent: { org_id: org, team_id: team, agent_id: name },
      });
      return async (trace, resource = 'web_search') => {
        const { status } = await gateway.call(
          'POST',
          '/svc.governance.v1.PolicyService/CheckAction',
          {
            agent: { orgId: org, teamId: team, agentId: name },
            credentialToken: body.credential_token,
            traceId: trace,
            spanId: 's',
            action: 'tool.call',
            resource,
          },
          null,
        );
        expect(status).toBe(200);
      };
    },
  };
}

/** Leaves nothing of the test before but its session: the operations are drawn anew, and what it said is gone. */
async function tidied(page: Page): Promise<void> {
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.emulateMedia({ media: null, forcedColors: null });
  const { width, height } = page.viewportSize()!;
  if (width !== 1280 || height !== 720) await page.setViewportSize({ width: 1280, height: 720 });
  await page.mouse.move(0, 0);
  await page.evaluate(`{
    for (const dismiss of document.querySelectorAll('#notices button')) dismiss.click();
    window.dispatchEvent(new Event('online')); // a line that was lost need not wait for its next attempt
  }`);
  // By way of another page, since none is drawn anew that is shown already.
  for (const path of ['/cluster', '/operations']) await goTo(page, path);
  await page.getByText('Live', { exact: true }).waitFor();
  await page.locator('dialog').waitFor({ state: 'detached' });
}

/** Shows a page as the Back button does, without loading the dashboard anew. */
export async function goTo(page: Page, path: string): Promise<void> {
  await page.evaluate(
    `history.pushState(null, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
  );
  await page.locator('main h1').first().waitFor();
}

export async function signIn(page: Page, key: string): Promise<void> {
  const form = page.getByRole('textbox', { name: 'API key' });
  const other = page.getByRole('button', { name: 'API key' });
  await form.or(other).first().waitFor();
  if ((await form.count()) === 0) await other.click();
  await form.fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
}

export type Held = {
  readonly asked: Promise<void>;
  /** Resolves when the page has had the answer, and time to do what it does then. */
  release(): Promise<void>;
};

/** Has the first request of its kind wait until it is released. */
export async function holdBack(
  page: Page,
  url: string | RegExp,
  finish: (route: Route) => Promise<void> = (route) => route.continue(),
): Promise<Held> {
  let [tell, letGo] = [(): void => undefined, (): void => undefined];
  const asked = new Promise<void>((resolve) => {
    tell = resolve;
  });
  const released = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let isFirst = true;
  await page.route(url, async (route) => {
    if (!isFirst) return route.continue();
    isFirst = false;
    tell();
    await released;
    return finish(route);
  });
  return {
    asked,
    async release() {
      const answered = page.waitForResponse(url);
      letGo();
      await (await answered).finished();
      await page.evaluate('fetch("/healthz").then((response) => response.text())');
    },
  };
}

/**
 * Has time leap on the page by the test alone: an answer would otherwise tell it that at the gateway none has passed.
 */
export async function ownTime(page: Page): Promise<void> {
  await page.evaluate(`{
    const { get } = Headers.prototype;
    Headers.prototype.get = function (name) { return name === 'date' ? null : get.call(this, name); };
  }`);
  await page.clock.install();
}

/** Lets the clock of the page run until it is there. */
export const running = (page: Page, element: Locator): Promise<void> =>
  eventually(async () => {
    await page.clock.runFor(100);
    expect(await element.isVisible()).toBe(true);
  });

/** Its address, which is known here a moment after the page has changed it. */
export const addressBecomes = (page: Page, address: string): Promise<void> =>
  eventually(() => expect(page.url().replace(/^https?:\/\/[^/]+/, '')).toBe(address));

export const rowOf = (page: Page, opId: string): Locator => page.locator(`tr[data-op=${JSON.stringify(opId)}]`);

export const stateOf = (row: Locator, state: string): Promise<void> => row.getByText(state, { exact: true }).waitFor();

export const focusOn = (control: Locator): Promise<void> =>
  eventually(async () =>
    expect(
      await control.evaluate(
        (element) =>
          element === (element as { ownerDocument?: { activeElement: unknown } }).ownerDocument?.activeElement,
      ),
    ).toBe(true),
  );

/** On how many lines its text stands. */
export const linesOf = (cell: Locator): Promise<number> =>
  cell.evaluate((element) => {
    const range = (globalThis as any).document.createRange();
    range.selectNodeContents(element);
    return new Set([...range.getClientRects()].map(({ bottom }: { bottom: number }) => Math.round(bottom / 8))).size;
  });

/** The dashboard in a real browser: a gateway, pages that are signed in, and agents that ask. */
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished } from 'vitest';
import { newPage, openPage, sharedBrowser } from './browser.ts';
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
  /** Registers an agent, and returns a function by which it asks whether it may call a tool. */
  agent(org: string, team: string, name: string): Promise<(trace: string, resource?: string) => Promise<void>>;
};

/** One gateway for all tests of the suite in which it is called. */
export function useDashboard(env: Readonly<Record<string, string>> = {}): Dashboard {
  let gateway: TestGateway;
  let browser: Browser;
  let kept: Awaited<ReturnType<typeof newPage>> | undefined;
  beforeAll(async () => {
    [gateway, browser] = await Promise.all([startTestGateway({ env }), sharedBrowser()]);
  });
  afterAll(async () => {
    await kept?.page.context().close();
    await gateway?.stop();
  });

  const open = (url = gateway.url): Promise<Page> => openPage(browser, url);

  async function keptPage(): Promise<Page> {
    if (kept === undefined) {
      kept = await newPage(browser);
      await kept.page.goto(gateway.url);
      await signIn(kept.page, ADMIN_KEY);
    } else await tidied(kept.page, gateway.url);
    const { page, surprises } = kept;
    onTestFinished(async ({ task }) => {
      const hasFailed = task.result?.state === 'fail' || surprises.length > 0;
      if (hasFailed) kept = undefined; // what it has left is no other test's concern
      if (hasFailed) await page.context().close();
      expect(surprises).toEqual([]);
    });
    return page;
  }

  return {
    gateway: () => gateway,
    openPage: open,
    async signedIn(key, url) {
      if (key === undefined && url === undefined) return keptPage();
      const page = await open(url);
      await signIn(page, key ?? ADMIN_KEY);
      return page;
    },
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

/** Leaves nothing of the test before but its session: its view is drawn anew, and what it said is gone. */
async function tidied(page: Page, url: string): Promise<void> {
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.emulateMedia({ media: null, forcedColors: null });
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.mouse.move(0, 0);
  await page.goto(`${url}/#/policies`);
  await page.getByRole('heading', { name: 'Policies' }).waitFor();
  await page.goto(`${url}/#/operations`);
  await page.getByRole('heading', { name: 'Operations' }).waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  await page
    .locator('#notices button')
    .evaluateAll((buttons: { click(): void }[]) => buttons.forEach((button) => void button.click()));
  await page.getByRole('dialog').waitFor({ state: 'detached' });
}

export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('Live', { exact: true }).waitFor();
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

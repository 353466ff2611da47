import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { SMTPServer } from 'smtp-server';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER, openPage, sharedBrowser } from '../support/browser.ts';
import { hashBecomes, holdBack } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { withPostgres } from '../support/postgres.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of signing in at the dashboard are skipped: ${NO_BROWSER}`);

const OWNER = 'the-owner-with-a-long-name@subsidiary.of.the.example.com';
const PASSWORD = 'a horse that nobody corrects';

const newDatabase = withPostgres();

describe.skipIf(BROWSER_PATH === undefined)('accounts at the dashboard', () => {
  const mails: string[] = [];
  const relay = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS', 'AUTH'],
    logger: false,
    onData: (stream, _session, done) => {
      let raw = '';
      stream.on('data', (chunk: Buffer) => {
        raw += chunk.toString();
      });
      stream.on('end', () => {
        mails.push(raw.replace(/=\r\n/g, ''));
        done();
      });
    },
  });
  /** What an earlier test has left it at. */
  let ownerPassword = PASSWORD;
  let gateway: TestGateway;
  let browser: Browser;
  beforeAll(async () => {
    const port = await new Promise<number>((resolve) => {
      const { server } = relay;
      relay.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
    });
    browser = await sharedBrowser();
    gateway = await startTestGateway({
      env: {
        SVC_DATABASE_URL: await newDatabase(),
        SVC_ARGON2_MEMORY_KIB: '1024',
        SVC_SMTP_HOST: '127.0.0.1',
        SVC_SMTP_PORT: String(port),
      },
    });
  });
  afterAll(async () => {
    await gateway?.stop();
    await new Promise<void>((resolve) => relay.close(resolve));
  });

  test('the first visitor becomes owner, stays signed in, invites and disables another', async () => {
    const owner = await open();
    await owner.getByRole('heading', { name: 'Create the owner account' }).waitFor();
    const other = await owner.context().newPage();
    await owner.getByLabel('E-mail').fill(OWNER);
    await owner.getByLabel('Password').fill('too short');
    await owner.getByRole('button', { name: 'Create account' }).click();
    await owner.getByRole('alert').getByText('12 characters').waitFor();
    await owner.getByLabel('Password').fill(PASSWORD);
    await owner.getByRole('button', { name: 'Create account' }).click();
    await live(owner);
    await other.goto(gateway.url);
    await other.getByRole('button', { name: 'Sign out' }).click();
    await owner.getByText('You signed out in another tab.').waitFor();
    await signIn(owner, OWNER, PASSWORD);
    await owner.reload();
    await live(owner);
    // A name of any length leaves the names of the views whole.
    for (const width of [950, 1100, 1300]) {
      await owner.setViewportSize({ width, height: 700 });
      expect(
        await owner
          .getByRole('navigation')
          .evaluate((nav: { scrollWidth: number; clientWidth: number }) => nav.scrollWidth - nav.clientWidth),
      ).toBe(0);
    }
    const kept = await owner.evaluate(
      'JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie])',
    );
    expect(kept).toBe('[[["svc.account","1"]],[],""]');

    await owner.getByRole('link', { name: 'Accounts' }).click();
    await owner.getByRole('button', { name: 'Invite' }).click();
    await owner.getByLabel('E-mail').fill('viewer@example.com');
    await owner.getByRole('dialog').getByLabel('Role').selectOption('viewer');
    await owner.getByRole('button', { name: 'Create invite' }).click();
    const link = (await owner.getByRole('dialog', { name: 'Invite link' }).getByRole('status').textContent()) ?? '';
    await owner.getByRole('button', { name: 'Done' }).click();

    const colleague = await open(link);
    await hashBecomes(colleague, '');
    expect(await credentialFields(colleague)).toEqual([
      'username viewer@example.com read-only',
      'new-password',
      'new-password',
    ]);
    await colleague.getByLabel('New password').fill(PASSWORD);
    await colleague.getByLabel('Confirm password').fill(`${PASSWORD}!`);
    await colleague.getByRole('button', { name: 'Create account' }).click();
    await colleague.getByRole('alert').getByText('do not match').waitFor();
    await colleague.getByLabel('Confirm password').fill(PASSWORD);
    await colleague.getByRole('button', { name: 'Create account' }).click();
    await colleague.getByText('Your account is ready').waitFor();
    expect(await credentialFields(colleague)).toEqual(['username viewer@example.com', 'current-password']);
    expect(
      await colleague
        .getByLabel('Password')
        .evaluate((input) => input === (input.ownerDocument as { activeElement: unknown }).activeElement),
    ).toBe(true);
    await signIn(colleague, 'viewer@example.com', PASSWORD);
    expect(await colleague.getByRole('navigation').getByRole('link').allTextContents()).toEqual([
      'Operations',
      'Agents',
      'Audit',
      'Budgets',
      'Policies',
    ]);
    await owner.getByRole('button', { name: 'Refresh' }).click();
    await owner
      .getByRole('table', { name: 'Accounts' })
      .getByRole('cell', { name: 'viewer@example.com', exact: true })
      .waitFor();
    await owner.getByText('No open invites.').waitFor();
    await owner.getByRole('button', { name: 'Disable viewer@example.com' }).click();
    await owner.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
    await colleague.getByText('Your session has ended').waitFor();
  });

  test('a forgotten password is reset by the mailed link, ending other sessions', async () => {
    await gateway.call('POST', '/api/v1/auth/register', { email: OWNER, password: PASSWORD }, null);
    const elsewhere = await open();
    await signIn(elsewhere, OWNER, PASSWORD);
    const page = await open();
    await page.getByLabel('E-mail').fill(OWNER);
    await page.getByRole('button', { name: 'Forgot password?' }).click();
    expect(await page.getByLabel('E-mail').inputValue()).toBe(OWNER); // typed once
    await page.getByRole('button', { name: 'Send link' }).click();
    await page.getByText('an e-mail is on its way').waitFor();
    const link = await eventually(() => {
      const found = /http:\/\/\S+\/#\/reset-password\/\S+/.exec(mails.join('\n'))?.[0];
      if (found === undefined) throw new Error(`no link among ${mails.length} mails`);
      return found;
    });
    // The page is open: only what stands behind the # changes.
    await page.goto(`${gateway.url}/${link.slice(link.indexOf('#'))}`);
    await page.getByLabel('New password').fill('a donkey that everybody corrects');
    await page.getByLabel('Confirm password').fill('a donkey that everybody corrects');
    await page.getByRole('button', { name: 'Set password' }).click();
    await page.getByText('Your password has been changed').waitFor();
    ownerPassword = 'a donkey that everybody corrects';
    await elsewhere.getByText('Your session has ended').waitFor();
    await page.getByLabel('E-mail').fill(OWNER);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    await signIn(page, OWNER, 'a donkey that everybody corrects');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Password').waitFor();
    await page.reload();
    await page.getByLabel('Password').waitFor();
  });

  test('a new password signs the old session out, and others can sign in there', async () => {
    await gateway.call('POST', '/api/v1/auth/register', { email: OWNER, password: PASSWORD }, null);
    await viewer('forgetful@example.com');
    const page = await open();
    await signIn(page, 'forgetful@example.com', PASSWORD);
    const sent = mails.length;
    await gateway.call('POST', '/api/v1/auth/password/reset', { email: 'forgetful@example.com' }, null);
    const link = await eventually(() => {
      const found = /#\/reset-password\/\S+/.exec(mails.slice(sent).join('\n'))?.[0];
      if (found === undefined) throw new Error('no mail yet');
      return found;
    });
    const follow = () => page.evaluate(`location.hash = ${JSON.stringify(link)}`);
    await follow();
    for (const label of ['New password', 'Confirm password']) await page.getByLabel(label).fill(`${PASSWORD}!`);
    await page.getByRole('button', { name: 'Set password' }).click();
    await page.getByText('Your password has been changed').waitFor();
    await follow();
    await page.getByRole('button', { name: 'Back to sign-in' }).click();
    await signIn(page, OWNER, ownerPassword);
    await page.getByRole('banner').getByText(OWNER, { exact: true }).waitFor();
  });

  test('two tabs of one account renew their tokens without signing each other out', async () => {
    await gateway.call('POST', '/api/v1/auth/register', { email: OWNER, password: PASSWORD }, null);
    await viewer('tabs@example.com');
    const first = await open();
    await signInUnderClock(first, 'tabs@example.com');
    const second = await first.context().newPage();
    await second.goto(gateway.url);
    await live(second);
    const renewed: string[] = [];
    first.context().on('response', (response) => {
      if (response.url().endsWith('/auth/refresh')) renewed.push(String(response.status()));
    });
    for (const page of [first, second]) await openPolicies(page);
    await first.context().clock.fastForward('14:30');
    await Promise.all([first, second].map((page) => page.getByRole('button', { name: 'Refresh' }).click()));
    await eventually(() => expect(renewed).toEqual(['200', '200']));
    for (const page of [first, second]) {
      await page.getByRole('link', { name: 'Budgets' }).click();
      await page.getByRole('heading', { name: 'Budgets' }).waitFor();
      expect(await page.getByText('Your session has ended').count()).toBe(0);
    }
  });

  test('tabs of one browser sign out together and never mix accounts', async () => {
    for (const email of ['first@example.com', 'other@example.com']) await viewer(email);
    const first = await open();
    await signIn(first, 'first@example.com', PASSWORD);
    const second = await first.context().newPage();
    await second.goto(gateway.url);
    await second.getByRole('button', { name: 'Sign out' }).click();
    await first.getByText('You signed out in another tab.').waitFor();
    await signIn(first, 'first@example.com', PASSWORD);
    await signIn(second, 'other@example.com', PASSWORD);
    await first.getByText('Someone else signed in').waitFor();
  });

  test('a cookie changed elsewhere is noticed on use', async () => {
    for (const email of ['here@example.com', 'there@example.com']) await viewer(email);
    const page = await open();
    await signInUnderClock(page, 'here@example.com');
    await page.evaluate(
      `fetch('/api/v1/auth/login', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '${JSON.stringify({ email: 'there@example.com', password: PASSWORD })}' })`,
    );
    await openPolicies(page);
    await page.context().clock.fastForward('14:30');
    // The page may ask by itself by then, and have noticed: the button is gone with its session.
    await page.evaluate(
      `[...document.querySelectorAll('button')].find((each) => each.textContent === 'Refresh')?.click()`,
    );
    await page.getByLabel('Password').waitFor();
    await page.getByText('Someone else signed in').first().waitFor();
  });

  test('signing out during a token renewal works, and the next user signs in', async () => {
    for (const email of ['leaves@example.com', 'comes@example.com']) await viewer(email);
    const page = await open();
    await signInUnderClock(page, 'leaves@example.com');
    await openPolicies(page);
    let release = (): void => undefined;
    const isHeld = new Promise<void>((resolve) => {
      void page.route('**/auth/refresh', async (route) => {
        const response = await route.fetch();
        resolve();
        await new Promise<void>((go) => {
          release = go;
        });
        await route.fulfill({ response });
      });
    });
    await page.context().clock.fastForward('14:30');
    await page.getByRole('button', { name: 'Refresh' }).click();
    await isHeld;
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Password').waitFor();
    const renewed = page.waitForResponse('**/auth/refresh');
    release();
    await renewed;
    await signIn(page, 'comes@example.com', PASSWORD);
    await page.getByText('comes@example.com').first().waitFor();
    expect(await page.getByText('Someone else signed in').count()).toBe(0);
  });

  test('a session that could not be ended is reported, with how to end it', async () => {
    await viewer('stuck@example.com');
    const page = await open();
    await signIn(page, 'stuck@example.com', PASSWORD);
    await page.route('**/auth/logout', (route) =>
      route.fulfill({
        status: 503,
        contentType: 'application/problem+json',
        body: '{"detail":"the database cannot be reached"}',
      }),
    );
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page
      .getByText(
        'You are not fully signed out: this browser keeps its cookie until you sign in and out again. The database cannot be reached',
      )
      .waitFor();
    await page.getByLabel('Password').waitFor();
  });

  test('a form that is being filled in is not replaced when a mail is on its way', async () => {
    await gateway.call('POST', '/api/v1/auth/register', { email: OWNER, password: PASSWORD }, null);
    const page = await open();
    await page.getByRole('button', { name: 'Forgot password?' }).click();
    await page.getByLabel('E-mail').fill('nobody@example.com');
    const held = await holdBack(page, '**/auth/password/reset');
    await page.getByRole('button', { name: 'Send link' }).click();
    await held.asked;
    await page.getByRole('button', { name: 'Back to sign-in' }).click();
    await page.getByLabel('Password').fill(PASSWORD);
    await held.release();
    await page.locator('#notices').getByText('an e-mail is on its way').waitFor();
    expect(await page.getByLabel('Password').inputValue()).toBe(PASSWORD);
  });

  test('signing in and out with a key leaves account sessions alone', async () => {
    await viewer('stays@example.com');
    const page = await open();
    await signIn(page, 'stays@example.com', PASSWORD);
    const byKey = await page.context().newPage();
    await byKey.goto(`${gateway.url}/favicon.svg`);
    await byKey.evaluate(
      `sessionStorage.setItem('svc.session', JSON.stringify({ kind: 'key', token: 'x', expiresAtSecs: 9e9, scopes: ['read'], orgId: null, name: 'key:x' }))`,
    );
    await byKey.goto(gateway.url);
    await byKey.getByText('Your session has ended').waitFor();
    await page.reload();
    await live(page);
  });

  test('whoever signed in with a key is asked for a key after it is revoked', async () => {
    const { body } = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'visitor', scopes: ['read'] });
    const page = await open();
    await signInByKey(page, body.key);
    await gateway.call('POST', `/api/v1/iam/api-keys/${body.id}/revoke`);
    await page.getByText('Your session has ended').waitFor();
    await page.getByLabel('API key').waitFor();
  });

  test('accepting an invite while signed in says that the account is ready', async () => {
    const { body } = await gateway.call('POST', '/api/v1/auth/invite', { email: 'beside@example.com', role: 'viewer' });
    const page = await open();
    await signInByKey(page, ADMIN_KEY);
    await page.evaluate(`location.hash = '#/accept-invite/${body.invite_token}'`);
    for (const label of ['New password', 'Confirm password']) await page.getByLabel(label).fill(PASSWORD);
    await page.getByRole('button', { name: 'Create account' }).click();
    await live(page);
    await page
      .locator('#notices')
      .getByText('Your account is ready. Sign in with the password you just chose.')
      .waitFor();
  });

  test('a role changes only on confirmation', async () => {
    await gateway.call('POST', '/api/v1/auth/register', { email: OWNER, password: PASSWORD }, null);
    const { body } = await gateway.call('POST', '/api/v1/auth/invite', { email: 'risen@example.com', role: 'viewer' });
    await gateway.call(
      'POST',
      '/api/v1/auth/invite/accept',
      { invite_token: body.invite_token, password: PASSWORD },
      null,
    );
    const page = await open();
    await signInByKey(page, ADMIN_KEY);
    await page.getByRole('link', { name: 'Accounts' }).click();
    const role = page.getByLabel('Role of risen@example.com');
    const roleNow = async () =>
      (await gateway.call('GET', '/api/v1/accounts?per_page=1000')).body.accounts.find(
        ({ email }: { email: string }) => email === 'risen@example.com',
      ).role;
    await role.selectOption('admin');
    const dialog = page.getByRole('dialog', { name: 'Change this account’s role?' });
    expect(await dialog.textContent()).toContain('From viewer to admin');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    expect(await role.inputValue()).toBe('viewer');
    expect(await roleNow()).toBe('viewer');
    await role.selectOption('developer');
    await dialog.getByRole('button', { name: 'Change to developer' }).click();
    await eventually(async () => expect(await roleNow()).toBe('developer'));
    await eventually(async () => expect(await role.inputValue()).toBe('developer'));
  });

  test("disabling one's own account asks with a warning", async () => {
    const id = await viewer('himself@example.com');
    await gateway.call('POST', `/api/v1/accounts/${id}/role`, { role: 'admin' });
    const page = await open();
    await signIn(page, 'himself@example.com', PASSWORD);
    await page.getByRole('link', { name: 'Accounts' }).click();
    await page.getByRole('button', { name: 'Disable himself@example.com' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('This is your own account: you will be signed out.').waitFor();
    await dialog.getByRole('button', { name: 'Disable' }).click();
    await page.getByText('Your session has ended').waitFor();
  });

  test('a new role applies during work, in rights and in what is offered', async () => {
    const id = await viewer('promoted@example.com');
    const page = await open();
    await signIn(page, 'promoted@example.com', PASSWORD);
    await page.getByText('read-only', { exact: true }).waitFor();
    await gateway.call('POST', `/api/v1/accounts/${id}/role`, { role: 'developer' });
    await page.getByText('Your role is now developer.').waitFor();
    await page.getByRole('columnheader', { name: 'Actions' }).waitFor();
    expect(await page.getByText('read-only', { exact: true }).count()).toBe(0);
    await live(page);
    await page.getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('button', { name: 'Register agent' }).click();
    await page.getByRole('dialog').getByLabel('Team').fill('t');
    await page.getByRole('dialog').getByLabel('Agent', { exact: true }).fill('of-the-promoted');
    await page.getByRole('dialog').getByRole('button', { name: 'Register' }).click();
    const secret = page.getByRole('dialog', { name: 'Agent token' });
    await secret.waitFor();
    await page.getByRole('dialog', { name: 'Register an agent' }).waitFor({ state: 'detached' });
    await gateway.call('POST', `/api/v1/accounts/${id}/role`, { role: 'viewer' });
    await page.getByText('Your role is now viewer.').waitFor();
    expect(await secret.isVisible()).toBe(true); // shown only once
    await secret.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('link', { name: 'Operations', exact: true }).click();
    await page.getByRole('columnheader', { name: 'State', exact: true }).waitFor();
    expect(await page.getByRole('columnheader', { name: 'Actions' }).count()).toBe(0);
  });

  test('what the gateway would refuse is not offered, with the reason', async () => {
    await gateway.call('POST', '/api/v1/auth/register', { email: OWNER, password: PASSWORD }, null);
    for (const [email, org] of [
      ['free@example.com', {}],
      ['bound@example.com', { org_id: 'acme' }],
    ] as const) {
      const { body } = await gateway.call('POST', '/api/v1/auth/invite', { email, role: 'viewer', ...org });
      await gateway.call(
        'POST',
        '/api/v1/auth/invite/accept',
        { invite_token: body.invite_token, password: PASSWORD },
        null,
      );
    }
    const rolesFor = (page: Page, email: string) =>
      page.getByLabel(`Role of ${email}`).getByRole('option').allTextContents();
    const byKey = await open();
    await signInByKey(byKey, ADMIN_KEY);
    await byKey.getByRole('link', { name: 'Accounts' }).click();
    const owner = byKey.locator('tr', { hasText: OWNER });
    await owner.getByText('Only an owner can change this.').waitFor();
    expect(await owner.locator('button, select').count()).toBe(0);
    expect(await rolesFor(byKey, 'free@example.com')).toEqual(['viewer', 'developer', 'admin']);
    await byKey.getByRole('button', { name: 'Invite' }).click();
    expect(await byKey.getByRole('dialog').getByLabel('Role').getByRole('option').count()).toBe(3);

    const byOwner = await open();
    const { body } = await gateway.call('POST', '/api/v1/auth/invite', { email: 'second@example.com', role: 'admin' });
    await gateway.call(
      'POST',
      '/api/v1/auth/invite/accept',
      { invite_token: body.invite_token, password: PASSWORD },
      null,
    );
    const second = await open();
    await signIn(second, 'second@example.com', PASSWORD);
    await second.getByRole('link', { name: 'Accounts' }).click();
    await second.locator('tr', { hasText: OWNER }).getByText('Only an owner can change this.').waitFor();
    expect(await rolesFor(second, 'free@example.com')).toEqual(['viewer', 'developer', 'admin']);
    await signIn(byOwner, OWNER, ownerPassword);
    await byOwner.getByRole('link', { name: 'Accounts' }).click();
    await byOwner.getByLabel('Role of free@example.com').waitFor();
    expect(await rolesFor(byOwner, 'free@example.com')).toEqual(['viewer', 'developer', 'admin', 'owner']);
    expect(await rolesFor(byOwner, 'bound@example.com')).toEqual(['viewer', 'developer', 'admin']);
    await byOwner.getByLabel('Role of free@example.com').selectOption('owner');
    await byOwner.getByRole('dialog').getByRole('button', { name: 'Change to owner' }).click();
    await byOwner.getByRole('dialog').waitFor({ state: 'detached' });
    await eventually(async () =>
      expect(await byOwner.getByLabel('Role of free@example.com').inputValue()).toBe('owner'),
    );
  });

  test('a lockout is shown in minutes, and a long address fits the dialog on a phone', async () => {
    await gateway.call('POST', '/api/v1/auth/register', { email: OWNER, password: PASSWORD }, null);
    await viewer('locked@example.com');
    for (let failed = 0; failed < 5; failed += 1)
      await gateway.call(
        'POST',
        '/api/v1/auth/login',
        { email: 'locked@example.com', password: 'not the password of anybody' },
        null,
      );
    const page = await open();
    await page.getByLabel('E-mail').fill('locked@example.com');
    await page.getByLabel('Password').fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page
      .getByRole('alert')
      .getByText(/^Too many failed attempts; try again in 1[345] minutes$/)
      .waitFor();
    await page.setViewportSize({ width: 390, height: 844 });
    await signInByKey(page, ADMIN_KEY);
    await page.goto(`${gateway.url}/#/accounts`);
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByLabel('E-mail').fill('a.colleague.with.a.very.long.name@subsidiary.example.com');
    await page.getByRole('button', { name: 'Create invite' }).click();
    const dialog = page.getByRole('dialog', { name: 'Invite link' });
    await dialog.waitFor();
    expect(
      await dialog.evaluate(
        ({ scrollWidth, clientWidth }: { scrollWidth: number; clientWidth: number }) => scrollWidth - clientWidth,
      ),
    ).toBe(0);
  });

  const open = (url = gateway.url): Promise<Page> => openPage(browser, url);

  /** Its id. */
  async function viewer(email: string): Promise<string> {
    const { body } = await gateway.call('POST', '/api/v1/auth/invite', { email, role: 'viewer' });
    const accepted = await gateway.call(
      'POST',
      '/api/v1/auth/invite/accept',
      { invite_token: body.invite_token, password: PASSWORD },
      null,
    );
    return accepted.body.account.id;
  }
});

/** What a password manager goes by, field by field. */
const credentialFields = (page: Page): Promise<readonly string[]> =>
  page
    .locator('form input[autocomplete]')
    .evaluateAll((inputs: { autocomplete: string; value: string; readOnly: boolean }[]) =>
      inputs.map(({ autocomplete, value, readOnly }) =>
        [autocomplete, ...(value === '' ? [] : [value]), ...(readOnly ? ['read-only'] : [])].join(' '),
      ),
    );

const live = (page: Page): Promise<void> => page.getByText('Live', { exact: true }).waitFor();

async function signIn(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await live(page);
}

/** Time passes on the page only as the test lets it. */
async function signInUnderClock(page: Page, email: string): Promise<void> {
  await page.context().clock.install();
  await signIn(page, email, PASSWORD);
}

async function signInByKey(page: Page, key: string): Promise<void> {
  await page.getByRole('button', { name: 'Use an API key' }).click();
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await live(page);
}

/** With what was asked for on the way answered: after the clock has leapt, what is asked renews the token first. */
async function openPolicies(page: Page): Promise<void> {
  await page.getByRole('link', { name: 'Policies' }).click();
  await page.getByText(/^Version /).waitFor();
}

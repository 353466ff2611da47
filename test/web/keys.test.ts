import { describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { focusOn, holdBack, useDashboard } from '../support/dashboard.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of API keys at the dashboard are skipped: ${NO_BROWSER}`);

describe.skipIf(BROWSER_PATH === undefined)('API keys at the dashboard', () => {
  const { gateway, signedIn } = useDashboard();

  test('the expiry of a key is readable without a pointer', async () => {
    const page = await signedIn();
    const endsAt = new Date(Date.now() + 3_600_000).toISOString();
    for (const [name, expiry] of [
      ['ends', { expires_at: endsAt }],
      ['stays', {}],
    ] as const)
      await gateway().call('POST', '/api/v1/iam/api-keys', { name: `key-${name}`, scopes: ['read'], ...expiry });
    await page.getByRole('link', { name: 'Keys' }).click();
    const said = (await page.evaluate(
      `import('/format.js').then(({ shortTime }) => shortTime('${endsAt}'))`,
    )) as string;
    expect(await page.getByRole('row', { name: 'key-ends' }).getByRole('cell').nth(6).innerText()).toMatch(
      new RegExp(`^active\\s+until ${said.replace('+', '\\+')}$`),
    );
    expect(await page.getByRole('row', { name: 'key-stays' }).getByRole('cell').nth(6).innerText()).toBe('active');
  });

  test('a key sign-in is shown by its name, as the audit log has it', async () => {
    const { body } = await gateway().call('POST', '/api/v1/iam/api-keys', { name: 'night watch', scopes: ['read'] });
    const page = await signedIn(body.key);
    const who = page.getByRole('banner').getByText('night watch');
    expect(await who.getAttribute('title')).toBe(`night watch (key:${body.id}) · scopes: read`);
    await page.reload();
    await who.waitFor();
  });

  test('a key that expires next year is not shown as expiring this year', async () => {
    const page = await signedIn();
    const nextYear = new Date().getFullYear() + 1;
    await gateway().call('POST', '/api/v1/iam/api-keys', {
      name: 'key-long',
      scopes: ['read'],
      expires_at: `${nextYear}-12-24T18:00:00Z`,
    });
    await page.getByRole('link', { name: 'Keys' }).click();
    await page
      .getByRole('row', { name: 'key-long' })
      .getByText(new RegExp(`^until Dec 24, ${nextYear}, `))
      .waitFor();
  });

  test('a time is typed without a stop: the year takes at most four digits', async () => {
    const page = await signedIn();
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByLabel('Name').fill('typed through');
    await page.getByLabel('Expires').focus();
    await page.keyboard.type('123120990630PM');
    expect(await page.getByLabel('Expires').inputValue()).toBe('2099-12-31T18:30');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('link', { name: 'Audit' }).click();
    for (const label of ['From', 'To']) {
      await page.getByLabel(label).focus();
      await page.keyboard.type('12312099063015PM');
      expect(await page.getByLabel(label).inputValue()).toBe('2099-12-31T18:30:15');
    }
  });

  test('the actor of an audit entry is found among the keys, also SVC_BOOTSTRAP_API_KEY', async () => {
    const page = await signedIn();
    const { body: created } = await gateway().call('POST', '/api/v1/iam/api-keys', {
      name: 'key-actor',
      scopes: ['read'],
    });
    await gateway().call('POST', '/api/v1/auth/token', {});
    await gateway().call('POST', '/api/v1/auth/token', {}, created.key as string);
    const { body } = await gateway().call('GET', '/api/v1/logs?event_type=TokenIssued&per_page=2');
    const [minted, bootstrap] = (body.entries as { actor: string }[]).map(({ actor }) => actor.replace('key:', ''));
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('row', { name: 'key-actor' }).getByText(minted!).waitFor();
    await page.getByRole('row', { name: 'SVC_BOOTSTRAP_API_KEY' }).getByText(bootstrap!).waitFor();
  });

  test('destructive buttons keep their colour under the pointer', async () => {
    await gateway().call('POST', '/api/v1/iam/api-keys', { name: 'red', scopes: ['read'] });
    const page = await signedIn();
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Revoke red' }).click();
    const yes = page.getByRole('dialog').getByRole('button', { name: 'Revoke' });
    const colour = () =>
      yes.evaluate((element: object) => (globalThis as any).getComputedStyle(element).backgroundColor as string);
    const atRest = await colour();
    await yes.hover();
    expect(await colour()).toBe(atRest);
  });

  test('a view that is left while a question is prepared does not ask it', async () => {
    await gateway().call('POST', '/api/v1/iam/api-keys', { name: 'slow', scopes: ['read'] });
    const page = await signedIn();
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('link', { name: 'Keys' }).click();
    const held = await holdBack(page, /made_by=/);
    await page.getByRole('button', { name: 'Revoke slow' }).click();
    await held.asked;
    await page.goBack();
    await page.getByRole('heading', { name: 'Policies' }).waitFor();
    await held.release();
    expect(await page.getByRole('dialog').count()).toBe(0);
  });

  test('a question closes with its view, and a one-time secret stays', async () => {
    const page = await signedIn();
    await page.getByRole('link', { name: 'Policies' }).click();
    await page.getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('left behind');
    await page.goBack();
    await page.getByRole('heading', { name: 'Policies' }).waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await focusOn(page.getByRole('main'));
    await page.goForward();
    await page
      .getByRole('button', { name: /^Revoke / })
      .first()
      .click();
    await page.getByRole('dialog').waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'Policies' }).waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.goForward();
    await page.getByRole('button', { name: 'Create key' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('kept');
    await page.getByRole('dialog').getByRole('button', { name: 'Create key' }).click();
    const secret = page.getByRole('dialog', { name: 'New API key' });
    await secret.waitFor();
    await page.goBack();
    await page.getByRole('heading', { name: 'Policies' }).waitFor();
    expect(await secret.getByText(/^svc_/).isVisible()).toBe(true);
    await secret.getByRole('button', { name: 'Done' }).click();
    await secret.waitFor({ state: 'detached' });
  });
});

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, describe, expect, test } from 'vitest';
import { BROWSER_PATH, NO_BROWSER } from '../support/browser.ts';
import { goTo, rowOf, stateOf, useDashboard } from '../support/dashboard.ts';
import { eventually } from '../support/eventually.ts';

if (BROWSER_PATH === undefined) console.warn(`the tests of an incident at the dashboard are skipped: ${NO_BROWSER}`);

const POLICY = `name: incident
scope: global
limits:
  - { id: pages, per: session, calls: 2, actions: ["web.page"], on_exceed: ask, step: 3 }
rules:
  - { id: pages-are-read, actions: ["web.page"], effect: allow }
  - { id: tools, actions: ["tool.call"], resources: ["web_search", "deploy"], effect: allow }
  - { id: no-rockets, actions: ["tool.call"], resources: ["launch_rocket"], effect: deny, reason: no rockets }
  - { id: releases, actions: ["deploy.run"], effect: require_approval, reason: a person decides }
`;

describe.skipIf(BROWSER_PATH === undefined)('the dashboard during an incident', () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-incident-'));
  const file = join(folder, 'incident.yaml');
  writeFileSync(file, POLICY);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const { agent, gateway, signedIn } = useDashboard({ SVC_POLICY_PATH: folder });

  /** An agent of its own, that asks with any arguments. */
  async function asker(org: string, name: string) {
    const identity = { org_id: org, team_id: 'release', agent_id: name };
    const { body } = await gateway().call('POST', '/api/v1/agents', { agent: identity });
    return async (traceId: string, more: Readonly<Record<string, unknown>> = {}) => {
      const asked = {
        agent: { orgId: org, teamId: 'release', agentId: name },
        credentialToken: body.credential_token,
        ...{ traceId, spanId: 's', action: 'deploy.run', resource: 'prod/web' },
        ...more,
      };
      return (await gateway().call('POST', '/svc.governance.v1.PolicyService/CheckAction', asked, null)).body;
    };
  }
  const approver = async () =>
    (await gateway().call('POST', '/api/v1/iam/api-keys', { name: 'desk', scopes: ['admin'] })).body.key as string;
  const stateOfApproval = async (id: string) =>
    (await gateway().call('GET', `/api/v1/approvals/${id}`)).body.approval.state;
  const main = (page: Page) => page.getByRole('main');

  test('stops a team for good by a halt that says what it stops, and is released', async () => {
    const page = await signedIn();
    const ask = await agent('umbrella', 'search', 'one');
    await ask('halt-1');
    await (await agent('umbrella', 'search', 'two'))('halt-2');
    await goTo(page, '/operations?org_id=umbrella');
    await rowOf(page, 'halt-1:s')
      .getByRole('button', { name: /^Terminate/ })
      .click();
    await page.getByRole('dialog').getByRole('button', { name: 'Stop and keep stopped…' }).click();
    const dialog = page.getByRole('dialog', { name: 'Stop, and keep stopped' });
    expect(
      await dialog.getByRole('radio').evaluateAll((all: { value: string }[]) => all.map(({ value }) => value)),
    ).toEqual(['agent', 'lineage', 'team', 'org']);
    await dialog.getByText('stops 1 operation').first().waitFor();
    await dialog.getByRole('radio', { name: /^Team/ }).check();
    await dialog.getByText('stops 2 operations').first().waitFor();
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('runaway');
    await dialog.getByRole('button', { name: 'Halt', exact: true }).click();
    for (const opId of ['halt-1:s', 'halt-2:s']) await stateOf(rowOf(page, opId), 'halted');
    await page.getByText('halt in force').waitFor();
    await ask('halt-3');
    const { entries } = (await gateway().call('GET', '/api/v1/logs?op_id=halt-3:s')).body;
    expect(entries).toMatchObject([{ decision: 'deny', cause: 'halt' }]);

    await page.getByRole('link', { name: 'Overview', exact: true }).first().click();
    await main(page).getByText('runaway').first().waitFor();
    await page.getByRole('button', { name: 'Release team umbrella / search' }).click();
    await page.getByRole('dialog').getByRole('textbox', { name: 'Reason' }).fill('fixed');
    await page.getByRole('dialog').getByRole('button', { name: 'Release' }).click();
    await page.getByRole('button', { name: 'Release team umbrella / search' }).waitFor({ state: 'detached' });
    await ask('halt-4');
    await goTo(page, '/operations?org_id=umbrella');
    await stateOf(rowOf(page, 'halt-4:s'), 'running');
  });

  test('does not take a mistyped name for a stopped team', async () => {
    const page = await signedIn();
    await page.getByRole('button', { name: 'Halt…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Org', { exact: true }).fill('acmee');
    await dialog.getByText('No registered agent is in this scope.').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
  });

  test('shows requests for an approval in the inbox and decides them, by the keyboard', async () => {
    const ask = await asker('acme', 'deployer');
    const first = await ask('wait-1', { attributes: { version: '1', replicas: 2 } });
    await gateway().call('POST', `/api/v1/approvals/${first.approvalId}/approve`, { reason: 'ok' }, await approver());
    await ask('wait-1', { attributes: { version: '1', replicas: 2 } });
    const page = await signedIn();
    await goTo(page, '/alerts');
    for (const mark of await page.getByRole('button', { name: /^Mark (all )?as seen/ }).all()) await mark.click();
    await goTo(page, '/operations');
    await eventually(async () => expect(await page.title()).toBe('Operations · svc-gateway'));
    const second = await ask('wait-2', { attributes: { version: '2', replicas: 2 } });
    await eventually(async () => expect(await page.title()).toBe('(1) Operations · svc-gateway'));
    await page.getByRole('link', { name: 'Approvals' }).click();
    const detail = page.getByRole('region', { name: 'Request', exact: true });
    await detail.getByText('1 difference to').waitFor();
    expect(await detail.locator('del').textContent()).toBe('before: 1');
    expect(await detail.locator('ins').textContent()).toBe('2');
    await detail.getByText('incident · releases').waitFor();
    await page.keyboard.press('a');
    await page.getByRole('dialog').getByRole('textbox', { name: 'Reason' }).fill('change window');
    await page.keyboard.press('Enter');
    await page.getByText('Approved.', { exact: true }).waitFor();
    expect(await stateOfApproval(second.approvalId)).toBe('approved');
    expect((await ask('wait-2', { attributes: { version: '2', replicas: 2 } })).decision).toBe('DECISION_ALLOW');
    await eventually(async () => expect(await page.title()).toBe('Approvals · svc-gateway'));
  });

  test('denies a request on a phone, with a reason', async () => {
    const ask = await asker('acme', 'phoned');
    const { approvalId } = await ask('phone-1', { resource: 'prod/phone' });
    const page = await signedIn();
    await page.setViewportSize({ width: 390, height: 844 });
    await goTo(page, '/approvals');
    await page.getByRole('link', { name: /prod\/phone/ }).click();
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.getByRole('dialog').getByRole('textbox', { name: 'Reason' }).fill('not today');
    await page.getByRole('dialog').getByRole('button', { name: 'Deny' }).click();
    await page.getByText('Denied.', { exact: true }).waitFor();
    expect(await stateOfApproval(approvalId)).toBe('denied');
  });

  test('shows a limit that is reached, and its request, which raises it', async () => {
    const ask = await asker('lab', 'reader');
    const reads = (spanId: string) => ask('run-7', { spanId, action: 'web.page', resource: 'https://example.org' });
    for (const spanId of ['a', 'b', 'c']) await reads(spanId);
    const page = await signedIn(await approver());
    await goTo(page, '/budgets?org_id=lab');
    const row = page.getByRole('region', { name: 'Limits' }).getByRole('row', { name: /run-7/ });
    await row.getByText('pages (incident)').waitFor();
    await row.getByText('2 of 2 calls').waitFor();
    await row.getByText('with the session').waitFor();
    await goTo(page, '/approvals?org_id=lab');
    const request = page.getByRole('region', { name: 'Request', exact: true });
    await request.getByText('Raises limit pages of this session (run-7) by 3: 2 of 2 calls are used.').waitFor();
    await request.getByRole('link', { name: 'incident · pages' }).waitFor();
    await request.getByRole('button', { name: /^Approve/ }).click();
    await page.getByRole('dialog').getByRole('textbox', { name: 'Reason' }).fill('goes on');
    await page.keyboard.press('Enter');
    await page.getByText('Approved.', { exact: true }).waitFor();
    expect((await reads('d')).decision).toBe('DECISION_ALLOW');
    await goTo(page, '/budgets?org_id=lab');
    await row.getByText(/ of 5 calls/).waitFor();
  });

  test('raises an alert for an impersonation that leads to the entry, until it is seen', async () => {
    const [thief, victim] = [
      { orgId: 'acme', teamId: 'release', agentId: 'thief' },
      { orgId: 'acme', teamId: 'release', agentId: 'victim' },
    ];
    const register = async ({ orgId, teamId, agentId }: typeof thief) =>
      (await gateway().call('POST', '/api/v1/agents', { agent: { org_id: orgId, team_id: teamId, agent_id: agentId } }))
        .body.credential_token as string;
    await register(victim);
    const asked = {
      agent: victim,
      credentialToken: await register(thief),
      traceId: 'theft',
      spanId: 's',
      action: 'tool.call',
    };
    await gateway().call('POST', '/svc.governance.v1.PolicyService/CheckAction', asked, null);
    const page = await signedIn();
    await goTo(page, '/alerts');
    const alert = main(page).getByRole('listitem').filter({ hasText: 'Impersonation' });
    await alert.getByRole('link', { name: 'acme / release / thief' }).waitFor();
    await alert.getByRole('link', { name: 'acme / release / victim' }).waitFor();
    await page.reload();
    await alert.getByRole('link', { name: /^Audit entry/ }).click();
    const entry = page.locator('details.entry[open]');
    await entry.getByText('Victim', { exact: true }).waitFor();
    await entry.getByRole('link', { name: 'acme / release / victim' }).waitFor();
    await goTo(page, '/alerts');
    await page.reload();
    await page.getByRole('region', { name: 'Seen', exact: true }).getByText('Impersonation').waitFor();
    await alert.getByRole('button', { name: /^Mark as seen/ }).waitFor({ state: 'detached' });
  });

  test('begins at the overview: figures as pictures and tables, that lead to the rows', async () => {
    const ask = await agent('viewed', 'search', 'crawler');
    await ask('view-1');
    for (let at = 0; at < 3; at += 1) await ask(`view-deny-${at}`, 'launch_rocket');
    const page = await signedIn();
    await goTo(page, '/?window=15m&org_id=viewed');
    for (const name of ['Checks per second', 'Decisions', 'Latency', 'Spend'])
      await page.getByRole('figure', { name }).waitFor();
    const table = page.getByRole('figure', { name: 'Decisions' }).getByRole('table');
    expect(await table.getByRole('columnheader').allTextContents()).toEqual(['Time', 'allow', 'deny', 'pending']);
    await eventually(async () =>
      expect(await table.getByRole('row').last().getByRole('cell').allTextContents()).not.toEqual(['0', '0', '0']),
    );
    await page.getByLabel('Window').selectOption('24h');
    expect(new URL(page.url()).searchParams.get('window')).toBe('24h');
    const rules = page.getByRole('region', { name: 'Top denied rules' });
    await rules.getByRole('link', { name: 'incident · no-rockets' }).waitFor();
    await rules
      .getByRole('link', { name: /denials in the audit log/ })
      .first()
      .click();
    await main(page).getByText('no rockets').first().waitFor();
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
      ...{ decision: 'deny', policy: 'incident', rule_id: 'no-rockets', org_id: 'viewed' },
    });
  });

  test('shows the changes made by people and files, with their authors', async () => {
    await gateway().call('POST', '/api/v1/iam/api-keys', { name: 'made in the night', scopes: ['read'] });
    const page = await signedIn();
    await goTo(page, '/changes');
    await main(page)
      .getByText(/made in the night/)
      .first()
      .waitFor();
  });

  test('on a page of an agent shows its operations, denials, budget and family', async () => {
    const parent = { org_id: 'family', team_id: 'release', agent_id: 'parent' };
    await gateway().call('POST', '/api/v1/agents', { agent: parent });
    await gateway().call('POST', '/api/v1/agents', { agent: { ...parent, agent_id: 'child' }, parent });
    await gateway().call('POST', '/api/v1/usage', { agent: { ...parent, agent_id: 'child' }, cost_usd: 2.5 });
    const page = await signedIn();
    await goTo(page, '/agents?org_id=family');
    await page.getByRole('link', { name: 'child' }).click();
    await page.getByRole('heading', { name: 'family / release / child' }).waitFor();
    await page
      .getByRole('region', { name: 'Family' })
      .getByRole('link', { name: 'family / release / parent' })
      .waitFor();
    await page.getByRole('region', { name: 'Budget' }).getByText('$2.50').first().waitFor();
    await page.getByRole('button', { name: 'Halt', exact: true }).click();
    await page.getByRole('dialog').getByText('Agent family / release / child').waitFor();
  });
});

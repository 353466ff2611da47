import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import type { TestGateway } from '../../support/gateway.ts';

/** A machine that others use as well. */
const LATE_MS = 60_000;

type Agent = { readonly check: (gateway: TestGateway, spanId: string, resource?: string) => Promise<any> };

/** The history of a cluster, a shadow that all of its gateways ask, and a replay of what all of them have recorded. */
export function describePolicyLife(
  gateways: () => readonly [TestGateway, TestGateway, TestGateway],
  newAgent: (agentId: string) => Promise<Agent>,
  startFourth: (dataDir: string) => Promise<TestGateway>,
): void {
  const SHADOW = `
name: p
scope: global
rules:
  - { id: open, actions: ["tool.call"], effect: allow }
  - { id: no-tax, resources: ["tax*"], effect: deny, reason: closed }
`;
  const files = [{ name: 'p.yaml', text: SHADOW }];
  const shadowAt = (gateway: TestGateway) => gateway.call('GET', '/api/v1/policies/shadow');

  /** A gateway adds those up that answer within a second: on a busy machine one may be late. */
  const expectCounts = (gateway: TestGateway, counts: object) =>
    eventually(async () => expect((await shadowAt(gateway)).body).toMatchObject(counts));
  /** The sets that each entry of the logs of all gateways differs from. */
  const differingAt = (gateway: TestGateway): Promise<readonly string[]> =>
    eventually(async () => {
      const { body } = await gateway.call('GET', '/api/v1/logs?shadow=differs&agent_id=shadowed');
      expect(body.incomplete).toEqual([]);
      return body.entries.map((entry: any) => entry.payload.shadow.version);
    });

  test('keep one history, which is the same at each of them', async () => {
    const [one, two, three] = gateways();
    const before = (await one.call('GET', '/api/v1/policies')).body.version;
    const other = (await two.call('POST', '/api/v1/policies', { files })).body.version;
    expect((await three.call('POST', '/api/v1/policies', { version: before })).body.version).toBe(before);
    const listAt = async (gateway: TestGateway) =>
      (await gateway.call('GET', '/api/v1/policies/versions')).body.versions;
    // The step of the database that puts a set in force enters it, before the publisher is answered.
    const atOnce = await listAt(three);
    expect(atOnce.slice(0, 2)).toMatchObject([
      { version: before, until: null },
      { version: other, until: atOnce[0].since },
    ]);
    // `state` tells by which set a gateway acts. The answer waits for that a second at most; late ones follow.
    await eventually(async () => {
      const lists = await Promise.all(gateways().map(listAt));
      expect(lists[0].slice(0, 2)).toMatchObject([{ state: 'in_force' }, { state: 'past' }]);
      for (const list of lists) expect(list).toEqual(lists[0]);
    });
    const path = `/api/v1/policies/diff?from=${before}&to=${other}`;
    for (const each of gateways())
      expect((await each.call('GET', path)).body.changes).toMatchObject([
        { kind: 'added', document: 'p', rule_id: 'no-tax' },
        { kind: 'removed', document: 'p', rule_id: 'pay' },
      ]);
  });

  test('ask a shadow at all of them, after a restart too, and count what it differs in', async () => {
    const [one, two, three] = gateways();
    const started = await two.call('PUT', '/api/v1/policies/shadow', { files });
    expect(started.status).toBe(200);
    const { version } = started.body;
    const { check } = await newAgent('shadowed');
    // Gateways that are not named in the answer ask it from then on.
    const withinMs = started.headers.get('svc-unconfirmed') === null ? 0 : LATE_MS;
    for (const gateway of [one, two, three]) {
      await eventually(async () => expect((await shadowAt(gateway)).body.version).toBe(version), withinMs);
      expect(await check(gateway, `${version}-1`, 'tax-1')).toMatchObject({ decision: 'DECISION_ALLOW' });
    }
    const change = { from: 'allow', to: 'deny', policy: 'p', rule_id: 'no-tax' };
    for (const gateway of [one, two, three])
      await expectCounts(gateway, { version, differing: 3, errors: 0, changes: [{ ...change, count: 3 }] });
    expect(await differingAt(one)).toEqual([version, version, version]);
    await eventually(async () => {
      const replayed = await three.call('POST', '/api/v1/policies/replay', { files, agent_id: 'shadowed' });
      expect(JSON.parse(replayed.body.trimEnd().split('\n').at(-1)).result).toMatchObject({ checks: 3, changed: 3 });
    });

    const dataDir = mkdtempSync(join(tmpdir(), 'svc-fourth-'));
    let fourth = await startFourth(dataDir);
    onTestFinished(async () => {
      await fourth.stop('SIGKILL');
      rmSync(dataDir, { recursive: true, force: true });
    });
    await check(fourth, `${version}-4`, 'tax-1');
    await expectCounts(fourth, { version, differing: 4 });
    await fourth.stop();
    fourth = await startFourth(dataDir);
    await check(fourth, `${version}-5`, 'tax-1');
    await expectCounts(one, { version, differing: 5 });

    expect((await three.call('DELETE', '/api/v1/policies/shadow')).status).toBe(204);
    for (const gateway of [one, two, three, fourth])
      await eventually(async () => expect((await shadowAt(gateway)).status).toBe(404));
    await check(one, `${version}-6`, 'tax-1');
    expect(await differingAt(one)).toHaveLength(5);
  });
}

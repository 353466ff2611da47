import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Governor } from '../../../src/core/governor.ts';
import type { PolicySet } from '../../../src/core/policy/policy.ts';
import { loadPolicies } from '../../../src/policy-files/policy-file.ts';
import { fingerprint } from '../../../src/policy-files/policy-watch.ts';
import { createPolicyKeeper, reloadChanged } from '../../../src/threads/main/policy-keeper.ts';
import { eventually } from '../../support/eventually.ts';
import { fastestMs } from '../../support/fastest.ts';
import { faultOf, testAudit, testClock } from '../../support/harness.ts';
import { hang } from '../../support/hung-file.ts';

const named = (name: string): string =>
  `name: ${name}\nscope: global\nrules:\n  - { id: r, actions: ["*"], effect: allow }\n`;

/** A keeper with the policies of the file `path`, named `before`, in force. */
async function keeperOf(path: string, timing: { readonly readTimeoutMs?: number; readonly retryMs?: number }) {
  writeFileSync(path, named('before'));
  const before = await loadPolicies(path);
  if (!before.ok) throw new Error('refused');
  const { policies } = before.value;
  const governor = { policies, budgets: { reconfigure: () => undefined } };
  const errors: unknown[] = [];
  const keeper = createPolicyKeeper({
    path,
    policies,
    governor: governor as unknown as Governor,
    audit: testAudit(),
    clock: testClock(),
    log: { info: () => undefined, error: () => undefined },
    onError: (error) => errors.push(error),
    ...timing,
  });
  return {
    keeper,
    errors,
    namesInForce: (): readonly string[] => (governor.policies as PolicySet).summary().documents.map(({ name }) => name),
  };
}

function policyFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-policies-start-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, 'p.yaml');
}

describe('policies start', () => {
  test('a reload of a stalled policy file is refused in time and applied later', async (context) => {
    const path = policyFile();
    const { keeper, errors, namesInForce } = await keeperOf(path, { readTimeoutMs: 500 });
    writeFileSync(path, named('after'));
    const hung = await hang(path);
    if (hung === undefined) return context.skip();
    const refused = {
      kind: 'policy_invalid',
      problems: [`${path}: does not respond, like a network disk that is gone; it will be loaded as soon as it does`],
    };
    for (let nth = 0; nth < 3; nth += 1) expect(faultOf(await keeper.reload('account:root'))).toEqual(refused);
    expect(namesInForce()).toEqual(['before']);
    await hung.answer();
    await eventually(() => expect(namesInForce()).toEqual(['after']));
    expect({ reloads: keeper.reloads, errors }).toEqual({ reloads: { done: 1, failed: 3 }, errors: [] });
  });

  test('a change that a reload has read meanwhile is not read again', async () => {
    const path = policyFile();
    const { keeper, errors, namesInForce } = await keeperOf(path, {});
    const report = (error: unknown): void => void errors.push(error);
    writeFileSync(path, named('after'));
    const after = await fingerprint(path);
    // As SIGHUP and the watcher do: the one at once, the other while that is being read.
    await Promise.all([keeper.reload('gateway'), reloadChanged(keeper, report, after)]);
    expect([keeper.reloads, namesInForce()]).toEqual([{ done: 1, failed: 0 }, ['after']]);
    writeFileSync(path, named('last'));
    await reloadChanged(keeper, report, await fingerprint(path));
    expect([keeper.reloads, namesInForce()]).toEqual([{ done: 2, failed: 0 }, ['last']]);
    // Who asks for a reload gets one.
    await keeper.reload('account:root');
    expect([keeper.reloads.done, errors]).toEqual([3, []]);
  });

  test('a stop ends the read that runs, and nobody is told that it failed', async () => {
    // Parsing takes seconds, for which the process would stay.
    const rules = Array.from({ length: 20_000 }, (_, nth) => `  - { id: r${nth}, actions: ["a.b"], effect: allow }\n`);
    const stoppedAfterMs = async (): Promise<number> => {
      const path = policyFile();
      const { keeper, errors, namesInForce } = await keeperOf(path, {});
      writeFileSync(path, `name: after\nscope: global\nrules:\n${rules.join('')}`);
      const reload = reloadChanged(keeper, (error) => void errors.push(error), await fingerprint(path));
      keeper.close();
      const beganMs = performance.now();
      await reload;
      expect([keeper.reloads, errors, namesInForce()]).toEqual([{ done: 0, failed: 0 }, [], ['before']]);
      return performance.now() - beganMs;
    };
    expect(await fastestMs(1_500, stoppedAfterMs)).toBeLessThan(1_500);
  });

  test('a mistake that a reload has reported is not reported again for the same change', async () => {
    const path = policyFile();
    const { keeper, errors, namesInForce } = await keeperOf(path, {});
    writeFileSync(path, 'name: broken\n');
    const [first] = await Promise.all([
      keeper.reload('gateway'),
      reloadChanged(keeper, (error) => void errors.push(error), await fingerprint(path)),
    ]);
    expect(faultOf(first)).toMatchObject({ kind: 'policy_invalid' });
    expect([keeper.reloads, errors, namesInForce()]).toEqual([{ done: 0, failed: 1 }, [], ['before']]);
  });

  /** A file of which the system says that its disk fails. */
  const FAILING = '/proc/self/mem';

  test.skipIf(!existsSync(FAILING))(
    'policies that were unreadable for a moment apply afterwards without a change',
    async () => {
      const path = policyFile();
      const { keeper, errors, namesInForce } = await keeperOf(path, { retryMs: 100 });
      rmSync(path);
      symlinkSync(FAILING, path);
      const refused = { kind: 'policy_invalid', problems: [`${path}: cannot be read: EIO: i/o error, read`] };
      expect(faultOf(await keeper.reload('account:root'))).toEqual(refused);
      expect(faultOf(await keeper.reload('account:root'))).toEqual(refused);
      rmSync(path);
      writeFileSync(path, named('after'));
      await eventually(() => expect(namesInForce()).toEqual(['after']));
      expect(errors).toEqual([]);
    },
  );

  test('a mistake in a policy file is not read again until the file changes', async () => {
    const path = policyFile();
    const { keeper, namesInForce } = await keeperOf(path, { retryMs: 50 });
    writeFileSync(path, 'name: after\nscope: nowhere\n');
    expect(faultOf(await keeper.reload('account:root'))).toMatchObject({ kind: 'policy_invalid' });
    await new Promise((resolve) => {
      setTimeout(resolve, 300);
    });
    expect({ reloads: keeper.reloads, namesInForce: namesInForce() }).toEqual({
      reloads: { done: 0, failed: 1 },
      namesInForce: ['before'],
    });
  });
});

import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { loadPolicies } from '../../../src/policy-files/policy-file.ts';
import { loadPoliciesInThread, readWhole } from '../../../src/threads/main/policy-reader.ts';

function fileOf(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-policy-reader-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, 'p.yaml');
  writeFileSync(path, text);
  return path;
}

const rules = (count: number): string =>
  Array.from(
    { length: count },
    (_, n) =>
      `  - { id: r${n}, actions: ["act.${n}"], resources: ["web_*"], when: 'attributes.size < ${n}', effect: allow, reason: "grün ${n}" }\n`,
  ).join('');

describe('policy reader', () => {
  test('policies read in another thread decide alike and have the same version', async () => {
    const path = fileOf(
      `name: one\nscope: global\nrules:\n${rules(20)}budget: { daily_limit_usd: 5 }\n---\nname: two\nscope: org:acme\nrules:\n  - { id: no, actions: ["act.7"], effect: deny }\n`,
    );
    const [aside, atOnce] = [await loadPoliciesInThread({ path }), await loadPolicies(path)];
    if (!aside.ok || !atOnce.ok) throw new Error('refused');
    expect(aside.value.policies.summary()).toEqual(atOnce.value.policies.summary());
    expect(aside.value.policies.budget).toEqual(atOnce.value.policies.budget);
    expect({ files: aside.value.files, warnings: aside.value.warnings }).toEqual({ files: [path], warnings: [] });
    const decide = (orgId: string, action: string, size: number) =>
      aside.value.policies.decide({
        agent: { orgId, teamId: 't', agentId: 'a' },
        action,
        resource: 'web_search',
        attributes: { size },
        caller: undefined,
        estimatedCostMicroUsd: 0,
      });
    expect(decide('globex', 'act.7', 6)).toEqual({
      kind: 'allow',
      reason: 'grün 7 (rule r7 of policy one)',
      policy: 'one',
      ruleId: 'r7',
    });
    expect(decide('globex', 'act.7', 7).kind).toBe('deny');
    expect(decide('acme', 'act.7', 6)).toMatchObject({ kind: 'deny', policy: 'two' });
  });

  test('a mistake is reported with its file, line and column', async () => {
    const path = fileOf(
      'name: broken\nscope: global\nrules:\n  - { id: r, effect: allow, when: "agnet.org_id == \'x\'" }\n',
    );
    expect(await loadPoliciesInThread({ path })).toMatchObject({
      ok: false,
      fault: [{ file: path, line: 4, path: 'rules[0].when', problem: expect.stringContaining('agnet') }],
    });
    expect(await loadPoliciesInThread({ path: `${path}.not` })).toMatchObject({
      ok: false,
      fault: [{ file: `${path}.not`, line: undefined, problem: 'does not exist' }],
    });
  });

  test('a set swapped during the read is read again, never half of each', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'policy-reader-'));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const names = Array.from({ length: 40 }, (_, index) => `p${index}.yaml`);
    for (const version of ['a', 'b']) {
      mkdirSync(join(folder, `..${version}`));
      for (const name of names)
        writeFileSync(join(folder, `..${version}`, name), `name: ${version}-${name}\nscope: global\nrules: []\n`);
    }
    const swapTo = (version: string) => {
      symlinkSync(`..${version}`, join(folder, '..data_tmp'));
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    };
    swapTo('a');
    for (const name of names) symlinkSync(join('..data', name), join(folder, name));
    for (let round = 0; round < 40; round += 1) {
      // From one turn of the event loop to the next, so that it falls into every part of the reading.
      let turns = 0;
      let ended = false;
      const swapIn = (): void => {
        if (turns === 15 * round) swapTo(round % 2 === 0 ? 'b' : 'a');
        else if (!ended) setImmediate(swapIn);
        turns += 1;
      };
      setImmediate(swapIn);
      const { read } = await readWhole(folder);
      ended = true;
      const versions = read.ok ? read.value.documents.map(({ raw }) => (raw as { name: string }).name.slice(0, 1)) : [];
      expect({ files: versions.length, versions: new Set(versions).size }).toEqual({ files: 40, versions: 1 });
    }
  });
});

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import type { CommandOf } from '../../src/core/commands.ts';
import { decodeToMain, encodeToMain } from '../../src/threads/codec.ts';
import { CRAWLER, checkOf, openGovernor } from '../support/governor.ts';

/** A block of the registry, so that all the memory it sets aside is used. */
const OPS = 65_536;
const BATCH = 64;
/** As a rule has it: one for all its checks. */
const ALLOW = { kind: 'allow', reason: 'allowed', policy: 'test', ruleId: 'yes', cause: undefined } as const;

describe('memory of operations', () => {
  test('each in flight takes less than 400 bytes, whatever came with its check', () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const held = (): number => {
      collect();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const governor = openGovernor({ maxOps: 2 * OPS, maxOrgOps: 2 * OPS, policies: { decide: () => ALLOW } });
    const before = held();
    for (let from = 0; from < OPS; from += BATCH) {
      const commands = Array.from({ length: BATCH }, (_, nth) => {
        const digits = String(from + nth).padStart(16, '0');
        return checkOf(CRAWLER, `4bf92f3577b34da6${digits}:00f067aa0ba902b7`, {
          resource: `/workspace/reports/today/${digits.slice(1)}`,
          attributes: { note: `${digits} ${'a word or two '.repeat(8)}` },
        });
      });
      const messages = commands.map((command, id) => ({ type: 'command' as const, id, command }));
      for (const message of decodeToMain(encodeToMain(messages)))
        if (message.type === 'command') governor.apply<'check'>(message.command as CommandOf<'check'>, 1_000);
    }
    expect(governor.ops.counts.running).toBe(OPS);
    expect((held() - before) / OPS).toBeLessThan(400);
  });
});

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/app/package-files.ts';
import { YOUNG_GENERATION_FLAG } from '../../src/cli/young-generation.ts';
import { usableCores } from '../../src/system/machine.ts';
import { startTestGateway } from '../support/gateway.ts';

describe('the size of the young generation', () => {
  test('npm start gives the flag', () => {
    const { scripts } = JSON.parse(readFileSync(`${PACKAGE_ROOT}/package.json`, 'utf8')) as {
      scripts: { start: string };
    };
    expect(scripts.start.split(' ')).toContain(YOUNG_GENERATION_FLAG);
  });

  test.skipIf(!('execve' in process) || process.platform !== 'linux')(
    'svc serve sets it where Node.js can, unless it is given',
    async () => {
      const flagsWith = async (env: Readonly<Record<string, string>>): Promise<readonly string[]> => {
        const gateway = await startTestGateway({ env });
        const [, ...args] = readFileSync(`/proc/${gateway.process.pid}/cmdline`, 'utf8').split('\0');
        await gateway.stop();
        return args.slice(
          0,
          args.findIndex((arg) => arg.endsWith('main.js')),
        );
      };
      expect(await flagsWith({})).toEqual(['--max-semi-space-size=64']);
      expect(await flagsWith({ NODE_OPTIONS: '--max-semi-space-size=32' })).toEqual([]);
    },
  );

  test.skipIf(usableCores() > 2)('on few cores, no other thread helps to collect it', async () => {
    const gateway = await startTestGateway({ flags: ['--trace-gc', '--trace-gc-nvp'] });
    const helped = (): readonly string[] =>
      [...gateway.output.stdout.matchAll(/ background\.scavenge\.parallel=([\d.]+)/g)].map(([, ms = '']) => ms);
    const before = helped().length; // also of the time before the command was known
    while (helped().length < before + 4)
      await Promise.all(Array.from({ length: 50 }, () => gateway.call('GET', '/api/v1/policies')));
    await gateway.stop();
    expect(new Set(helped().slice(before))).toEqual(new Set(['0.00']));
  });
});

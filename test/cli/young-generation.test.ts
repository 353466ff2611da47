import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { YOUNG_GENERATION_FLAG } from '../../src/cli/young-generation.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
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
});

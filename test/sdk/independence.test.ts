import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/app/package-files.ts';

const FOLDER = join(PACKAGE_ROOT, 'sdk', 'typescript', 'src');

describe('independence', () => {
  test('the SDK imports its own files, Node.js and two libraries, each in one file', () => {
    const imported = readdirSync(FOLDER).flatMap((file) =>
      [...readFileSync(join(FOLDER, file), 'utf8').matchAll(/^(?:import|export)\s[^;]*?\sfrom '([^']+)'/gm)].map(
        ([, target = '']) => ({ file, target }),
      ),
    );
    expect(imported.length).toBeGreaterThan(20);
    const foreign = imported.filter(({ target }) => !/^\.\/[a-z-]+\.ts$/.test(target) && !target.startsWith('node:'));
    expect(foreign.map(({ file, target }) => `${file}: ${target}`).sort()).toEqual([
      'schema.ts: protobufjs/light.js',
      'transport.ts: @grpc/grpc-js',
    ]);
  });

  test('the entry exports the documented names and no more', async () => {
    expect(Object.keys(await import('../../sdk/typescript/src/index.ts')).sort()).toEqual([
      'ActionDeniedError',
      'ClientClosedError',
      'GatewayError',
      'OpTerminatedError',
      'UnconfirmedWarning',
      'createAgentClient',
    ]);
  });
});

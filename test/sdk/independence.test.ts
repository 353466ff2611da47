import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';

const FOLDER = join(PACKAGE_ROOT, 'sdk', 'typescript', 'src');
/** All but that of gRPC. */
const ENTRIES = ['fetch', 'testing', 'ai', 'openai-agents', 'langchain', 'claude-agent', 'mcp', 'mastra', 'google-adk'];

describe('independence', () => {
  test('the SDK imports its own files and two libraries, each in one file', () => {
    const imported = readdirSync(FOLDER).flatMap((file) =>
      [...readFileSync(join(FOLDER, file), 'utf8').matchAll(/^(?:import|export)\s[^;]*?\sfrom '([^']+)'/gm)].map(
        ([, target = '']) => ({ file, target }),
      ),
    );
    expect(imported.length).toBeGreaterThan(20);
    const foreign = imported.filter(({ target }) => !/^\.\/[a-z-]+\.(ts|js)$/.test(target));
    expect(foreign.map(({ file, target }) => `${file}: ${target}`).sort()).toEqual([
      'binary.ts: protobufjs/light.js',
      'grpc-transport.ts: @grpc/grpc-js',
    ]);
  });

  /** All that the built file requires, and what that requires. */
  function requiredBy(file: string, seen = new Set<string>()): ReadonlySet<string> {
    const text = readFileSync(join(FOLDER, '..', 'dist', 'cjs', file), 'utf8');
    for (const [, target = ''] of text.matchAll(/\brequire\(["'`]([^"'`]+)["'`]\)/g)) {
      if (seen.has(target)) continue;
      seen.add(target);
      if (target.startsWith('./')) requiredBy(target.slice('./'.length), seen);
    }
    return seen;
  }

  test.each(ENTRIES)('the entry %s needs no module of Node.js and no library', (entry) => {
    const required = [...requiredBy(`${entry}.js`)];
    expect(required.length).toBeGreaterThan(1);
    expect(required.filter((target) => !target.startsWith('./'))).toEqual([]);
  });

  test('the entry exports the documented names and no more', async () => {
    expect(Object.keys(await import('../../sdk/typescript/src/index.ts')).sort()).toEqual([
      'ActionDeniedError',
      'ApprovalPendingError',
      'ClientClosedError',
      'GatewayError',
      'OpTerminatedError',
      'UnconfirmedWarning',
      'createAgentClient',
    ]);
  });
});

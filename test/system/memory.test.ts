/** Default limits on the memory that others can fill. */
import { spawnSync } from 'node:child_process';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { maxHalfSentBytes } from '../../src/app/start-threads.ts';
import { usableMemoryMib } from '../../src/system/machine.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { eventually } from '../support/eventually.ts';
import { startTestGateway } from '../support/gateway.ts';

const MIB = 1024 * 1024;

describe('memory', () => {
  test.for([
    ['no container', undefined, 8_192],
    ['no container, as other releases of Node.js say it', 0, 8_192],
    ['no limit, as the kernel says it in version 1 of its control groups', 2 ** 63, 8_192],
    ['a limit of 256 MiB', 256 * MIB, 256],
    ['a limit beyond what the machine has', 65_536 * MIB, 8_192],
  ] as const)("a container's memory limit counts as its memory: %s, on a machine with 8 GiB", ([, limit, mib]) => {
    expect(usableMemoryMib(8_192 * MIB, limit)).toBe(mib);
  });

  test.for([
    [1, 192, 24],
    [1, 256, 32],
    [1, 1_024, 128],
    [1, 65_536, 128],
    [4, 1_024, 32],
    [64, 256, 8],
  ])(
    'limits half-sent requests with %i I/O threads on %i MiB to %i MiB each',
    ([threads = 0, memoryMib = 0, mib = 0]) => {
      expect(maxHalfSentBytes(threads, memoryMib)).toBe(mib * MIB);
    },
  );

  /** Has a process believe that it runs in a container of that size. */
  const inContainerOf = (mib: number): string =>
    `data:text/javascript,${encodeURIComponent(`process.constrainedMemory = () => ${mib * MIB};`)}`;

  test.for([
    [256, { SVC_MAX_OPS: '256000', SVC_MAX_ORG_OPS: '128000', SVC_MAX_AGENTS: '76800', SVC_MAX_ORG_AGENTS: '38400' }],
    [
      65_536,
      { SVC_MAX_OPS: '4000000', SVC_MAX_ORG_OPS: '2000000', SVC_MAX_AGENTS: '1000000', SVC_MAX_ORG_AGENTS: '500000' },
    ],
  ] as const)('a machine with %i MiB holds as many operations and agents as fit', ([mib, bounds]) => {
    const print = `const { VARIABLES } = await import(${JSON.stringify(join(PACKAGE_ROOT, 'dist', 'src', 'config', 'config.js'))});
    console.log(JSON.stringify(Object.fromEntries(${JSON.stringify(Object.keys(bounds))}.map((name) => [name, VARIABLES[name].fallback]))));`;
    const withMemory = `import os from 'node:os'; import { syncBuiltinESMExports } from 'node:module'; os.totalmem = () => ${mib * MIB}; syncBuiltinESMExports();`;
    const { stdout } = spawnSync(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(withMemory)}`, '--input-type=module', '-e', print],
      { encoding: 'utf8' },
    );
    expect(JSON.parse(stdout)).toEqual(bounds);
  });

  test('cuts stalled bodies off beyond an eighth of the memory, with 256 MiB', async () => {
    const gateway = await startTestGateway({
      env: { NODE_OPTIONS: `--import=${inContainerOf(256)}`, SVC_IO_THREADS: '1' },
    });
    onTestFinished(async () => {
      await gateway.stop('SIGKILL');
    });
    const { hostname, port } = new URL(gateway.url);
    // However it arrives, and however its room has grown, it takes 1 MiB in the end.
    const unfinished = Buffer.alloc(MIB - 1, ' ');
    let cut = 0;
    for (let sent = 0; sent < 60; sent += 1) {
      const client = connect(Number(port), hostname)
        .on('error', () => {})
        .on('close', () => {
          cut += 1;
        });
      onTestFinished(() => void client.destroy());
      client.write(
        `POST /api/v1/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${MIB}\r\n\r\n`,
      );
      client.write(unfinished);
    }
    // 32 of the 60 have room.
    await eventually(() => expect(cut).toBe(28));
    expect((await gateway.call('GET', '/healthz')).status).toBe(200);
    expect(cut).toBe(28);
  });
});

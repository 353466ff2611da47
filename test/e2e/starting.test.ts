/** Signals and addresses of a gateway that is not ready yet. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startErrorOf } from '../../src/stores/embedded/start.ts';
import { orStartError, StartError } from '../../src/system/start-error.ts';
import { SVC } from '../support/cli.ts';
import { freePort } from '../support/free-port.ts';
import { startTestGateway } from '../support/gateway.ts';
import { grpcClient } from '../support/grpc-client.ts';

function dataFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-starting-'));
  chmodSync(folder, 0o711); // where root's PostgreSQL runs as another account, that must reach it
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Settings if the command is started itself: on free ports, as a gateway may run on the default ones. */
const ON_FREE_PORTS = { PATH: process.env.PATH ?? '', SVC_HTTP_ADDR: '127.0.0.1:0', SVC_GRPC_ADDR: '127.0.0.1:0' };

/** Command lines of this machine that name the folder. */
const processesOf = (folder: string): readonly string[] =>
  readdirSync('/proc').flatMap((pid) => {
    try {
      const line = readFileSync(join('/proc', pid, 'cmdline'), 'utf8').replaceAll('\0', ' ');
      return line.includes(folder) ? [line] : [];
    } catch {
      return []; // no process, or one that has ended
    }
  });

describe('starting', () => {
  test.runIf(process.platform === 'linux').each(['unfinished', 'cluster/postmaster.pid'])(
    'SIGTERM while the embedded database starts (%s is there) ends both in order',
    async (file) => {
      const folder = dataFolder();
      const starting = startTestGateway({
        dataDir: folder,
        env: {
          SVC_DATABASE_URL: 'embedded',
          NODE_OPTIONS: `--import=${new URL('../support/signal-when.mjs', import.meta.url).href}`,
          SIGNAL_WHEN: join(folder, 'data/postgres', file),
        },
      });
      await expect(starting).rejects.toThrow(/the gateway ended with 0:[^]*stopped by SIGTERM/);
      expect(processesOf(folder)).toEqual([]);
      expect(existsSync(join(folder, 'data/lock'))).toBe(false);
    },
  );

  test('a gateway waiting for its database ignores SIGHUP and ends on SIGINT in order', async () => {
    const database = createServer(); // takes connections and says nothing
    await new Promise<void>((resolve) => database.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void database.close());
    const asked = new Promise((resolve) => database.once('connection', resolve));
    const folder = dataFolder();
    const starting = startTestGateway({
      dataDir: folder,
      env: { SVC_DATABASE_URL: `postgres://127.0.0.1:${(database.address() as AddressInfo).port}/svc` },
      meanwhile: async (child) => {
        await asked;
        child.kill('SIGHUP');
        child.kill('SIGINT');
      },
    });
    await expect(starting).rejects.toThrow(/the gateway ended with 0:[^]*stopped by SIGINT/);
    expect(existsSync(join(folder, 'data/lock'))).toBe(false);
  });

  const hasIpv6 = Object.values(networkInterfaces())
    .flat()
    .some((each) => each?.address === '::1');

  test.runIf(hasIpv6).each([
    ['0.0.0.0', '[::1]'],
    ['[::1]', '0.0.0.0'],
    ['127.0.0.1', '[::1]'],
  ])('HTTP on %s and gRPC on %s may have the same port', async (http, grpc) => {
    const port = await freePort();
    const gateway = await startTestGateway({
      env: { SVC_HTTP_ADDR: `${http}:${port}`, SVC_GRPC_ADDR: `${grpc}:${port}`, SVC_IO_THREADS: '2' },
    });
    onTestFinished(async () => {
      await gateway.stop('SIGKILL');
    });
    expect((await fetch(`http://${http.replace('0.0.0.0', '127.0.0.1')}:${port}/healthz`)).status).toBe(200);
    const client = grpcClient(`${grpc.replace('0.0.0.0', '127.0.0.1')}:${port}`);
    onTestFinished(() => client.close());
    expect(await client.call('RegisterAgent', {})).toMatchObject({ code: 'UNAUTHENTICATED' });
  });

  test.each([
    ['127.0.0.1', 'localhost', 'cannot listen on localhost'],
    ...(hasIpv6 ? [['[::0]', '127.0.0.1', 'cannot listen on 127.0.0.1']] : []),
  ])('HTTP on %s and gRPC on %s are recognised as one address', async (http, grpc, problem) => {
    const port = await freePort();
    await expect(
      startTestGateway({ env: { SVC_HTTP_ADDR: `${http}:${port}`, SVC_GRPC_ADDR: `${grpc}:${port}` } }),
    ).rejects.toThrow(
      `svc-gateway cannot start: ${problem}:${port} (EADDRINUSE); stop the program that listens there, or choose another SVC_GRPC_ADDR`,
    );
  });

  test.each([
    [
      'a file in the place of the data directory',
      'data',
      'there is a file where a folder must be (EEXIST); move that file away',
    ],
    [
      'a file in the place of the store',
      'data/store',
      'there is a file where a folder must be (EEXIST); move that file away',
    ],
    [
      'a file in the place of the audit log',
      'data/audit',
      'there is a file where a folder must be (EEXIST); move that file away',
    ],
    [
      'a file in the place of the keys',
      'data/keys',
      'there is a file where a folder must be (EEXIST); move that file away',
    ],
  ])('%s is named with its path, its setting and what to do', async (_, place, words) => {
    const folder = dataFolder();
    if (place !== 'data') mkdirSync(join(folder, 'data'));
    writeFileSync(join(folder, place), '');
    await expect(startTestGateway({ dataDir: folder })).rejects.toThrow(
      `svc-gateway cannot start: cannot use ${join(folder, place)}: ${words}, or choose another SVC_DATA_DIR\n`,
    );
  });

  test('a data directory below a file is named', async () => {
    const folder = dataFolder();
    writeFileSync(join(folder, 'file'), '');
    await expect(
      startTestGateway({ dataDir: folder, env: { SVC_DATA_DIR: join(folder, 'file/data') } }),
    ).rejects.toThrow(
      `cannot use ${join(folder, 'file')}: there is a file where a folder must be (EEXIST); move that file away, or choose another SVC_DATA_DIR\n`,
    );
  });

  test('a data directory of a newer release is refused with advice and left alone', async () => {
    const folder = dataFolder();
    const dataDir = join(folder, 'data');
    mkdirSync(join(dataDir, 'audit'), { recursive: true });
    const [format, segment] = [join(dataDir, 'format'), join(dataDir, 'audit', '0000000000000001.ndjson')];
    writeFileSync(format, '3\n');
    writeFileSync(segment, 'entries of another shape\n');
    await expect(startTestGateway({ dataDir: folder })).rejects.toThrow(
      `svc-gateway cannot start: the data directory ${dataDir} has format 3, but this release supports only 2; start the release that wrote it, or restore the backup from before the upgrade\n`,
    );
    expect(readdirSync(dataDir).sort()).toEqual(['audit', 'format']);
    expect(readFileSync(segment, 'utf8')).toBe('entries of another shape\n');
  });

  /** A small file system, where this account may mount one. */
  function mounted(options: string): string | undefined {
    const folder = dataFolder();
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', folder], { stdio: 'pipe' });
    } catch {
      return undefined;
    }
    onTestFinished(() => void execFileSync('umount', ['-l', folder]));
    return folder;
  }

  test.for([
    ['a read-only file system', 'size=1m,ro', 'the file system is read-only (EROFS); mount it writable'],
    ['a full disk', 'size=4k', 'the disk is full (ENOSPC); free some space'],
    ['a disk that gets full while the store is made', 'size=12k', 'the disk is full (ENOSPC); free some space'],
    ['a disk that lacks a little of what the store takes', 'size=40k', 'the disk is full (ENOSPC); free some space'],
    ['a disk that gets full while the keys are written', 'size=44k', 'the disk is full (ENOSPC); free some space'],
    ['a disk without room for names', 'size=1m,nr_inodes=3', 'the disk is full (ENOSPC); free some space'],
  ] as const)('%s is named with a path, the setting and what to do', async ([, options, words], context) => {
    const folder = mounted(options);
    if (folder === undefined) return context.skip('mounting needs a privilege this machine does not give');
    await expect(startTestGateway({ dataDir: folder })).rejects.toThrow(
      new RegExp(
        `the gateway ended with 1:[^]*svc-gateway cannot start: cannot use (the data directory )?${folder}/data\\S*: ${words.replaceAll(/[()]/g, '\\$&')}, or choose another SVC_DATA_DIR\n`,
      ),
    );
  });

  test.runIf(process.getuid?.() === 0)('names files that belong to another user', async () => {
    const folder = dataFolder();
    const gateway = await startTestGateway({ dataDir: folder });
    await gateway.stop();
    execFileSync('chown', ['-R', '65534:65534', join(folder, 'data')]);
    execFileSync('chown', ['0:0', join(folder, 'data/audit/lock')]);
    const start = (dataDir: string) =>
      spawnSync(process.execPath, [SVC, 'serve'], {
        uid: 65534,
        gid: 65534,
        env: { ...ON_FREE_PORTS, SVC_DATA_DIR: dataDir },
        encoding: 'utf8',
        timeout: 60_000,
      });
    expect(start(join(folder, 'data'))).toMatchObject({
      status: 1,
      stderr: `svc-gateway cannot start: cannot use ${join(folder, 'data/audit/lock')}: the account that runs the gateway (user 65534) has no permission (EACCES); give it to that account, or choose another SVC_DATA_DIR\n`,
    });
    expect(start(join(folder, 'other'))).toMatchObject({
      status: 1,
      stderr: `svc-gateway cannot start: cannot use ${join(folder, 'other')}: the account that runs the gateway (user 65534) has no permission to create it (EACCES); create it and give it to that account, or choose another SVC_DATA_DIR\n`,
    });
  });

  test.runIf(process.getuid?.() === 0)(
    'a user without a name, as in containers, is told why no database is embedded',
    () => {
      const folder = dataFolder();
      execFileSync('chown', ['54321:0', folder]);
      const start = spawnSync(process.execPath, [SVC, 'serve'], {
        uid: 54_321,
        gid: 0,
        env: { ...ON_FREE_PORTS, SVC_DATABASE_URL: 'embedded', SVC_DATA_DIR: join(folder, 'data') },
        encoding: 'utf8',
        timeout: 60_000,
      });
      expect(start).toMatchObject({
        status: 1,
        stderr:
          'svc-gateway cannot start: PostgreSQL needs a user with a name, and user 54321 has none; run the gateway as a named user, or set SVC_DATABASE_URL to your own PostgreSQL\n',
      });
    },
  );

  test('a limit of threads is named with what to do', async () => {
    // As Node.js throws it.
    const error = Object.assign(new Error('EAGAIN'), { code: 'ERR_WORKER_INIT_FAILED' });
    const thrown = await orStartError(Promise.reject(error)).catch((reason: unknown) => startErrorOf(reason, './data'));
    expect(thrown).toEqual(
      new StartError('too many threads (EAGAIN); raise the limit (ulimit -u, TasksMax, pids limit of the container)'),
    );
  });

  test('a limit of open files is named with what to do', () => {
    // Enough to load the gateway, and too few for its threads.
    const start = spawnSync('sh', ['-c', 'ulimit -n 60; exec "$@"', 'sh', process.execPath, SVC, 'serve'], {
      env: { ...ON_FREE_PORTS, SVC_DATA_DIR: dataFolder(), SVC_IO_THREADS: '8' },
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect(start).toMatchObject({
      status: 1,
      stderr: 'svc-gateway cannot start: too many open files (EMFILE); raise the limit (ulimit -n, LimitNOFILE)\n',
    });
  });

  test.each([
    ['absolute', (folder: string) => join(folder, 'data')],
    ['relative', () => 'data'],
  ])('a deleted current folder is reported, the data directory being %s', (_, dataDirIn) => {
    const folder = dataFolder();
    const start = spawnSync(
      'sh',
      ['-c', 'mkdir "$0/old" && cd "$0/old" && rmdir "$0/old" && exec "$@"', folder, process.execPath, SVC, 'serve'],
      { env: { ...ON_FREE_PORTS, SVC_DATA_DIR: dataDirIn(folder) }, encoding: 'utf8', timeout: 60_000 },
    );
    expect(start).toMatchObject({
      status: 1,
      stderr: 'svc-gateway cannot start: the current folder has been deleted; start the gateway from another folder\n',
    });
  });

  test('the embedded database starts without a PATH', () => {
    const folder = dataFolder();
    const untilAudited = ['--import', new URL('../support/signal-when.mjs', import.meta.url).href];
    const env = {
      ...ON_FREE_PORTS,
      SVC_DATABASE_URL: 'embedded',
      SVC_DATA_DIR: join(folder, 'data'),
      SIGNAL_WHEN: join(folder, 'data/audit'),
    };
    const { status, stderr } = spawnSync(
      '/bin/sh',
      ['-c', 'unset PATH; exec "$@"', 'sh', process.execPath, ...untilAudited, SVC, 'serve'],
      { env, encoding: 'utf8', timeout: 60_000 },
    );
    expect(stderr).not.toContain('cannot use');
    expect(status).toBe(0);
  });

  /** Has a process believe that its Node.js is that one. */
  const underNode = (version: string): string =>
    `data:text/javascript,${encodeURIComponent(`Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } });`)}`;

  test.each(['18.20.8', '20.0.0', '20.18.3'])(
    'Node.js %s, which is too old, is refused with the required version',
    (version) => {
      const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', underNode(version), SVC, 'serve'], {
        env: { SVC_DATA_DIR: dataFolder() },
        encoding: 'utf8',
        timeout: 30_000,
      });
      expect({ status, stdout, stderr }).toEqual({
        status: 1,
        stdout: '',
        stderr: `error: svc requires Node.js 20.19 or later; this is ${version}\nInstall a newer Node.js.\n`,
      });
    },
  );

  test('an HTTP engine that does not exist is refused with the possible ones', () => {
    const { status, stderr } = spawnSync(process.execPath, [SVC, 'serve'], {
      env: { SVC_HTTP_ENGINE: 'uws' },
      encoding: 'utf8',
      timeout: 30_000,
    });
    expect({ status, stderr }).toEqual({
      status: 2,
      stderr: 'svc-gateway cannot start:\n  SVC_HTTP_ENGINE must be `auto`, `native` or `node`, not "uws"\n',
    });
  });

  /** Has every thread fail to load a native HTTP library, as on a system with an old C library. */
  const WITHOUT_NATIVE = `data:text/javascript,${encodeURIComponent(`
    const { dlopen } = process;
    process.dlopen = (module, file, ...rest) => {
      if (file.includes('uws_')) throw new Error("/lib/libc.so.6: version 'GLIBC_2.38' not found (required by " + file + ")");
      return dlopen(module, file, ...rest);
    };`)}`;
  /** The older library has no build for later releases of Node.js. */
  const OLDER =
    Number.parseInt(process.versions.node, 10) === 20 ? 'needs glibc 2.38' : /has no build for [^,;]*/.source;
  const WHY = `uWebSockets.js needs glibc 2.38, uWebSockets.js 20.30 ${OLDER}; use a system with a newer glibc, such as Debian 13 or Ubuntu 24.04, or Node.js 20`;

  test.each(['1', '0'])('without a native HTTP library the start says why (SVC_IO_THREADS=%s)', async (ioThreads) => {
    const gateway = await startTestGateway({
      env: { SVC_HTTP_ENGINE: 'auto', SVC_IO_THREADS: ioThreads, NODE_OPTIONS: `--import=${WITHOUT_NATIVE}` },
    });
    onTestFinished(async () => {
      await gateway.stop('SIGKILL');
    });
    expect(gateway.output.stdout).toMatch(
      new RegExp(`^  HTTP core  node:http, at a fraction of the native speed: ${WHY}$`, 'm'),
    );
  });

  test.each(['1', '0'])('a demanded native HTTP engine that lacks is an error (SVC_IO_THREADS=%s)', (ioThreads) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--import', WITHOUT_NATIVE, SVC, 'serve'], {
      env: { ...ON_FREE_PORTS, SVC_HTTP_ENGINE: 'native', SVC_IO_THREADS: ioThreads, SVC_DATA_DIR: dataFolder() },
      encoding: 'utf8',
      timeout: 60_000,
    });
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(
      new RegExp(
        `svc-gateway cannot start: SVC_HTTP_ENGINE is native, which does not load here: ${WHY}, or set SVC_HTTP_ENGINE to auto$`,
        'm',
      ),
    );
  });
});

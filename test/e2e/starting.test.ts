/** What happens to a gateway that is not ready yet: signals, and addresses. */
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startTestGateway } from '../support/gateway.ts';
import { grpcClient } from '../support/grpc-client.ts';

function dataFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-starting-'));
  chmodSync(folder, 0o711); // where root's PostgreSQL runs as another account, that must reach it
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Command lines of this machine that name the folder. */
const processesOf = (folder: string): readonly string[] => readdirSync('/proc').flatMap((pid) => {
  try {
    const line = readFileSync(join('/proc', pid, 'cmdline'), 'utf8').replaceAll('\0', ' ');
    return line.includes(folder) ? [line] : [];
  } catch {
    return []; // no process, or one that has ended
  }
});

test.runIf(process.platform === 'linux').each(['unfinished', 'cluster/postmaster.pid'])('SIGTERM while the embedded database starts (%s is there) ends both in order', async (file) => {
  const folder = dataFolder();
  const starting = startTestGateway({
    dataDir: folder,
    env: { SVC_DATABASE_URL: 'embedded' },
    meanwhile: (child) => eventually(() => expect(existsSync(join(folder, 'data/postgres', file))).toBe(true)).then(() => child.kill('SIGTERM')),
  });
  await expect(starting).rejects.toThrow(/the gateway ended with 0:[^]*SIGTERM came first/);
  expect(processesOf(folder)).toEqual([]);
  expect(existsSync(join(folder, 'data/lock'))).toBe(false);
}, 60_000);

test('SIGHUP leaves a gateway that waits for its database to its start, and SIGINT ends it at once and in order', async () => {
  const database = createServer(); // takes connections and says nothing
  await new Promise<void>((resolve) => database.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void database.close());
  const asked = new Promise((resolve) => database.once('connection', resolve));
  const folder = dataFolder();
  let endedMs = 0;
  const starting = startTestGateway({
    dataDir: folder,
    env: { SVC_DATABASE_URL: `postgres://127.0.0.1:${(database.address() as AddressInfo).port}/svc` },
    meanwhile: async (child) => {
      await asked;
      child.kill('SIGHUP');
      child.kill('SIGINT');
      const askedMs = performance.now();
      child.once('exit', () => { endedMs = performance.now() - askedMs; });
    },
  });
  await expect(starting).rejects.toThrow(/the gateway ended with 0:[^]*SIGINT came first/);
  expect(endedMs).toBeLessThan(10_000);
  expect(existsSync(join(folder, 'data/lock'))).toBe(false);
}, 60_000);

const hasIpv6 = Object.values(networkInterfaces()).flat().some((each) => each?.address === '::1');

test.runIf(hasIpv6).each([['0.0.0.0', '[::1]'], ['[::1]', '0.0.0.0'], ['127.0.0.1', '[::1]']])('HTTP on %s and gRPC on %s may have the same port', async (http, grpc) => {
  const port = await freePort();
  const gateway = await startTestGateway({ env: { SVC_HTTP_ADDR: `${http}:${port}`, SVC_GRPC_ADDR: `${grpc}:${port}`, SVC_IO_THREADS: '2' } });
  onTestFinished(async () => { await gateway.stop('SIGKILL'); });
  expect((await fetch(`http://${http.replace('0.0.0.0', '127.0.0.1')}:${port}/healthz`)).status).toBe(200);
  const client = grpcClient(`${grpc.replace('0.0.0.0', '127.0.0.1')}:${port}`);
  onTestFinished(() => client.close());
  expect(await client.call('RegisterAgent', {})).toMatchObject({ code: 'UNAUTHENTICATED' });
});

test.each([['127.0.0.1', 'localhost', 'cannot listen on localhost'], ...(hasIpv6 ? [['[::0]', '127.0.0.1', 'cannot listen on 127.0.0.1']] : [])])('HTTP on %s and gRPC on %s are found to be one address', async (http, grpc, problem) => {
  const port = await freePort();
  await expect(startTestGateway({ env: { SVC_HTTP_ADDR: `${http}:${port}`, SVC_GRPC_ADDR: `${grpc}:${port}` } }))
    .rejects.toThrow(`svc-gateway does not start: ${problem}:${port} (EADDRINUSE); stop what listens there, or choose another SVC_GRPC_ADDR`);
});

/**
 * A real gateway for a test: the built command in a process of its own, on free ports, with a data folder of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { endIfOrphaned } from './orphans.ts';

export const ADMIN_KEY = 'test-admin-key-0123456789-0123456789-0123456789';

/** A gateway to ask, wherever it runs. */
export type ServingGateway = {
  readonly url: string;
  /** `host:port` of gRPC. */
  readonly grpc: string;
  readonly dataDir: string;
  /** Calls the HTTP API with the admin key, or as `bearer` says; null sends no credential. */
  call(
    method: string,
    path: string,
    body?: unknown,
    bearer?: string | null,
  ): Promise<{ status: number; headers: Headers; body: any }>;
};

export type TestGateway = ServingGateway & {
  readonly process: ChildProcess;
  /** Everything it has written so far, and goes on to write. */
  readonly output: { stdout: string; stderr: string };
  /** Ends it with a signal and answers its exit status, or the signal it died of. */
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>;
};

export type GatewayOptions = {
  readonly env?: Readonly<Record<string, string>>;
  /** A data folder to start on; it is then not deleted. */
  readonly dataDir?: string;
  readonly startTimeoutMs?: number;
  /** An open file that its standard error goes to, which `output` then has nothing of. */
  readonly stderr?: number;
  /** Acts on the process while it starts. */
  readonly meanwhile?: (child: ChildProcess) => unknown;
};

/**
 * The gateway has closed a connection on which nothing came for long, without reading the request that was on its way:
 * a client that is held up itself comes to send one so late.
 */
const wasIdle = (error: unknown): boolean => {
  const { cause } = error as { cause?: { code?: string; socket?: { bytesRead: number } } };
  return cause?.code === 'UND_ERR_SOCKET' && (cause.socket?.bytesRead ?? 0) > 0;
};

/** Settings unless a test says otherwise: nothing is limited, and every port is free. */
export const settingsOf = (
  folder: string,
  env: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> => ({
  SVC_HTTP_ADDR: '127.0.0.1:0',
  SVC_GRPC_ADDR: '127.0.0.1:0',
  SVC_DATA_DIR: join(folder, 'data'),
  SVC_BOOTSTRAP_API_KEY: ADMIN_KEY,
  SVC_RATE_LIMIT_API: '0',
  SVC_RATE_LIMIT_AUTH: '0',
  ...env,
});

const COMMAND = join(PACKAGE_ROOT, 'dist', 'src', 'cli', 'main.js');

async function newFolder(hasDatabase: boolean): Promise<string> {
  if (!hasDatabase) return mkdtempSync(join(tmpdir(), 'svc-test-'));
  // Loaded where it is needed: most tests have no database.
  const { folderForDatabase, layDatabase } = await import('./postgres.ts');
  const folder = folderForDatabase();
  await layDatabase(join(folder, 'data'));
  return folder;
}

/** Resolves when it is ready. Rejects, with what it said, when it ends before that. */
export async function startTestGateway({
  env = {},
  dataDir,
  startTimeoutMs = 60_000,
  stderr,
  meanwhile,
}: GatewayOptions = {}): Promise<TestGateway> {
  const folder = dataDir ?? (await newFolder(env.SVC_DATABASE_URL === 'embedded'));
  const child = spawn(process.execPath, [COMMAND, 'serve'], {
    env: { PATH: process.env.PATH ?? '', ...settingsOf(folder, env) },
    stdio: ['ignore', 'pipe', stderr ?? 'pipe'],
  });
  endIfOrphaned(child);
  const output = { stdout: '', stderr: '' };
  child.stdout!.on('data', (chunk: Buffer) => {
    output.stdout += chunk.toString();
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    output.stderr += chunk.toString();
  });
  // Not at `exit`: what it said last may still be in the pipe then.
  const ended = new Promise<number | NodeJS.Signals>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? signal ?? 0)),
  );
  void meanwhile?.(child);
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`the gateway was not ready in time:\n${output.stdout}\n${output.stderr}`));
    }, startTimeoutMs);
    void ended.then((status) => {
      clearTimeout(timer);
      reject(new Error(`the gateway ended with ${status}:\n${output.stdout}\n${output.stderr}`));
    });
    child.stdout!.on('data', () => {
      if (!/^ {2}HTTP core .*\n/m.test(output.stdout)) return;
      clearTimeout(timer);
      resolve();
    });
  }).catch((error: unknown) => {
    if (dataDir === undefined) rmSync(folder, { recursive: true, force: true });
    throw error;
  });
  const url = /HTTP\s+(https?:\S+)/.exec(output.stdout)?.[1] ?? '';
  const grpc = /gRPC\s+(\S+)/.exec(output.stdout)?.[1] ?? '';
  return {
    url,
    grpc,
    dataDir: join(folder, 'data'),
    process: child,
    output,
    stop: async (signal = 'SIGTERM') => {
      child.kill(signal);
      const status = await ended;
      if (dataDir === undefined) rmSync(folder, { recursive: true, force: true });
      return status;
    },
    call: apiOf(url),
  };
}

export const apiOf =
  (url: string): ServingGateway['call'] =>
  async (method, path, body, bearer = ADMIN_KEY) => {
    const asked = {
      method,
      headers: {
        ...(bearer === null ? {} : { authorization: `Bearer ${bearer}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
    const response = await fetch(url + path, asked).catch((error: unknown) => {
      if (wasIdle(error)) return fetch(url + path, asked);
      throw error;
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: /\bjson\b/.test(response.headers.get('content-type') ?? '') ? JSON.parse(text) : text,
    };
  };

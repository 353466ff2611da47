/** The measured server: the gateway itself, as its users start it, or a bare server to compare it with. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { YOUNG_GENERATION_FLAG } from '../../src/cli/young-generation.ts';
import { binaryCodec } from '../../src/doors/proto/binary.ts';
import { emptyCheck } from '../../src/doors/proto/messages.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { endingOf, scratchFolder } from './ending.ts';
import { environmentFrom } from './environment.ts';

export const ADMIN_KEY = 'bench-admin-key-0123456789-0123456789-0123456789';
export const AGENT = { orgId: 'acme', teamId: 'search', agentId: 'crawler-17' };
export const TOKEN = 'crawler-17-token-0123456789-0123456789-0123456789';

/** A check as an agent sends it, with ids of the usual length. */
export const CHECK_BODY = JSON.stringify({
  agent: AGENT,
  credentialToken: TOKEN,
  traceId: '4bf92f3577b34da6<id>',
  spanId: '00f067aa0ba902b7',
  action: 'tool.call',
  resource: 'web_search',
});

/** The same over gRPC: one operation, checked again and again. */
export const CHECK_CALL = binaryCodec('CheckActionRequest').encode({
  ...emptyCheck(),
  agent: AGENT,
  credentialToken: TOKEN,
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
  spanId: '00f067aa0ba902b7',
  action: 'tool.call',
  resource: 'web_search',
}) as Buffer;

export type Subject = { readonly url: string; readonly grpc: string; readonly pid: number; stop(): Promise<void> };

/** The gateway with the starter policy, audit on, one agent registered; another commit's where one was built aside. */
export async function startGateway(env: Readonly<Record<string, string>> = {}): Promise<Subject> {
  const folder = scratchFolder();
  const command = join(process.env.BENCH_GATEWAY ?? PACKAGE_ROOT, 'dist', 'src', 'cli', 'main.js');
  const child = spawn(process.execPath, [YOUNG_GENERATION_FLAG, command, 'serve'], {
    env: {
      ...environmentFrom(process.env),
      SVC_HTTP_ADDR: '127.0.0.1:0',
      SVC_GRPC_ADDR: '127.0.0.1:0',
      SVC_DATA_DIR: join(folder, 'data'),
      SVC_BOOTSTRAP_API_KEY: ADMIN_KEY,
      SVC_LOG_LEVEL: 'warn',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const stop = endingOf(child, folder);
  const output = await until(child, /HTTP core .*\n/);
  const url = /HTTP\s+(http:\S+)/.exec(output)?.[1] ?? '';
  const grpc = /gRPC\s+(\S+)/.exec(output)?.[1] ?? '';
  const registered = await fetch(`${url}/svc.governance.v1.AgentService/RegisterAgent`, {
    method: 'POST',
    headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ agent: AGENT, credentialToken: TOKEN }),
  });
  if (registered.status !== 200) throw new Error(await registered.text());
  return { url, grpc, pid: child.pid ?? 0, stop };
}

/** The values of SVC_HTTP_ENGINE that name a library; the native one is not there on every machine. */
export const HTTP_ENGINES = ['native', 'node'] as const;
export type HttpEngine = (typeof HTTP_ENGINES)[number];

/** A bare server of bench/lib, named by its file, that prints its port and the library that it is made of. */
export async function startBare(
  file: string,
  engine: HttpEngine = 'native',
): Promise<Subject & { readonly library: string }> {
  const child = spawn(process.execPath, [join(PACKAGE_ROOT, 'dist', 'bench', 'lib', file), engine], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const stop = endingOf(child);
  const [, port, library = ''] = /port (\d+) of (\S+)\n/.exec(await until(child, /port \d+ of \S+\n/)) ?? [];
  return { url: `http://127.0.0.1:${port}`, grpc: `127.0.0.1:${port}`, pid: child.pid ?? 0, library, stop };
}

function until(child: ChildProcess, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (pattern.test(output)) resolve(output);
    });
    child.once('exit', (code) => reject(new Error(`ended with ${code}:\n${output}`)));
  });
}

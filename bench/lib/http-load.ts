/** An HTTP client that is not the bottleneck: wrk where it is installed, else autocannon. */
import { spawn, spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import autocannon from 'autocannon';
import { expectAllowed } from './answers.ts';
import { endingOf, scratchFolder } from './ending.ts';

export type GetLoad = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
};

export type Load = GetLoad & {
  /** The JSON body; the `<id>` in it becomes a number of its own for each request. */
  readonly body: string;
  /** Must match each answer; by default that of a check over Connect, or of Cerbos. */
  readonly allowed?: RegExp;
};

export type LoadResult = {
  readonly perSecond: number;
  readonly p99Ms: number;
  readonly failed: number;
};

const isThere = (command: string): boolean => spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;

export const httpClient: 'wrk' | 'autocannon' = isThere('wrk') ? 'wrk' : 'autocannon';

export async function loadHttp(load: Load): Promise<LoadResult> {
  const result = await (httpClient === 'wrk' ? loadWithWrk(load) : loadWithAutocannon(load));
  await expectAllowed(load.url, load.headers, load.body.replace('<id>', String(Date.now())), load.allowed);
  return result;
}

/** The same GET over and over. */
export async function loadGet({ url, headers, connections, seconds }: GetLoad): Promise<LoadResult> {
  if (httpClient === 'autocannon') return resultOf(await autocannon({ url, headers, connections, duration: seconds }));
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`]);
  return readWrk(await run('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', ...given, url]));
}

async function loadWithWrk({ url, headers, body, connections, seconds }: Load): Promise<LoadResult> {
  const folder = scratchFolder();
  const script = join(folder, 'load.lua');
  // Made once, all but the number, which always has as many digits: what the client spends is not there for the server.
  writeFileSync(
    script,
    [
      'local n = 0',
      'local before, after',
      'init = function()',
      ...Object.entries(headers).map(
        ([name, value]) => `  wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
      ),
      `  local whole = wrk.format("POST", nil, nil, ${JSON.stringify(body.replace('<id>', '@'.repeat(18)))})`,
      `  local from, to = string.find(whole, ("@"):rep(18), 1, true)`,
      // The start time keeps the ids of one run apart from those of the last.
      `  before = string.sub(whole, 1, from - 1) .. "${String(Date.now() % 1_000_000_000).padStart(9, '0')}"`,
      '  after = string.sub(whole, to + 1)',
      'end',
      'request = function()',
      '  n = n + 1',
      '  return before .. string.format("%09d", n) .. after',
      'end',
    ].join('\n'),
  );
  try {
    return readWrk(await run('wrk', ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency', '-s', script, url]));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const readWrk = (output: string): LoadResult => ({
  perSecond: Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]),
  p99Ms: msOf(/99%\s+([\d.]+)(us|ms|s)/.exec(output)),
  failed:
    sumOf(/Non-2xx or 3xx responses: (\d+)/.exec(output)) +
    sumOf(/Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)/.exec(output)),
});

const sumOf = (match: RegExpExecArray | null): number =>
  (match?.slice(1) ?? []).reduce((sum, digits) => sum + Number(digits), 0);

const UNIT_MS = { us: 0.001, ms: 1, s: 1000 } as const;
const msOf = (match: RegExpExecArray | null): number =>
  Number(match?.[1]) * UNIT_MS[(match?.[2] ?? 'ms') as keyof typeof UNIT_MS];

async function loadWithAutocannon({ url, headers, body, connections, seconds }: Load): Promise<LoadResult> {
  let sent = 0;
  const base = Date.now() % 1_000_000_000;
  const result = await autocannon({
    url,
    method: 'POST',
    connections,
    duration: seconds,
    headers,
    setupClient: (client) => {
      const next = (): void => {
        sent += 1;
        client.setBody(body.replace('<id>', `${base}${sent}`));
      };
      next();
      client.on('response', next);
    },
  });
  return resultOf(result);
}

const resultOf = ({ requests, latency, non2xx, errors }: autocannon.Result): LoadResult => ({
  perSecond: requests.average,
  p99Ms: latency.p99,
  failed: non2xx + errors,
});

export function run(command: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    endingOf(child);
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
    child.once('error', reject);
    child.once('exit', (code) => (code === 0 ? resolve(output) : reject(new Error(`${command} ended with ${code}`))));
  });
}

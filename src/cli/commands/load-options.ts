/** The options of `svc load`. */
import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { gatewayIn } from '../../client/environment.ts';
import { messageOf } from '../../core/base/text.ts';
import type { Goals } from '../../load/verdict.ts';
import { usageError } from '../errors.ts';
import type { Invocation, Options } from '../invocation.ts';
import { LOAD_NAME } from './load-fleet.ts';

export type Protocol = 'connect' | 'grpc' | 'stream';

export type LoadPlan = {
  readonly rate: number;
  readonly seconds: number;
  readonly protocol: Protocol;
  readonly connections: number;
  readonly agents: number;
  readonly org: string;
  readonly action: string;
  readonly resource: string;
  readonly html: string | undefined;
  readonly goals: Goals;
};

/** A connection of HTTP/1.1 carries one check at a time, one of HTTP/2 many. */
const CONNECTIONS = { connect: 64, grpc: 4, stream: 4 } as const satisfies Record<Protocol, number>;
const MOST = { rate: 1_000_000, connections: 10_000, agents: 10_000, seconds: 86_400 } as const;
const UNIT_MS = { us: 0.001, ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

export function planOf(options: Options): LoadPlan {
  const protocol = (options.text('protocol') ?? 'connect') as Protocol;
  const p99 = options.text('p99');
  const html = options.text('html');
  if (html !== undefined) needWritable(html);
  return {
    rate: countOf(options, 'rate') ?? 1_000,
    seconds: secondsOf(options.text('duration') ?? '10s'),
    protocol,
    connections: countOf(options, 'connections') ?? CONNECTIONS[protocol],
    agents: countOf(options, 'agents') ?? 10,
    org: options.text('org') ?? LOAD_NAME,
    action: options.text('action') ?? 'tool.call',
    resource: options.text('resource') ?? 'web_search',
    html,
    goals: {
      p99Ms: p99 === undefined ? undefined : msOf('--p99', p99),
      errors: options.count('errors', '--errors', 0),
    },
  };
}

function countOf(options: Options, name: 'rate' | 'connections' | 'agents'): number | undefined {
  const count = options.count(name, `--${name}`, 1);
  if (count !== undefined && count > MOST[name])
    throw usageError(`--${name} must be at most ${MOST[name].toLocaleString('en')}`);
  return count;
}

function secondsOf(text: string): number {
  const seconds = msOf('--duration', text) / 1_000;
  if (seconds < 1 || seconds > MOST.seconds) throw usageError('--duration must be from 1s to 24h');
  return seconds;
}

function msOf(flag: string, text: string): number {
  const [, number, unit] = /^(\d{1,9}(?:\.\d{1,6})?)(us|ms|s|m|h)$/.exec(text) ?? [];
  if (unit === undefined) throw usageError(`${flag} must be a time such as 5ms, 60s or 10m`);
  return Number(number) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/** Found out before an hour of load, not after it. */
function needWritable(path: string): void {
  try {
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) throw new Error('it is a folder');
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw usageError(`--html cannot be written: ${messageOf(error)}`);
  }
}

/** The URL of the gRPC port: that of --grpc, SVC_GATEWAY_GRPC, or the host of the API with the usual port. */
export function grpcUrlOf({ options, env }: Invocation, apiUrl: string): string {
  const given = options.text('grpc') ?? env.SVC_GATEWAY_GRPC;
  if (given !== undefined && given !== '' && !/^[^\s/]+:\d{1,5}$/.test(given))
    throw usageError('--grpc must be host:port', 'It is the gRPC address of the gateway, such as 127.0.0.1:50051.');
  const { grpc } = gatewayIn({ SVC_GATEWAY_URL: apiUrl, SVC_GATEWAY_GRPC: given });
  return `${grpc.tls ? 'https' : 'http'}://${grpc.address}`;
}

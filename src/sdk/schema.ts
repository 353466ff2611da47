/** The messages of `proto/`, and how they become bytes. Only this file names the protobuf library. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';
import type { Struct } from './struct.ts';
import type { AgentId } from './types.ts';

const PACKAGE = 'svc.governance.v1';
const FILES = ['svc/governance/v1/policy_service.proto', 'svc/governance/v1/agent_service.proto'] as const;

type OfAgent = { readonly agent: AgentId; readonly credentialToken: string };

/** What is undefined is not sent, of this and of all other requests. */
export type CheckMessage = OfAgent & {
  readonly traceId: string;
  readonly spanId: string;
  readonly action: string;
  readonly resource: string | undefined;
  readonly attributes: Struct | undefined;
  readonly estimatedCostUsd: number | undefined;
  readonly caller: AgentId | undefined;
  readonly dryRun: boolean | undefined;
  readonly correlationId?: string;
};
/** Enums are numbers here; 64-bit numbers come as the library has them, for `numberOf`. */
export type CheckReply = {
  readonly decision: number;
  readonly reason: string;
  readonly policy: string;
  readonly ruleId: string;
  readonly opId: string;
  readonly opState: number;
  readonly auditId: WireNumber;
  readonly correlationId: string;
};
export type StreamCheckReply = CheckReply & {
  readonly error?: { readonly code: string; readonly message: string; readonly retryAfterSecs: number } | null;
};
export type SignalReply = { readonly opId: string; readonly signal: number; readonly sequence: WireNumber };

/** Every unary method that the SDK calls: what goes out, what comes back. */
export type Methods = {
  CheckAction: { readonly request: CheckMessage; readonly response: CheckReply };
  RegisterAgent: {
    readonly request: { readonly agent: AgentId; readonly parent: AgentId | undefined };
    readonly response: { readonly credentialToken: string; readonly rotated: boolean };
  };
  CompleteOp: {
    readonly request: OfAgent & { readonly opId: string; readonly costUsd: number | undefined };
    readonly response: { readonly opState: number };
  };
  RecordUsage: {
    readonly request: OfAgent & {
      readonly costUsd: number;
      readonly opId: string | undefined;
      readonly usageId: string;
    };
    readonly response: { readonly status: number; readonly tier: number; readonly period: number };
  };
  AckOpControl: {
    readonly request: OfAgent & { readonly opId: string; readonly sequence: number };
    readonly response: object;
  };
};
export type MethodName = keyof Methods;

export const DECISIONS = ['unspecified', 'allow', 'deny'] as const;
export const OP_STATES = ['unspecified', 'pending', 'running', 'paused', 'completing', 'terminated'] as const;
export const SIGNALS = ['unspecified', 'pause', 'resume', 'terminate'] as const;
export const BUDGET_STATUSES = ['unspecified', 'ok', 'limit_exceeded'] as const;
export const TIERS = ['unspecified', 'global', 'org', 'team', 'agent'] as const;
export const PERIODS = ['unspecified', 'monthly', 'daily'] as const;

/** A 64-bit number as the library has it. */
export type WireNumber = number | { readonly low: number; readonly high: number };

/** Sequences and audit ids stay far below 2^53. */
export const numberOf = (value: WireNumber): number =>
  typeof value === 'number' ? value : (value.low >>> 0) + (value.high >>> 0) * 2 ** 32;

export type Codec<Request, Response> = {
  /** `/svc.governance.v1.PolicyService/CheckAction`. */
  readonly path: string;
  readonly encode: (request: Request) => Buffer;
  readonly decode: (bytes: Buffer) => Response;
};

/**
 * The package is found by its proto folder, which lies beside src/ in a checkout and beside dist/ where it is
 * installed.
 */
function protoFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'proto', FILES[0]))) {
    const parent = dirname(folder);
    if (parent === folder)
      throw new Error(
        'the SDK cannot find the proto folder of svc-gateway; if you bundle your code, keep the package out of the bundle, in esbuild with --external:svc-gateway',
      );
    folder = parent;
  }
  return join(folder, 'proto');
}

function loadSchema(): protobuf.Root {
  const folder = protoFolder();
  const root = new protobuf.Root();
  // Google's own files come with the library.
  root.resolvePath = (_from, file) => (file.startsWith('google/') ? null : join(folder, file));
  root.loadSync([...FILES]);
  root.resolveAll();
  return root;
}

const root = loadSchema();

function codecOf<Request, Response>(service: 'PolicyService' | 'AgentService', name: string): Codec<Request, Response> {
  const method = root.lookupService(`${PACKAGE}.${service}`).methods[name];
  const requestType = method?.resolvedRequestType;
  const responseType = method?.resolvedResponseType;
  if (requestType == null || responseType == null)
    throw new Error(`the package is incomplete: its proto folder has no ${name}`);
  return {
    path: `/${PACKAGE}.${service}/${name}`,
    encode: (request) => requestType.encode(request as Record<string, unknown>).finish() as Buffer,
    decode: (bytes) => responseType.decode(bytes) as unknown as Response,
  };
}

export const METHODS: { readonly [N in MethodName]: Codec<Methods[N]['request'], Methods[N]['response']> } = {
  CheckAction: codecOf('PolicyService', 'CheckAction'),
  RegisterAgent: codecOf('AgentService', 'RegisterAgent'),
  CompleteOp: codecOf('AgentService', 'CompleteOp'),
  RecordUsage: codecOf('AgentService', 'RecordUsage'),
  AckOpControl: codecOf('AgentService', 'AckOpControl'),
};
export const STREAM_CHECK_ACTIONS: Codec<CheckMessage, StreamCheckReply> = codecOf(
  'PolicyService',
  'StreamCheckActions',
);
export const OP_CONTROL_STREAM: Codec<OfAgent, SignalReply> = codecOf('AgentService', 'OpControlStream');

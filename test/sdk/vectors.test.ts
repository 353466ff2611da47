/** The vectors that both SDKs run: sdk/vectors. Here over gRPC and over HTTP. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import {
  ActionDeniedError,
  type AgentClient,
  type AgentClientOptions,
  createAgentClient,
  GatewayError,
  type Op,
  OpTerminatedError,
} from '../../sdk/typescript/src/index.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { policyFile } from '../support/policies.ts';

type Fields = Readonly<Record<string, unknown>>;
type Step = Fields & {
  readonly expect?: Fields;
  readonly body?: readonly Step[];
  readonly meanwhile?: readonly Step[];
  readonly raises?: string;
  readonly logged?: string;
};
type Case = { readonly name: string; readonly options?: Fields; readonly steps: readonly Step[] };

const FOLDER = join(PACKAGE_ROOT, 'sdk', 'vectors');
const FILES = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.json'))
  .map((name) => ({
    name: name.replace('.json', ''),
    ...(JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as { policy: string; cases: readonly Case[] }),
  }));

/** `estimated_cost_usd` is `estimatedCostUsd`. The content of attributes stays as it is. */
const camel = (fields: Fields): Fields =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name.replace(/_(\w)/g, (_all, c: string) => c.toUpperCase()),
      value,
    ]),
  );

/** A gateway that stops and starts again where it was, with what it knew. */
class Gateway {
  #current: TestGateway | undefined;
  #starting: Promise<TestGateway> | undefined;
  readonly #home: { readonly dataDir: string; readonly env: Readonly<Record<string, string>> };

  constructor(dataDir: string, env: Readonly<Record<string, string>>) {
    this.#home = { dataDir, env };
  }

  async start(): Promise<TestGateway> {
    this.#starting = startTestGateway(this.#home);
    this.#current = await this.#starting;
    return this.#current;
  }

  /** Waits where it is just starting. */
  async now(): Promise<TestGateway> {
    await this.#starting;
    if (this.#current === undefined) throw new Error('the gateway is stopped');
    return this.#current;
  }

  async stop(): Promise<void> {
    await (await this.now()).stop('SIGKILL');
  }

  async call(method: string, path: string, body?: unknown, bearer?: string) {
    const { status, body: answer } = await (await this.now()).call(method, path, body, bearer);
    expect(status, `${method} ${path}: ${JSON.stringify(answer)}`).toBeLessThan(300);
    return answer;
  }
}

class Raised extends Error {}

/** Runs the steps of one case. */
class Actor {
  readonly #gateway: Gateway;
  readonly #client: AgentClient;
  readonly #agentId: string;
  readonly #approver: string;

  constructor(gateway: Gateway, client: AgentClient, agentId: string, approver: string) {
    this.#gateway = gateway;
    this.#client = client;
    this.#agentId = agentId;
    this.#approver = approver;
  }

  async do(steps: readonly Step[], op?: Op): Promise<void> {
    for (const step of steps) await this.#step(step, op);
  }

  async #step(step: Step, op: Op | undefined): Promise<void> {
    if (step.check !== undefined) return this.#called(step, this.#client.check(camel(step.check as Fields) as never));
    if (step.usage !== undefined)
      return this.#called(step, this.#client.recordUsage(camel(step.usage as Fields) as never));
    if (step.complete !== undefined) {
      const { opId, usage, ...spent } = camel(step.complete as Fields);
      const completion = usage === undefined ? spent : { ...spent, usage: camel(usage as Fields) as never };
      return this.#called(step, this.#client.complete(opId as string, completion));
    }
    if (step.run !== undefined) return this.#run(step);
    if (step.checkpoint !== undefined) return this.#checkpoint(step, op!);
    if (step.operator !== undefined) {
      const id = op?.opId ?? step.op;
      return this.#gateway.call('POST', `/api/v1/ops/${id}/${step.operator}`, { reason: 'a vector' });
    }
    if (step.asked !== undefined) return void (await this.#asked());
    if (step.decide !== undefined) {
      const id = await this.#asked();
      return this.#gateway.call('POST', `/api/v1/approvals/${id}/${step.decide}`, { reason: 'said' }, this.#approver);
    }
    if (step.gateway !== undefined) return this.#power(step.gateway as string);
    if (step.wait !== undefined) return sleep((step.wait as number) * 1000);
    throw new Error(String(step.fail ?? `no such step: ${JSON.stringify(step)}`));
  }

  async #called(step: Step, call: Promise<unknown>): Promise<void> {
    const wanted = step.expect ?? {};
    if (wanted.error !== undefined) {
      const error = await call.then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error).toBeInstanceOf(GatewayError);
      expect((error as GatewayError).code).toBe(wanted.error);
      if (wanted.fault !== undefined) expect((error as GatewayError).fault).toBe(wanted.fault);
      return;
    }
    expectAll(wanted, (await call) as Fields | undefined);
  }

  async #run(step: Step): Promise<void> {
    let opId = '';
    const meanwhile = this.do(step.meanwhile ?? []);
    const run = this.#client.run(camel(step.run as Fields) as never, async (op) => {
      opId = op.opId;
      await this.do(step.body ?? [], op);
      if (step.raises !== undefined) throw new Raised(step.raises);
    });
    const [ended] = await Promise.all([run.then(() => ({ ends: 'returned' }), endOf), meanwhile]);
    expectAll(step.expect ?? {}, ended);
    if (step.logged === undefined) return;
    await eventually(async () => {
      const { entries } = await this.#gateway.call('GET', `/api/v1/logs?op_id=${opId}`);
      const found = (entries as { event_type: string; payload: { outcome: string } }[]).find(
        ({ event_type }) => event_type === 'OpCompleted',
      );
      expect(found?.payload.outcome).toBe(step.logged);
    });
  }

  async #checkpoint(step: Step, op: Op): Promise<void> {
    if (step.checkpoint === 'raises') {
      // The signal may be on its way.
      await eventually(() => expect(op.signal.aborted).toBe(true));
      return op.checkpoint();
    }
    await eventually(() => expect(op.state).toBe('paused'));
    const beganMs = performance.now();
    await Promise.all([op.checkpoint(), this.do(step.meanwhile ?? [], op)]);
    expect(performance.now() - beganMs).toBeGreaterThan(400);
  }

  #asked(): Promise<string> {
    return eventually(async () => {
      const { approvals } = await this.#gateway.call('GET', '/api/v1/approvals?state=pending');
      const own = (approvals as { id: string; agent: { agent_id: string } }[]).find(
        ({ agent }) => agent.agent_id === this.#agentId,
      );
      if (own === undefined) throw new Error('nobody is asked');
      return own.id;
    });
  }

  async #power(what: string): Promise<void> {
    if (what !== 'start') await this.#gateway.stop();
    if (what === 'start') await this.#gateway.start();
    else if (what === 'restart') void sleep(300).then(() => this.#gateway.start());
  }
}

function endOf(error: unknown): Fields {
  if (error instanceof Raised) return { ends: 'raised' };
  if (error instanceof OpTerminatedError) return { ends: 'terminated' };
  if (error instanceof ActionDeniedError) return { ends: 'denied', cause: error.cause, unreachable: error.unreachable };
  throw error;
}

/** Values that differ each time must only be there. */
function expectAll(wanted: Fields, got: Fields | undefined): void {
  for (const [name, value] of Object.entries(camel(wanted))) {
    if (value === true && name !== 'unreachable') expect(got?.[name], name).toBeDefined();
    else expect(got?.[name], name).toEqual(value ?? undefined);
  }
}

const SECONDS: Readonly<Record<string, string>> = {
  outage_timeout: 'outageMs',
  check_timeout: 'checkMs',
  call_timeout: 'callMs',
  approval_timeout: 'approvalMs',
  close_timeout: 'closeMs',
};

function optionsOf(given: Fields): Partial<AgentClientOptions> {
  const { on_unreachable: onUnreachable, ...seconds } = given;
  const deadlines = Object.fromEntries(
    Object.entries(seconds).map(([name, value]) => [SECONDS[name], (value as number) * 1000]),
  );
  return {
    deadlines: { approvalMs: 60_000, signalMs: 100, ...deadlines },
    ...(onUnreachable !== undefined && { onUnreachable: onUnreachable as 'allow' }),
  } as Partial<AgentClientOptions>;
}

let agents = 0;

describe.each(FILES)('vectors: $name', ({ policy, cases }) => {
  let started: Promise<{ gateway: Gateway; approver: string }> | undefined;
  const dataDir = mkdtempSync(join(tmpdir(), 'svc-vectors-'));
  const begun = async () => {
    const gateway = new Gateway(dataDir, {
      SVC_HTTP_ADDR: `127.0.0.1:${await freePort()}`,
      SVC_GRPC_ADDR: `127.0.0.1:${await freePort()}`,
      SVC_POLICY_PATH: policyFile(policy, afterAll).path,
    });
    await gateway.start();
    const { key } = await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'people', scopes: ['admin'] });
    return { gateway, approver: key as string };
  };
  afterAll(async () => {
    await (await started)?.gateway.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  test.each(cases.flatMap((each) => (['gRPC', 'HTTP'] as const).map((way) => ({ ...each, way }))))(
    '$name, over $way',
    async ({ steps, options = {}, way }) => {
      started ??= begun();
      const { gateway, approver } = await started;
      const { grpc, url } = await gateway.now();
      agents += 1;
      const agentId = `vector-${agents}`;
      const client = createAgentClient({
        ...(way === 'gRPC' ? { address: grpc } : { url }),
        // Ids of operations are those of their organization.
        agent: `by-${way}/vectors/${agentId}`,
        apiKey: ADMIN_KEY,
        onWarning: () => {},
        ...optionsOf(options),
      } as AgentClientOptions);
      onTestFinished(() => client.close());
      await client.ready();
      await new Actor(gateway, client, agentId, approver).do(steps);
    },
  );
});

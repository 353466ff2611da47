import { type AddressInfo, connect as connectTcp } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { METHODS } from '../../sdk/typescript/src/binary.ts';
import { type AgentClient, type AgentClientOptions, createAgentClient } from '../../sdk/typescript/src/index.ts';
import type { CheckMessage } from '../../sdk/typescript/src/schema.ts';
import { selfSigned } from '../support/certificate.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

const SEARCH = { action: 'tool.call', resource: 'web_search' };
/** A machine that is busy with other things is no outage. */
const PATIENT = { checkMs: 100_000, callMs: 100_000, outageMs: 100_000 };

const cleanUp: (() => unknown)[] = [];
describe('limits', () => {
  afterEach(async () => {
    for (const undo of cleanUp.splice(0).reverse()) await undo();
  });

  /** For the tests that need no limits of their own. */
  let gateway: GatewayHere;
  beforeAll(async () => {
    gateway = await startGatewayHere();
  });
  afterAll(async () => {
    await gateway?.stop();
  });

  async function start(env: Readonly<Record<string, string>>): Promise<GatewayHere> {
    const own = await startGatewayHere({ env });
    cleanUp.push(() => own.stop());
    return own;
  }

  function connect(address: string, options: Partial<AgentClientOptions> = {}): AgentClient {
    const client = createAgentClient({
      address,
      agent: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
      onWarning: () => {},
      apiKey: ADMIN_KEY,
      ...options,
      deadlines: { ...PATIENT, ...options.deadlines },
    } as AgentClientOptions);
    cleanUp.push(() => client.close());
    return client;
  }

  test('checks refused by an overloaded gateway are retried until accepted', async () => {
    const gateway = await start({ SVC_MAX_PENDING: '20', SVC_IO_THREADS: '1' });
    const agent = connect(gateway.grpc);
    await agent.ready();
    const answers = await Promise.all(Array.from({ length: 100 }, () => agent.check(SEARCH)));
    expect(answers.filter(({ decision }) => decision === 'allow')).toHaveLength(100);
  });

  test("an overloaded gateway's refusal stands, whatever the setting for outages", async () => {
    const gateway = await start({ SVC_MAX_OPS: '1' });
    const agent = connect(gateway.grpc, { onUnreachable: 'allow', deadlines: { checkMs: 4_000 } });
    await agent.run(SEARCH, async () => {
      expect(await agent.check(SEARCH)).toMatchObject({
        decision: 'deny',
        unreachable: false,
        reason: 'the operation registry is at its limit; try again in 10 seconds',
      });
    });
  });

  test('checks beyond the concurrency limit wait their turn', async () => {
    const agent = connect(gateway.grpc, { maxInFlight: 2 });
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) => agent.check({ ...SEARCH, traceId: 'turn', spanId: String(index) })),
    );
    expect(answers.map(({ opId, decision }) => `${opId} ${decision}`)).toEqual(
      Array.from({ length: 200 }, (_, index) => `turn:${index} allow`),
    );
  });

  test('a missing credential is named', () => {
    expect(() => connect('127.0.0.1:1', { apiKey: '' })).toThrow(
      'apiKey is empty; check that the variable it comes from is set',
    );
    expect(() => connect('127.0.0.1:1', { apiKey: undefined, credentialToken: '' })).toThrow(
      'credentialToken is empty; check that the variable it comes from is set',
    );
  });

  test('an address that is a URL, or has no port, is refused with an example', () => {
    for (const address of [
      'http://127.0.0.1:50051',
      'https://gateway.example.com:443',
      'gateway.example.com',
      'gateway.example.com:50051/',
    ]) {
      expect(() => connect(address)).toThrow(new TypeError('address must be host:port, such as 127.0.0.1:50051'));
    }
    for (const address of ['gateway.example.com:443', '[::1]:50051', 'dns:///gateway.example.com:443'])
      connect(address, { deadlines: { closeMs: 0 } });
  });

  test('an invalid option is named before anything is sent', () => {
    const wrong: readonly (readonly [object, string])[] = [
      [{ credentialToken: 'token' }, 'set only one of credentialToken and apiKey'],
      [
        { apiKey: undefined },
        'set credentialToken or apiKey, or one of SVC_AGENT_TOKEN and SVC_API_KEY in the environment',
      ],
      [{ apiKey: 'a key' }, 'apiKey must consist of visible ASCII characters'],
      [
        { apiKey: undefined, credentialToken: 'schl\u00fcssel' },
        'credentialToken must consist of visible ASCII characters',
      ],
      [{ onUnreachable: 'maybe' }, "onUnreachable must be 'deny' or 'allow'"],
      ...[0, 1.5, 1001].map(
        (maxInFlight) => [{ maxInFlight }, 'maxInFlight must be a whole number from 1 to 1000'] as const,
      ),
      [{ deadlines: { checkMs: 0 } }, 'deadlines.checkMs must be from 1 to 86400000 milliseconds'],
      [{ deadlines: { callMs: Number.NaN } }, 'deadlines.callMs must be from 1 to 86400000 milliseconds'],
      [{ deadlines: { outageMs: -1 } }, 'deadlines.outageMs must be from 0 to 86400000 milliseconds'],
      [{ deadlines: { closeMs: 86_400_001 } }, 'deadlines.closeMs must be from 0 to 86400000 milliseconds'],
    ];
    for (const [options, message] of wrong)
      expect(() => connect('127.0.0.1:1', options)).toThrow(new TypeError(message));
    for (const maxInFlight of [1, 1000])
      connect('127.0.0.1:1', { maxInFlight, deadlines: { checkMs: 86_400_000, callMs: 1, outageMs: 0, closeMs: 0 } });
  });

  test('a value of the wrong type is named, in options and requests', async () => {
    const whole = { orgId: 'acme', teamId: 'search', agentId: 'a' };
    const wrong: readonly (readonly [object, string])[] = [
      [{ parent: { ...whole, orgId: undefined } }, 'parent.orgId must be a string'],
      [{ parent: { ...whole, teamId: '' } }, 'parent.teamId must be a non-empty string'],
      [{ agent: { ...whole, agentId: 7 } }, 'agent.agentId must be a non-empty string'],
    ];
    for (const [options, message] of wrong)
      expect(() => connect('127.0.0.1:1', options)).toThrow(new TypeError(message));
    const agent = connect('127.0.0.1:1', { agent: { ...whole, orgId: '' }, deadlines: { closeMs: 0 } });
    await expect(agent.check({ ...SEARCH, estimatedCostUsd: '1' as never })).rejects.toThrow(
      new TypeError('estimatedCostUsd must be a number'),
    );
    await expect(agent.recordUsage({ costUsd: '1' as never })).rejects.toThrow(
      new TypeError('costUsd must be a number'),
    );
  });

  test('an unreadable argument rejects the call and throws nowhere else', async () => {
    const agent = connect('127.0.0.1:1', { onUnreachable: 'deny' });
    const nothing = null as never;
    const calls = [
      agent.check(nothing),
      agent.check(SEARCH, nothing),
      agent.run(SEARCH, () => 'done', nothing),
      agent.complete('t:s', nothing),
      agent.recordUsage(nothing),
      agent.ready(nothing),
    ];
    expect(
      (await Promise.allSettled(calls)).map(
        (settled) => settled.status === 'rejected' && settled.reason instanceof TypeError,
      ),
    ).toEqual(calls.map(() => true));
  });

  test('attributes that JSON would drop are refused with their place', async () => {
    const agent = connect('127.0.0.1:1');
    const refused = (attributes: unknown) =>
      agent
        .check({ ...SEARCH, attributes: attributes as never })
        .catch((error: Error) => `${error.name}: ${error.message}`);
    expect(await refused({ at: new Date(0) })).toBe('TypeError: attributes.at must be a plain object, not Date');
    expect(await refused({ a: [new Map([['size', 5_000]])] })).toBe(
      'TypeError: attributes.a[0] must be a plain object, not Map',
    );
    expect(await refused(new Map([['size', 5_000]]))).toBe('TypeError: attributes must be a plain object, not Map');
    expect(await refused([1])).toBe('TypeError: attributes must be a plain object, not Array');
    expect(await refused(null)).toBe('TypeError: attributes must be a plain object, not Null');
    expect(await refused({ sizes: [1, Number.NaN] })).toBe('TypeError: attributes.sizes[1] must be a finite number');
    expect(await refused({ size: 5_000n })).toBe('TypeError: attributes.size is a bigint, which JSON cannot represent');
    expect(await refused({ of: { call: () => 1 } })).toBe(
      'TypeError: attributes.of.call is a function, which JSON cannot represent',
    );
    const circle: unknown[] = [];
    circle.push({ circle });
    expect(await refused({ circle })).toBe('TypeError: attributes.circle[0].circle contains itself');
    const twice = { size: 1 };
    expect(
      await agent
        .check(
          { ...SEARCH, attributes: { one: twice, other: [twice, undefined as never] } },
          { signal: AbortSignal.abort(new Error('fine so far')) },
        )
        .catch((error: Error) => error.message),
    ).toBe('fine so far');
  });

  test('a lone surrogate is refused with its place: JSON would change it', async () => {
    const agent = connect('127.0.0.1:1');
    const long = `${'x'.repeat(100)}\ud83d`;
    const refused = (call: Promise<unknown>) => call.catch((error: Error) => `${error.name}: ${error.message}`);
    expect(await refused(agent.check({ ...SEARCH, resource: long }))).toBe(
      'TypeError: resource has an unpaired surrogate',
    );
    expect(await refused(agent.check({ ...SEARCH, attributes: { a: [{ b: long }] } }))).toBe(
      'TypeError: attributes.a[0].b has an unpaired surrogate',
    );
    expect(await refused(agent.check({ ...SEARCH, attributes: { a: { '\ude00': 1 } } }))).toBe(
      'TypeError: a key of attributes.a has an unpaired surrogate',
    );
    expect(await refused(agent.check({ ...SEARCH, caller: { orgId: '', teamId: long, agentId: 'a' } }))).toBe(
      'TypeError: caller.teamId has an unpaired surrogate',
    );
    expect(await refused(agent.recordUsage({ costUsd: 1, usageId: long }))).toBe(
      'TypeError: usageId has an unpaired surrogate',
    );
    expect(() => connect('127.0.0.1:1', { agent: { orgId: '', teamId: 't', agentId: long } })).toThrow(
      'agent.agentId has an unpaired surrogate',
    );
  });

  test('a check larger than the gateway accepts fails alone', async () => {
    const agent = connect(gateway.grpc);
    const [large, small] = await Promise.allSettled([
      agent.check({ ...SEARCH, attributes: { text: 'x'.repeat(2 * 1024 * 1024) } }),
      agent.check(SEARCH),
    ]);
    expect(large).toMatchObject({
      status: 'rejected',
      reason: { name: 'GatewayError', code: 'resource_exhausted', fault: 'payload_too_large' },
    });
    expect(small).toMatchObject({ status: 'fulfilled', value: { decision: 'allow' } });
  });

  test('send checks as unary calls if streams are blocked', async () => {
    const server = new Server();
    const { path } = METHODS.CheckAction;
    const asked: string[] = [];
    server.addService(
      {
        CheckAction: {
          path,
          requestStream: false,
          responseStream: false,
          requestSerialize: METHODS.CheckAction.encode,
          requestDeserialize: decodeCheck,
          responseSerialize: encodeReply,
          responseDeserialize: METHODS.CheckAction.decode,
        },
      },
      {
        CheckAction: ({ request }: ServerUnaryCall<CheckMessage, unknown>, respond: sendUnaryData<unknown>) => {
          asked.push(request.spanId);
          respond(null, { decision: 1, reason: `for ${request.spanId}` });
        },
      },
    );
    const port = await new Promise<number>((resolve, reject) =>
      server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
        error === null ? resolve(bound) : reject(error),
      ),
    );
    cleanUp.push(() => server.forceShutdown());
    const agent = connect(`127.0.0.1:${port}`, {
      apiKey: undefined,
      credentialToken: 'any-token',
    } as Partial<AgentClientOptions>);
    const answers = await Promise.all(['a', 'b', 'c'].map((spanId) => agent.check({ ...SEARCH, spanId })));
    expect(answers.map(({ decision, reason }) => `${decision} ${reason}`)).toEqual([
      'allow for a',
      'allow for b',
      'allow for c',
    ]);
    expect(asked.sort()).toEqual(['a', 'b', 'c']);
  });

  test('reach the gateway with TLS through a proxy only with its certificate', async () => {
    const { key, cert, remove } = selfSigned('gateway.test');
    cleanUp.push(remove);
    const proxy = createTlsServer({ key, cert, ALPNProtocols: ['h2'] }, (near) => {
      const [host = '', port = ''] = gateway.grpc.split(':');
      const far = connectTcp(Number(port), host);
      near.pipe(far).pipe(near);
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const)
        one.on('error', () => other.destroy()).on('close', () => other.destroy());
    });
    proxy.on('tlsClientError', () => {});
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    cleanUp.push(() => proxy.close());
    const address = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;

    const trusting = connect(address, { tls: { ca: cert, serverName: 'gateway.test' } });
    await trusting.ready();
    expect(await trusting.check(SEARCH)).toMatchObject({ decision: 'allow' });
    const distrusting = connect(address, { tls: {}, deadlines: { outageMs: 100, closeMs: 100 } });
    expect(await distrusting.check(SEARCH)).toMatchObject({ decision: 'deny', unreachable: true });
  });

  // Decodes the part of a check that the fake gateway looks at: the span id is field 4.
  const decodeCheck = (bytes: Buffer): CheckMessage => ({ spanId: fieldOf(bytes, 4) }) as CheckMessage;

  function fieldOf(bytes: Buffer, wanted: number): string {
    for (let at = 0; at < bytes.length; ) {
      const [tag = 0, length = 0] = bytes.subarray(at, at + 2);
      if (tag >> 3 === wanted) return bytes.toString('utf8', at + 2, at + 2 + length);
      at += 2 + length;
    }
    return '';
  }

  const encodeReply = ({ decision, reason }: { decision: number; reason: string }): Buffer =>
    Buffer.concat([Buffer.from([0x08, decision, 0x12, reason.length]), Buffer.from(reason)]);
});

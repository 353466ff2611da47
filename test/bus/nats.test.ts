/** Details of NATS as a bus: its servers, their credentials, and the messages about wrong settings. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { nkeys } from 'nats';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { NatsBus, type NatsBusOptions } from '../../src/bus/nats.ts';
import { natsServers } from '../../src/bus/nats-servers.ts';
import type { ClusterMessage, RunId } from '../../src/ports/cluster.ts';
import { type Certificate, selfSigned } from '../support/certificate.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { NATS_SERVER, startNats, type TestNats } from '../support/nats.ts';

const SECRET = randomUUID();

type TestBus = { readonly bus: NatsBus; readonly run: RunId; readonly ids: number[]; readonly said: string[] };

function busTo(url: string, options: Partial<NatsBusOptions> = {}): TestBus {
  const run = randomUUID() as string as RunId;
  const said: string[] = [];
  const note = (message: string, fields?: object): void => void said.push(`${message} ${JSON.stringify(fields)}`);
  const log = { info: note, warn: note };
  const servers = natsServers(url)!;
  const files = { caFile: undefined, credentialsFile: undefined };
  const bus = new NatsBus({ self: run, secret: SECRET, servers, ...files, name: 'test', log, ...options });
  onTestFinished(() => bus.close());
  const ids: number[] = [];
  bus.onMessage((_, message) => ids.push((message as { seq: number }).seq));
  return { bus, run, ids, said };
}

async function openBus(url: string, options?: Partial<NatsBusOptions>): Promise<TestBus> {
  const opened = busTo(url, options);
  await opened.bus.start();
  return opened;
}

const refusedBy = (url: string, options?: Partial<NatsBusOptions>): Promise<string> =>
  openBus(url, options).then(
    ({ bus }) => `not refused, and ${bus.isConnected ? '' : 'not '}connected`,
    (error: Error) => `${error.constructor.name}: ${error.message}`,
  );

const confirm = (id: number): ClusterMessage => ({ type: 'appended', seq: id });
const upTo = (count: number): number[] => Array.from({ length: count }, (_, at) => at + 1);

/** Signed by hand, as `nsc` would: one operator, one account, one user. */
function credentials(): { readonly config: string; readonly creds: string } {
  const [operator, account, user] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createUser()];
  const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = (by: typeof operator, sub: typeof operator, nats: object): string => {
    const claims = { jti: 'x', iat: 1, iss: by.getPublicKey(), sub: sub.getPublicKey(), name: 'test', nats };
    const text = `${encoded({ typ: 'JWT', alg: 'ed25519-nkey' })}.${encoded(claims)}`;
    return `${text}.${Buffer.from(by.sign(Buffer.from(text))).toString('base64url')}`;
  };
  const limits = { subs: -1, data: -1, payload: -1, conn: -1, leaf: -1, imports: -1, exports: -1, wildcards: true };
  const ofOperator = signed(operator, operator, { type: 'operator', version: 2 });
  const ofAccount = signed(operator, account, { type: 'account', version: 2, limits });
  const ofUser = signed(account, user, { type: 'user', version: 2, subs: -1, data: -1, payload: -1 });
  return {
    config: `operator: ${ofOperator}\nresolver: MEMORY\nresolver_preload: { ${account.getPublicKey()}: ${ofAccount} }`,
    creds: `-----BEGIN NATS USER JWT-----\n${ofUser}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${Buffer.from(user.getSeed()).toString()}\n------END USER NKEY SEED------\n`,
  };
}

describe('the servers in SVC_BUS_URL', () => {
  const PLAIN = { isTls: false, user: undefined, password: undefined, token: undefined };

  test('have a port, and what is said of the first where nothing else is', () => {
    expect(natsServers('nats://nats.example.com')).toEqual([{ ...PLAIN, host: 'nats.example.com', port: 4222 }]);
    expect(natsServers('nats://svc:p%40ss@a:4333, b,nats://t0ken@[::1]:4444/')).toEqual([
      { ...PLAIN, host: 'a', port: 4333, user: 'svc', password: 'p@ss' },
      { ...PLAIN, host: 'b', port: 4222, user: 'svc', password: 'p@ss' },
      { ...PLAIN, host: '::1', port: 4444, token: 't0ken' },
    ]);
    expect(natsServers('tls://a,b')?.map(({ isTls }) => isTls)).toEqual([true, true]);
  });

  test.each([
    'nats.example.com:4222',
    'http://a',
    'nats://',
    'nats://a:b:c',
    'nats://a,',
    'nats://a/subject',
    'nats://a?tls=1',
    'nats://u:100%@a',
    'tls://a,nats://b',
  ])('are not to be made out in %s', (url) => {
    expect(natsServers(url)).toBeUndefined();
  });
});

describe.skipIf(NATS_SERVER === undefined)('the bus over NATS', () => {
  let server: TestNats;
  let encrypted: TestNats;
  let certificate: Certificate;
  const CREDENTIALS = NATS_SERVER === undefined ? undefined : credentials();

  beforeAll(async () => {
    certificate = selfSigned('localhost');
    afterAll(() => certificate.remove());
    const key = join(dirname(certificate.certFile), 'key.pem');
    server = await startNats(
      `authorization { timeout: 30, users = [
        { user: svc, password: "s#cret", permissions: { publish: "svc.>", subscribe: "svc.>" } },
        { user: deaf, password: x, permissions: { publish: "svc.>", subscribe: "other.>" } },
        { user: mute, password: x, permissions: { publish: "other.>", subscribe: "svc.>" } } ] }`,
      afterAll,
    );
    encrypted = await startNats(
      `tls { cert_file: "${certificate.certFile}", key_file: "${key}" }\n${CREDENTIALS!.config}`,
      afterAll,
    );
  });

  const urlOf = ({ port }: TestNats, user = ''): string => `nats://${user}${user && '@'}127.0.0.1:${port}`;

  test('refuses credentials that are wrong, or lack the rights it needs', async () => {
    const at = `127.0.0.1:${server.port}`;
    const wrong = `BusRefused: the credentials are refused by ${at}: 'Authorization Violation'; correct those in SVC_BUS_URL, or in the file of SVC_BUS_CREDENTIALS_FILE`;
    expect(await refusedBy(urlOf(server, 'svc:wrong'))).toBe(wrong);
    expect(await refusedBy(urlOf(server))).toBe(wrong);
    expect(await refusedBy(urlOf(server, 'deaf:x'))).toMatch(
      new RegExp(`^BusRefused: ${at} does not permit a subscription to svc\\..*; allow the user to publish and subscr`),
    );
    expect(await refusedBy(urlOf(server, 'mute:x'))).toMatch(
      new RegExp(`^BusRefused: ${at} does not permit a publish to svc\\.`),
    );
    const { bus } = await openBus(urlOf(server, 'svc:s%23cret'));
    expect(bus.isConnected).toBe(true);
  });

  test('is encrypted, with credentials of a file, to a server that it can trust', async () => {
    const credentialsFile = join(dirname(certificate.certFile), 'svc.creds');
    writeFileSync(credentialsFile, CREDENTIALS!.creds);
    const url = `tls://localhost:${encrypted.port}`;
    const caFile = certificate.certFile;
    const [here, there] = [
      await openBus(url, { caFile, credentialsFile }),
      await openBus(url, { caFile, credentialsFile }),
    ];
    here.bus.send('all', confirm(1));
    await eventually(() => expect(there.ids).toEqual([1]));
    expect(await refusedBy(url, { credentialsFile })).toMatch(
      /^BusRefused: no encrypted connection to localhost:\d+: self-signed certificate \(DEPTH_ZERO_SELF_SIGNED_CERT\); name/,
    );
    // A server that knows its key, but not for this name.
    expect(await refusedBy(`tls://127.0.0.1:${encrypted.port}`, { caFile, credentialsFile })).toMatch(
      /^BusRefused: no encrypted connection to 127\.0\.0\.1:\d+: .*\(ERR_TLS_CERT_ALTNAME_INVALID\); name/,
    );
    expect(await refusedBy(url, { caFile })).toMatch(/^BusRefused: the credentials are refused by localhost:/);
    expect(await refusedBy(url, { caFile: '/nowhere/ca.pem', credentialsFile })).toMatch(
      /^BusRefused: cannot read the file of SVC_BUS_CA_FILE: ENOENT/,
    );
    writeFileSync(credentialsFile, 'nothing of the kind');
    expect(await refusedBy(url, { caFile, credentialsFile })).toMatch(
      /^BusRefused: the credentials are refused by loc/,
    );
  });

  test('shows its certificate to a server that verifies one', async () => {
    const { certFile } = certificate;
    const keyFile = join(dirname(certFile), 'key.pem');
    const verifying = await startNats(
      `tls { cert_file: "${certFile}", key_file: "${keyFile}", ca_file: "${certFile}", verify: true }`,
    );
    const url = `tls://localhost:${verifying.port}`;
    const shown = { caFile: certFile, certificateFile: certFile, keyFile };
    const [here, there] = [await openBus(url, shown), await openBus(url, shown)];
    here.bus.send('all', confirm(1));
    await eventually(() => expect(there.ids).toEqual([1]));
    expect(await refusedBy(url, { caFile: certFile })).toMatch(
      /^BusRefused: localhost:\d+ verifies certificates \(.*CERTIFICATE.*\); name one that it trusts in SVC_BUS_CERT_FILE/,
    );
  });

  test('refuses a server if one side wants encryption, or if it is not NATS', async () => {
    expect(await refusedBy(urlOf(encrypted))).toBe(
      `BusRefused: 127.0.0.1:${encrypted.port} takes encrypted connections only; write tls:// in place of nats:// in SVC_BUS_URL`,
    );
    expect(await refusedBy(`tls://127.0.0.1:${server.port}`)).toBe(
      `BusRefused: 127.0.0.1:${server.port} offers no encryption; configure tls there, or write nats:// in SVC_BUS_URL`,
    );
    const other: Server = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    other.on('connection', (socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
    const { port } = other.address() as AddressInfo;
    expect(await refusedBy(`nats://127.0.0.1:${port}`)).toBe(
      `BusRefused: the server at 127.0.0.1:${port} is not NATS; correct SVC_BUS_URL`,
    );
  });

  test('goes without a server until one is there, and to another where one is not', async () => {
    const [port, nobody] = [await freePort(), await freePort()];
    const waiting = await openBus(`nats://127.0.0.1:${port}`);
    expect([waiting.bus.isConnected, waiting.bus.send('all', confirm(1))]).toEqual([false, false]);
    expect(waiting.said).toEqual([expect.stringMatching(/is cut off .*ECONNREFUSED/)]);
    const both = `${urlOf(server, 'svc:s%23cret')},127.0.0.1:${nobody}`;
    const [here, there] = [await openBus(both), await openBus(both)];
    for (const id of upTo(500)) here.bus.send('all', confirm(id));
    await here.bus.close(); // what was sent before still leaves
    await eventually(() => expect(there.ids).toEqual(upTo(500)));
    expect([here.bus.isConnected, here.bus.send('all', confirm(1))]).toEqual([false, false]);
  });

  test('is back after its server was killed', async () => {
    const own = await startNats();
    const [here, there] = [await openBus(own.url), await openBus(own.url)];
    await own.kill();
    await eventually(() => expect([here.bus.isConnected, there.bus.isConnected]).toEqual([false, false]));
    await own.restart();
    await eventually(() => expect([here.bus.isConnected, there.bus.isConnected]).toEqual([true, true]));
    here.bus.send('all', confirm(1));
    await eventually(() => expect(there.ids).toEqual([1]));
    expect([here.said.at(0), here.said.at(-1)]).toEqual([
      expect.stringContaining('the bus of the cluster is cut off'),
      expect.stringContaining('the bus of the cluster is connected again'),
    ]);
  });
});

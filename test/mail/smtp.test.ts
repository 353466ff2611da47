import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type ClosableMailer, createMailer } from '../../src/mail/mailer.ts';
import type { SmtpOptions } from '../../src/mail/smtp.ts';
import { type Certificate, selfSigned } from '../support/certificate.ts';
import { eventually } from '../support/eventually.ts';

const MAIL = {
  to: 'owner@example.com',
  subject: 'Reset your password',
  text: 'open https://gateway.test/#/reset-password/SECRET-TOKEN\n',
};
const CREDENTIALS = { user: 'gateway', pass: 'relay-password' };

let certificate: Certificate;
describe('smtp', () => {
  beforeAll(() => {
    certificate = selfSigned('localhost');
  });
  afterAll(() => certificate.remove());

  type Received = {
    readonly recipients: string[];
    readonly raw: string;
    readonly isSecure: boolean;
    readonly user: string | undefined;
  };
  type Relay = { readonly port: number; readonly received: Received[]; readonly passwordsSeen: string[] };

  /** A real relay on loopback. It takes `refusals` mails badly before it takes one. */
  async function startRelay(options: SMTPServerOptions = {}, refusals = 0): Promise<Relay> {
    const received: Received[] = [];
    const passwordsSeen: string[] = [];
    let refused = 0;
    const server = new SMTPServer({
      ...certificate,
      authOptional: true,
      logger: false,
      onAuth: (auth, _session, callback) => {
        passwordsSeen.push(auth.password ?? '');
        if (auth.username === CREDENTIALS.user && auth.password === CREDENTIALS.pass)
          callback(null, { user: auth.username });
        else callback(new Error('no such user'));
      },
      onData: (stream, session, callback) => {
        let raw = '';
        stream
          .setEncoding('utf8')
          .on('data', (text: string) => (raw += text))
          .on('end', () => {
            if (refused++ < refusals) return callback(Object.assign(new Error('come again'), { responseCode: 451 }));
            received.push({
              recipients: session.envelope.rcptTo.map(({ address }) => address),
              raw,
              isSecure: session.secure,
              user: session.user as string | undefined,
            });
            callback();
          });
      },
      ...options,
    });
    server.on('error', () => undefined); // clients that hang up are what some tests are about
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
    return { port: (server.server.address() as AddressInfo).port, received, passwordsSeen };
  }

  type Line = { readonly level: 'info' | 'warn'; readonly message: string; readonly fields: object };

  function openMailer(smtp: (Partial<SmtpOptions> & { port: number }) | undefined): {
    mailer: ClosableMailer;
    lines: Line[];
  } {
    const lines: Line[] = [];
    const write =
      (level: Line['level']) =>
      (message: string, fields: object = {}) =>
        void lines.push({ level, message, fields });
    const options = smtp && {
      host: 'localhost',
      credentials: undefined,
      from: 'no-reply@gateway.test',
      ca: certificate.cert,
      timeoutMs: 30_000,
      ...smtp,
    };
    const mailer = createMailer(options, { info: write('info'), warn: write('warn') }, { retryPausesMs: [20, 20] });
    onTestFinished(() => mailer.close(1000));
    return { mailer, lines };
  }

  const messages = (lines: Line[]): string[] => lines.map((line) => line.message);

  test('a relay that trusts the gateway gets the mail over TLS', async () => {
    const relay = await startRelay();
    const { mailer } = openMailer({ port: relay.port, credentials: CREDENTIALS });
    await mailer.send(MAIL);
    expect(relay.received).toEqual([
      {
        recipients: ['owner@example.com'],
        raw: expect.stringContaining('SECRET-TOKEN'),
        isSecure: true,
        user: 'gateway',
      },
    ]);
    expect(relay.received[0]!.raw).toMatch(/^From: no-reply@gateway\.test\r$/m);
  });

  test('neither the relay check nor a mail leaves a connection behind', async () => {
    const seen = { opened: 0, closed: 0 };
    const { port } = await startRelay({
      onConnect: (_session, callback) => {
        seen.opened += 1;
        callback();
      },
      onClose: () => {
        seen.closed += 1;
      },
    });
    await openMailer({ port, credentials: CREDENTIALS, timeoutMs: 60_000 }).mailer.send(MAIL);
    await eventually(() => expect(seen).toEqual({ opened: 2, closed: 2 }));
  });

  test('a relay without authentication gets it too, over TLS where it offers that', async () => {
    const offering = await startRelay();
    const plain = await startRelay({ disabledCommands: ['STARTTLS'] });
    for (const relay of [offering, plain]) await openMailer({ port: relay.port }).mailer.send(MAIL);
    expect([offering, plain].map(({ received }) => received[0]?.isSecure)).toEqual([true, false]);
  });

  test('credentials are never sent to a relay without TLS', async () => {
    const relay = await startRelay({ disabledCommands: ['STARTTLS'], allowInsecureAuth: true });
    const { mailer, lines } = openMailer({ port: relay.port, credentials: CREDENTIALS });
    await mailer.send(MAIL);
    expect(relay.passwordsSeen).toEqual([]);
    expect(relay.received).toEqual([]);
    expect(messages(lines)).toContain('no e-mail will be sent; fix the relay settings and restart');
  });

  test('speaks TLS from the first byte at port 465, even if the relay greets without', async (context) => {
    const firstBytes: (number | undefined)[] = [];
    const server = createServer((socket) => {
      socket
        .on('error', () => undefined)
        .once('data', (bytes: Buffer) => {
          firstBytes.push(bytes[0]);
          socket.destroy();
        });
      socket.write('220 relay\r\n');
    });
    const isListening = await new Promise<boolean>((resolve) =>
      server.once('error', () => resolve(false)).listen(465, '127.0.0.1', () => resolve(true)),
    );
    if (!isListening)
      return context.skip(
        'listening at port 465 needs a privilege this machine does not give, or something does already',
      );
    onTestFinished(() => void server.close());
    openMailer({ port: 465, credentials: CREDENTIALS });
    const TLS_HANDSHAKE = 0x16;
    await eventually(() => expect(firstBytes[0]).toBe(TLS_HANDSHAKE));
  });

  test('a relay with a bad certificate gets neither credentials nor mail', async () => {
    const relay = await startRelay();
    const { mailer, lines } = openMailer({ port: relay.port, credentials: CREDENTIALS, ca: '' });
    await mailer.send(MAIL);
    expect({ passwordsSeen: relay.passwordsSeen, received: relay.received }).toEqual({
      passwordsSeen: [],
      received: [],
    });
    expect(messages(lines)).toContain('e-mail not sent; giving up');
  });

  test('logs recipient and subject only if the credentials are wrong', async () => {
    const relay = await startRelay();
    const { mailer, lines } = openMailer({ port: relay.port, credentials: { user: 'gateway', pass: 'wrong' } });
    await mailer.send(MAIL);
    expect(messages(lines)).toEqual([
      'no e-mail will be sent; fix the relay settings and restart',
      'e-mail not sent: the relay settings do not work',
    ]);
    expect(lines[1]!.fields).toEqual({ to: 'owner@example.com', subject: 'Reset your password' });
  });

  test('without a relay, logs recipient and subject and the missing relay', async () => {
    const { mailer, lines } = openMailer(undefined);
    await mailer.send(MAIL);
    expect(lines).toEqual([
      {
        level: 'info',
        message: 'e-mail not sent: no relay is configured',
        fields: { to: 'owner@example.com', subject: 'Reset your password' },
      },
    ]);
  });

  test.each([
    [{ host: 'no spaces allowed', port: 25 }, 'SVC_SMTP_HOST is not a host name'],
    [{ port: 0 }, 'SVC_SMTP_PORT is not a port'],
    [{ port: 25, credentials: { user: 'only', pass: '' } }, 'SVC_SMTP_USER and SVC_SMTP_PASS must be set together'],
    [{ port: 25, credentials: { user: '', pass: 'only' } }, 'SVC_SMTP_USER and SVC_SMTP_PASS must be set together'],
    [{ port: 25, from: 'a@b.c\r\nBcc: x@y.z' }, 'SVC_SMTP_FROM is not an e-mail address'],
    [{ port: 25, from: 'gateway' }, 'SVC_SMTP_FROM is not an e-mail address'],
  ])('impossible settings are reported at start: %j', async (smtp, cause) => {
    const { mailer, lines } = openMailer(smtp);
    await mailer.send(MAIL);
    expect(lines[0]).toEqual({ level: 'warn', message: 'no e-mail will be sent', fields: { cause } });
    expect(messages(lines)[1]).toBe('e-mail not sent: the relay settings do not work');
  });

  test('a relay that defers a mail gets it at the next attempt', async () => {
    const relay = await startRelay({}, 2);
    const { mailer, lines } = openMailer({ port: relay.port });
    await mailer.send(MAIL);
    expect(relay.received).toHaveLength(1);
    expect(messages(lines)).toEqual(['e-mail not sent yet; retrying', 'e-mail not sent yet; retrying', 'e-mail sent']);
  });

  test('a relay that hangs times out, and delays the shutdown no longer than its limit', async () => {
    const silent: Server = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    const given = openMailer({ port, timeoutMs: 300 });
    await given.mailer.send(MAIL);
    expect(messages(given.lines)).toContain('e-mail not sent; giving up');

    const slow = openMailer({ port, timeoutMs: 20_000 });
    void slow.mailer.send(MAIL);
    // Well before the 20 seconds that it waits for its relay.
    expect(
      await Promise.race([
        slow.mailer.close(200).then(() => 'closed'),
        new Promise((resolve) => setTimeout(resolve, 10_000, 'still waiting')),
      ]),
    ).toBe('closed');
  });

  test('a shutdown cuts off the check and mail of a silent relay', async () => {
    const connections = new Set<Socket>();
    let accepted = 0;
    const silent = createServer((socket) => {
      accepted += 1;
      connections.add(socket);
      socket.on('error', () => undefined).once('close', () => connections.delete(socket));
    });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    const checking = openMailer({ port, timeoutMs: 30_000 });
    void checking.mailer.send(MAIL);
    await eventually(async () => expect(accepted).toBe(1));
    await checking.mailer.close(0);
    await eventually(async () => expect(connections.size).toBe(0));

    const sending = openMailer({ port, timeoutMs: 500 });
    void sending.mailer.send(MAIL);
    await eventually(async () => expect(accepted).toBe(3)); // the check has given up, and the mail is tried
    await sending.mailer.close(0);
    await eventually(async () => expect(connections.size).toBe(0));
    expect(messages(sending.lines)).toEqual(['the mail relay does not respond yet', 'e-mail not sent; giving up']);
  });

  /** A relay that answers a little every now and then, and never to the end. */
  async function startDripping(): Promise<{ readonly port: number }> {
    const dripping = createServer((socket) => {
      socket.on('error', () => undefined).write('220 relay\r\n');
      socket.once('data', () => {
        const timer = setInterval(() => socket.write('250-SIZE\r\n'), 20);
        socket.once('close', () => clearInterval(timer));
      });
    });
    await new Promise<void>((resolve) => dripping.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void dripping.close());
    return { port: (dripping.address() as AddressInfo).port };
  }

  test('a relay with an endless answer times out, and the mail with it', async () => {
    const { mailer, lines } = openMailer({ ...(await startDripping()), timeoutMs: 300, deliveryTimeoutMs: 500 });
    await mailer.send(MAIL);
    expect(messages(lines)).toEqual([
      'the mail relay does not respond yet',
      'e-mail not sent yet; retrying',
      'e-mail not sent yet; retrying',
      'e-mail not sent; giving up',
    ]);
  });

  /** A relay that greets with one line, or with none, and says no more. */
  async function startMute(
    greeting?: string,
  ): Promise<{ readonly port: number; readonly accepted: () => number; greetWith(line: string | undefined): void }> {
    let line = greeting;
    let accepted = 0;
    const server = createServer((socket) => {
      accepted += 1;
      socket.on('error', () => undefined);
      if (line !== undefined) socket.write(`${line}\r\n`);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    return {
      port: (server.address() as AddressInfo).port,
      accepted: () => accepted,
      greetWith: (next) => {
        line = next;
      },
    };
  }

  test('a relay that is down at start is asked for each mail and gets it once it is up', async () => {
    const relay = await startRelay();
    let isServing = false;
    const door = createServer((near) => {
      near.on('error', () => undefined);
      if (!isServing) return void near.end('554 no service at the moment\r\n');
      const far = connect(relay.port, '127.0.0.1').on('error', () => undefined);
      near.pipe(far).pipe(near);
    });
    await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void door.close());
    const { mailer, lines } = openMailer({ port: (door.address() as AddressInfo).port, timeoutMs: 5000 });
    await eventually(() => expect(messages(lines)).toEqual(['the mail relay does not respond yet']));
    await mailer.send(MAIL);
    expect(messages(lines).slice(1)).toEqual([
      'e-mail not sent yet; retrying',
      'e-mail not sent yet; retrying',
      'e-mail not sent; giving up',
    ]);
    isServing = true;
    await mailer.send(MAIL);
    expect(relay.received).toHaveLength(1);
  });

  test('a shutdown before the relay answers reports each mail as not sent', async () => {
    const { port } = await startMute();
    const { mailer, lines } = openMailer({ port, timeoutMs: 30_000 });
    void mailer.send(MAIL);
    await mailer.close(0);
    await eventually(() =>
      expect(lines).toEqual([
        {
          level: 'warn',
          message: 'e-mail not sent: the outbox is full or closed',
          fields: { to: 'owner@example.com', subject: 'Reset your password' },
        },
      ]),
    );
  });

  test('a shutdown is as short when the wall clock is set back meanwhile', async () => {
    const relay = await startMute('421 come again');
    const { mailer, lines } = openMailer({ port: relay.port, timeoutMs: 60_000 });
    await eventually(() => expect(messages(lines)).toEqual(['the mail relay does not respond yet']));
    relay.greetWith(undefined);
    void mailer.send(MAIL);
    await eventually(() => expect(relay.accepted()).toBe(2));
    let nowMs = Date.now();
    const now = vi.spyOn(Date, 'now').mockImplementation(() => (nowMs -= 3_600_000));
    await mailer.close(200).finally(() => now.mockRestore());
    expect(lines.at(-1)).toEqual({
      level: 'warn',
      message: 'e-mail not sent; giving up',
      fields: { to: 'owner@example.com', subject: 'Reset your password', cause: 'the gateway is stopping' },
    });
  });

  test('a shutdown waits for the mail being sent, and retries at once', async () => {
    const relay = await startRelay({}, 1);
    const { mailer } = openMailer({ port: relay.port });
    void mailer.send(MAIL);
    await mailer.close(5000);
    expect(relay.received).toHaveLength(1);
  });

  test('nothing in an address or a subject adds a header or a recipient', async () => {
    const relay = await startRelay();
    const { mailer } = openMailer({ port: relay.port });
    await mailer.send({ to: 'owner@example.com, spy@evil.test', subject: 'Hello\r\nBcc: spy@evil.test', text: 'x' });
    await mailer.send({ to: 'owner@example.com\r\nBcc: spy@evil.test', subject: 'Hello', text: 'x' });
    for (const { recipients, raw } of relay.received) {
      expect(recipients).not.toContain('spy@evil.test');
      expect(raw).not.toMatch(/^Bcc:/im);
    }
  });

  test('no log line ever holds the token', async () => {
    const relay = await startRelay({}, 1);
    const { mailer, lines } = openMailer({ port: relay.port });
    await mailer.send(MAIL);
    await openMailer(undefined).mailer.send(MAIL);
    expect(JSON.stringify(lines)).not.toContain('SECRET-TOKEN');
  });
});

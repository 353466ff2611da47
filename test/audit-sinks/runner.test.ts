/** A sink gets every entry, in order, whatever happens to it, to the log and to the gateway. */
import { appendFileSync, mkdirSync, readFileSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listSegments } from '../../src/audit-log/segments.ts';
import { targetOf } from '../../src/audit-sinks/create.ts';
import { SinkRunner } from '../../src/audit-sinks/runner.ts';
import type { SinkSetting } from '../../src/audit-sinks/sink.ts';
import { append, freshDirectory, openWriter } from '../audit-log/log.ts';
import { eventually } from '../support/eventually.ts';
import { fastestMs } from '../support/fastest.ts';
import { answered, type Receiver, startReceiver } from '../support/receiver.ts';

const FAST = { everyMs: 10, retryMs: 10, maxRetryMs: 50, timeoutMs: 60_000 };
const SECRET = `whsec_${Buffer.from('a key of thirty-two bytes, or so').toString('base64')}`;

async function newReceiver(): Promise<Receiver> {
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  return receiver;
}

const httpSink = (url: string): SinkSetting => ({
  name: 'siem',
  type: 'http',
  format: 'native',
  url,
  headers: {},
  secret: SECRET,
  tls: {},
});

const newLog = (options = {}) => {
  const directory = freshDirectory();
  const writer = openWriter(directory, options);
  onTestFinished(() => writer.close());
  return {
    directory,
    writer,
    add: (count: number) =>
      append(
        writer,
        Array.from({ length: count }, () => ({})),
      ),
  };
};

function start(
  directory: string,
  setting: SinkSetting,
  { cursorPath = join(freshDirectory(), 'siem.json'), answerWithinMs = 60_000 } = {},
) {
  const notes: string[] = [];
  const runner = new SinkRunner({
    setting,
    target: targetOf(setting, { version: '1.2.3', resolve: async () => ['127.0.0.1'], timeoutMs: answerWithinMs }),
    directory,
    cursorPath,
    note: (level, message, fields) => notes.push(`${level}: ${message} ${JSON.stringify(fields)}`),
    onStatus: () => undefined,
    timing: FAST,
  });
  runner.start();
  onTestFinished(() => runner.close(0));
  return { runner, notes, cursorPath };
}

const idsIn = ({ received }: Receiver): number[] =>
  received.flatMap(({ body }) => {
    const { data } = JSON.parse(body) as { data: { entries?: { id: number }[] } };
    return (data.entries ?? []).map(({ id }) => id);
  });
const upTo = (last: number, first = 1): number[] => Array.from({ length: last - first + 1 }, (_, n) => first + n);

describe('a sink of the audit log', () => {
  test('gets what was written before it began, and what comes, once and in order', async () => {
    const receiver = await newReceiver();
    const { directory, add } = newLog({ segmentBytes: 2_000 });
    add(30);
    const { runner } = start(directory, httpSink(receiver.url));
    await eventually(() => expect(runner.status.sentId).toBe(30));
    add(1);
    add(20);
    await eventually(() => expect(runner.status.sentId).toBe(51));
    expect(idsIn(receiver)).toEqual(upTo(51));
    expect(runner.status).toMatchObject({ sentEntries: 51, lostEntries: 0, failures: 0, trouble: undefined });
  });

  test.each([
    ['answers 500', answered(500), 'answered 500', 60_000],
    [
      'redirects',
      answered(307, { location: 'http://127.0.0.1:1/' }),
      'answered 307; redirects are not followed',
      60_000,
    ],
    ['does not answer', () => undefined, 'no answer within 0.2 seconds', 200],
    [
      'cuts the connection',
      (request: IncomingMessage) => void request.socket.destroy(),
      'ECONNRESET: socket hang up',
      60_000,
    ],
  ])('that %s is sent the same again until it takes it', async (_, answer, reason, answerWithinMs) => {
    const receiver = await newReceiver();
    receiver.answer = answer as Receiver['answer'];
    const { directory, add } = newLog();
    const { runner, notes } = start(directory, httpSink(receiver.url), { answerWithinMs });
    add(3);
    await eventually(() => expect(runner.status.failures).toBeGreaterThan(1));
    expect(runner.status).toMatchObject({ sentId: 0, trouble: reason });
    receiver.answer = answered(200);
    await eventually(() => expect(runner.status).toMatchObject({ sentId: 3, trouble: undefined }));
    const [first] = receiver.received;
    expect(receiver.received.map(({ id }) => id)).toEqual(receiver.received.map(() => first!.id));
    expect(notes).toEqual([
      `warn: an audit sink does not take entries; they are sent again until it does {"sink":"siem","reason":"${reason}"}`,
      'info: an audit sink takes entries again {"sink":"siem"}',
    ]);
  });

  test('goes on behind what it has after a restart', async () => {
    const receiver = await newReceiver();
    const { directory, add } = newLog();
    add(5);
    const first = start(directory, httpSink(receiver.url));
    await eventually(() => expect(first.runner.status.sentId).toBe(5));
    await first.runner.close(60_000);
    expect(JSON.parse(readFileSync(first.cursorPath, 'utf8'))).toMatchObject({ id: 5 });
    add(2);
    const second = start(directory, httpSink(receiver.url), { cursorPath: first.cursorPath });
    await eventually(() => expect(second.runner.status.sentId).toBe(7));
    expect(idsIn(receiver)).toEqual(upTo(7));
  });

  test('gets the end of the log when the gateway stops, if it takes it', async () => {
    const receiver = await newReceiver();
    const { directory, add } = newLog();
    const { runner } = start(directory, httpSink(receiver.url));
    add(2_500);
    await runner.close(60_000);
    expect(idsIn(receiver)).toEqual(upTo(2_500));
    receiver.answer = () => undefined;
    const closedAfterMs = async (): Promise<number> => {
      const hanging = start(directory, httpSink(receiver.url));
      const startedMs = performance.now();
      await hanging.runner.close(100);
      return performance.now() - startedMs;
    };
    expect(await fastestMs(1_000, closedAfterMs)).toBeLessThan(1_000);
  });

  test('that is behind when retention deletes entries counts and names them', async () => {
    const receiver = await newReceiver();
    receiver.answer = answered(503);
    const { directory, add } = newLog({ segmentBytes: 500 });
    for (let n = 0; n < 10; n += 1) add(1);
    const { runner, notes } = start(directory, httpSink(receiver.url));
    await eventually(() => expect(runner.status.failures).toBeGreaterThan(0));
    const [first, second] = listSegments(directory);
    for (const segment of [first!, second!]) unlinkSync(segment.path);
    const gone = listSegments(directory)[0]!.firstId - 1;
    // A call that was under way has what is gone by now: it is not taken.
    receiver.answer = (_request, response) => {
      const { data } = JSON.parse(receiver.received.at(-1)!.body) as { data: { entries: { id: number }[] } };
      response.writeHead(data.entries[0]!.id > gone ? 200 : 503).end();
    };
    await eventually(() => expect(runner.status.sentId).toBe(10));
    expect(idsIn(receiver).slice(-(10 - gone))).toEqual(upTo(10, gone + 1));
    expect(runner.status.lostEntries).toBe(gone);
    expect(notes.find((note) => note.startsWith('error'))).toContain(`"entries":${gone},"after":0`);
  });

  test('is sent less at once where a batch is too large for it', async () => {
    const receiver = await newReceiver();
    receiver.answer = (_request, response) => {
      const { data } = JSON.parse(receiver.received.at(-1)!.body) as { data: { entries: unknown[] } };
      response.writeHead(data.entries.length > 3 ? 413 : 200).end();
    };
    const { directory, add } = newLog();
    add(10);
    const { runner } = start(directory, httpSink(receiver.url));
    await eventually(() => expect(runner.status.sentId).toBe(10));
  });

  test('is sent everything from an entry on when an operator asks for it', async () => {
    const receiver = await newReceiver();
    const { directory, add } = newLog();
    add(6);
    const { runner, cursorPath } = start(directory, httpSink(receiver.url));
    await eventually(() => expect(runner.status.sentId).toBe(6));
    runner.replay(4);
    await eventually(() => expect(idsIn(receiver)).toEqual([...upTo(6), 4, 5, 6]));
    runner.replay(1_000);
    add(1);
    await eventually(() => expect(idsIn(receiver)).toEqual([...upTo(6), 4, 5, 6, 7]));
    await runner.close(60_000);
    expect(JSON.parse(readFileSync(cursorPath, 'utf8'))).toMatchObject({ id: 7 });
  });

  test('gets the entries that replace what a failed append had left for a moment', async () => {
    const receiver = await newReceiver();
    const { directory, writer, add } = newLog();
    add(2);
    const path = writer.segmentPath!;
    const whole = readFileSync(path, 'utf8');
    const lost = whole.split('\n')[1]!.replace('{"id":2,', '{"id":3,');
    appendFileSync(path, `${lost}\n`);
    const { runner } = start(directory, httpSink(receiver.url));
    await eventually(() => expect(runner.status.sentId).toBe(3));
    truncateSync(path, Buffer.byteLength(whole));
    add(2); // the third takes the place of what is gone
    await eventually(() => expect(idsIn(receiver)).toEqual([1, 2, 3, 1, 2, 3, 4]));
  });

  test.each([
    ['damaged', 'not json', 'is damaged'],
    ['of another log', '{"id":900}', 'it was sent entry 900, and the log ends with 4: it was restored or cut'],
  ])('whose place is %s gets the whole log again', async (_, text, reason) => {
    const receiver = await newReceiver();
    const { directory, add } = newLog();
    add(4);
    const cursorPath = join(freshDirectory(), 'siem.json');
    writeFileSync(cursorPath, text);
    const { runner, notes } = start(directory, httpSink(receiver.url), { cursorPath });
    await eventually(() => expect(runner.status.sentId).toBe(4));
    expect(notes.join()).toContain(reason);
  });

  test('that fails does not hold up another one', async () => {
    const [good, bad] = [await newReceiver(), await newReceiver()];
    bad.answer = () => undefined;
    const { directory, add } = newLog();
    start(directory, httpSink(bad.url));
    const { runner } = start(directory, httpSink(good.url));
    add(5);
    await eventually(() => expect(runner.status.sentId).toBe(5));
  });
});

describe('a file as a sink', () => {
  const fileSink = (path: string): SinkSetting => ({ name: 'siem', type: 'file', format: 'native', path });

  test('has the lines of the log, behind a cut one and after it was moved away', async () => {
    const { directory, add } = newLog();
    const path = join(freshDirectory(), 'copy.ndjson');
    writeFileSync(path, '{"id":1,"cut');
    add(2);
    const { runner } = start(directory, fileSink(path));
    await eventually(() => expect(runner.status.sentId).toBe(2));
    const log = readFileSync(listSegments(directory)[0]!.path, 'utf8');
    expect(readFileSync(path, 'utf8')).toBe(`{"id":1,"cut\n${log}`);
    unlinkSync(path);
    add(1);
    await eventually(() => expect(readFileSync(path, 'utf8')).toMatch(/^\{"id":3,.*\}\n$/));
  });

  test('that is a folder is trouble, and no loss', async () => {
    const { directory, add } = newLog();
    const path = join(freshDirectory(), 'folder');
    mkdirSync(path);
    add(1);
    const { runner } = start(directory, fileSink(path));
    await eventually(() => expect(runner.status.trouble).toContain('EISDIR'));
    await expect(runner.test()).rejects.toThrow('EISDIR');
  });
});

describe('syslog as a sink', () => {
  const syslogSink = (port: number): SinkSetting => ({
    name: 'siem',
    type: 'syslog',
    format: 'native',
    url: `syslog+tcp://127.0.0.1:${port}`,
    tls: {},
  });

  test('gets framed messages of RFC 5424, and again what it may have lost', async () => {
    let text = '';
    const server = createServer((socket) => socket.on('data', (chunk) => (text += chunk)).on('error', () => undefined));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const { directory, writer, add } = newLog();
    const { runner } = start(directory, syslogSink(port));
    append(writer, [{ decision: 'allow' }, {}]);
    await eventually(() => expect(runner.status.sentId).toBe(2));
    const frames = framesIn(text);
    expect(frames).toHaveLength(2);
    expect(frames[0]).toMatch(
      /^<110>1 2026-03-01T12:00:00\.000Z \S+ svc-gateway \d+ ActionAllowed \[meta sequenceId="1"\] \{"id":1,.*\}$/,
    );
    // It goes away, and comes back without what it had not kept yet.
    await new Promise<void>((resolve) => server.close(() => resolve()));
    text = '';
    add(1);
    await eventually(() => expect(runner.status.trouble).toContain('ECONNREFUSED'));
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    await eventually(() => expect(runner.status.sentId).toBe(3));
    expect(framesIn(text).map((frame) => /"id":(\d+)/.exec(frame)?.[1])).toEqual(['1', '2', '3']);
    server.close();
  });
});

/** RFC 6587: the length in bytes, a space, the message. */
function framesIn(text: string): string[] {
  const frames: string[] = [];
  for (let rest = Buffer.from(text); rest.length > 0; ) {
    const space = rest.indexOf(' ');
    const length = Number(rest.toString('latin1', 0, space));
    frames.push(rest.toString('utf8', space + 1, space + 1 + length));
    rest = rest.subarray(space + 1 + length);
  }
  return frames;
}

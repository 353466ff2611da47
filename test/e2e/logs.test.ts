import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { openAuditWriter } from '../../src/audit-log/writer.ts';
import { encodeDraft } from '../../src/core/audit/audit-line.ts';
import { logPage } from '../../src/doors/api/shapes.ts';
import { auditEntries } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { residentMib } from '../support/memory.ts';
import { ALLOW_ALL } from '../support/policies.ts';

let gateway: TestGateway;
const folder = mkdtempSync(join(tmpdir(), 'svc-logs-'));
describe('logs', () => {
  beforeAll(async () => {
    writeFileSync(join(folder, 'policies.yaml'), ALLOW_ALL);
    gateway = await startTestGateway({ env: { SVC_POLICY_PATH: join(folder, 'policies.yaml') } });
  });
  afterAll(async () => {
    await gateway.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  let checks = 0;
  const check = (orgId: string, agentId = 'crawler') => {
    checks += 1;
    return gateway.call('POST', '/svc.governance.v1.PolicyService/CheckAction', {
      agent: { orgId, teamId: 'search', agentId },
      traceId: `t${checks}`,
      spanId: orgId || 'none',
      action: 'tool.call',
      resource: 'r',
    });
  };
  const logs = async (query: string, bearer = ADMIN_KEY) =>
    (await gateway.call('GET', `/api/v1/logs?${query}`, undefined, bearer)).body;
  const key = async (org_id: string): Promise<string> =>
    (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'test', scopes: ['read'], org_id })).body.key;

  test('a check is in the log once it is answered, as the newest entry', async () => {
    const { body } = await check('acme');
    const page = await logs('per_page=1');
    expect(logPage.safeParse(page).error).toBeUndefined();
    expect(page.entries[0]).toMatchObject({
      id: Number(body.auditId),
      event_type: 'ActionAllowed',
      lineage: { org_id: 'acme', team_id: 'search', agent_id: 'crawler' },
      op_id: body.opId,
    });
  });

  test('pages stay consistent while entries are written: nothing twice, nothing missed', async () => {
    for (let n = 0; n < 30; n += 1) await check('paging');
    const seen: number[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const page: { entries: { id: number }[]; next_cursor: string | null } = await logs(
        `org_id=paging&per_page=7${cursor === '' ? '' : `&cursor=${cursor}`}`,
      );
      seen.push(...page.entries.map(({ id }) => id));
      cursor = page.next_cursor;
      await check('paging');
    }
    expect(seen).toHaveLength(30);
    expect(seen).toEqual([...seen].sort((a, b) => b - a));
    expect(new Set(seen).size).toBe(30);
  });

  test('every filter keeps what it names and nothing else', async () => {
    await check('filters', 'one');
    const since = new Date(Date.now() + 50).toISOString(); // its clock may be a little ahead
    await sleep(100);
    const { body: two } = await check('filters', 'two');
    const ids = async (query: string) =>
      (await logs(`org_id=filters&${query}`)).entries.map((entry: any) => entry.lineage.agent_id);
    expect(await ids('agent_id=one')).toEqual(['one']);
    expect(await ids('team_id=search')).toEqual(['two', 'one']);
    expect(await ids('team_id=sales')).toEqual([]);
    expect(await ids('event_type=ActionAllowed&decision=allow')).toEqual(['two', 'one']);
    expect(await ids('decision=deny')).toEqual([]);
    expect(await ids(`op_id=${encodeURIComponent(two.opId)}`)).toEqual(['two']);
    expect(await ids(`since=${since}`)).toEqual(['two']);
    expect(await ids(`until=${since}`)).toEqual(['one']);
    for (const [field, value] of [
      ['event_type', 'Nonsense'],
      ['decision', 'maybe'],
      ['since', 'yesterday'],
      ['per_page', '0'],
      ['cursor', '!'],
    ]) {
      const { status, body } = await gateway.call('GET', `/api/v1/logs?${field}=${value}`);
      expect({ status, field: body.field }).toEqual({ status: 400, field });
    }
  });

  test.each([
    ['logs', ['team_id', 'agent_id', 'op_id', 'actor']],
    ['logs/export', ['team_id', 'agent_id', 'op_id', 'actor']],
    ['ops', ['team_id', 'agent_id']],
    ['agents', ['team_id', 'agent_id']],
  ])('an empty value in /%s is refused, as from a script with an unset variable', async (path, fields) => {
    for (const field of fields) {
      const { status, body } = await gateway.call('GET', `/api/v1/${path}?${field}=`);
      expect({ status, field: body.field, detail: body.detail }).toEqual({
        status: 400,
        field,
        detail: `${field}: must not be empty; omit it to see all`,
      });
    }
  });

  test('an entry without an org matches no org filter, and an org sees its own only', async () => {
    await check('');
    await check('theirs');
    expect((await logs('org_id=')).entries).toEqual([]);
    expect(
      (await logs('per_page=1000')).entries.some(
        (entry: any) => entry.lineage.org_id === null && entry.lineage.agent_id === 'crawler',
      ),
    ).toBe(true);
    const ours = await key('ours');
    await check('ours');
    expect(
      (await logs('per_page=1000', ours)).entries.map((entry: any) => [entry.event_type, entry.lineage.org_id]),
    ).toEqual([
      ['ActionAllowed', 'ours'],
      ['ApiKeyCreated', 'ours'],
    ]);
    expect(await logs('org_id=theirs', ours)).toMatchObject({ status: 403, code: 'org_forbidden' });
  });

  test('an export is the log line by line, or a table', async () => {
    await check('export', 'a,"b"');
    const ndjson = await gateway.call('GET', '/api/v1/logs/export');
    expect(ndjson.headers.get('content-type')).toBe('application/x-ndjson');
    const lines = ndjson.body
      .trimEnd()
      .split('\n')
      .map((line: string) => JSON.parse(line));
    expect(lines).toEqual(auditEntries(gateway.dataDir).reverse());
    const csv = await gateway.call('GET', '/api/v1/logs/export?format=csv&org_id=export');
    expect(csv.headers.get('content-disposition')).toBe('attachment; filename="audit.csv"');
    const [header, row] = csv.body.split('\r\n');
    expect(header).toBe(
      'id,timestamp,event_type,org_id,team_id,agent_id,op_id,decision,reason,policy,rule_id,cause,actor,payload,prev_hash,hash',
    );
    expect(row).toContain(',ActionAllowed,export,search,"a,""b""",');
    expect((await gateway.call('GET', '/api/v1/logs/export?org_id=theirs', undefined, await key('acme'))).status).toBe(
      403,
    );
  });

  test('a reader that stalls in a long export costs no memory and gets all of it', async () => {
    const ENTRIES = 100_000;
    const dataDir = mkdtempSync(join(tmpdir(), 'svc-export-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    writeLog(join(dataDir, 'data', 'audit'), ENTRIES);
    const big = await startTestGateway({ dataDir });
    onTestFinished(async () => {
      await big.stop('SIGKILL');
    });
    await big.call('GET', '/api/v1/logs?org_id=nobody'); // builds the indexes
    const beforeMib = residentMib(big.process.pid);
    const { port } = new URL(big.url);
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(
      `GET /api/v1/logs/export HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${ADMIN_KEY}\r\nConnection: close\r\n\r\n`,
    );
    let feeds = 0;
    let tail = '';
    const count = (chunk: Buffer): void => {
      for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) feeds += 1;
      tail = (tail + chunk.toString('latin1')).slice(-64);
    };
    await new Promise((resolve) =>
      socket.once('data', (chunk) => {
        count(chunk);
        socket.pause();
        resolve(undefined);
      }),
    );
    await sleep(1_500); // the time in which it could fill its memory
    expect(residentMib(big.process.pid) - beforeMib).toBeLessThan(48);
    expect((await big.call('GET', '/api/v1/logs?per_page=1')).status).toBe(200);
    socket.on('data', count);
    socket.resume();
    // Chunked: the end is a chunk of no bytes. The server keeps the connection open.
    await new Promise<void>((resolve, reject) => {
      const look = setInterval(() => {
        if (tail.endsWith('\r\n0\r\n\r\n')) {
          clearInterval(look);
          resolve();
        }
      }, 20);
      socket.once('close', () => {
        clearInterval(look);
        if (tail.endsWith('0\r\n\r\n')) resolve();
        else reject(new Error('the export was cut'));
      });
    });
    socket.destroy();
    expect(feeds).toBeGreaterThan(ENTRIES); // and some more of the frame around them
  });

  test('an export is cut off when its credential ends, so that no part seems whole', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'svc-export-'));
    onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }));
    writeLog(join(dataDir, 'data', 'audit'), 60_000);
    const big = await startTestGateway({ dataDir });
    onTestFinished(async () => {
      await big.stop('SIGKILL');
    });
    const { key: bearer, id } = (await big.call('POST', '/api/v1/iam/api-keys', { name: 'reader', scopes: ['read'] }))
      .body;
    const socket = connect(Number(new URL(big.url).port), '127.0.0.1');
    socket.write(`GET /api/v1/logs/export HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${bearer}\r\n\r\n`);
    await new Promise((resolve) =>
      socket.once('data', () => {
        socket.pause();
        resolve(undefined);
      }),
    );
    expect((await big.call('POST', `/api/v1/iam/api-keys/${id}/revoke`)).status).toBe(204);
    let tail = '';
    socket.on('data', (chunk: Buffer) => {
      tail = (tail + chunk.toString('latin1')).slice(-64);
    });
    const closed = new Promise((resolve) => socket.once('close', resolve));
    socket.resume();
    await closed;
    expect(tail.endsWith('\r\n0\r\n\r\n')).toBe(false);
    await eventually(() =>
      expect(big.output.stderr).toMatch(
        /"level":"warn".*"reason":"the credential is unknown, revoked or expired".*"the answer to GET \/api\/v1\/logs\/export was cut off"/,
      ),
    );
  });

  function writeLog(directory: string, entries: number): void {
    const opened = openAuditWriter({ directory, fsync: 'never', nowMs: Date.now });
    if (!opened.ok) throw new Error('the log is locked');
    const draft = {
      eventType: 'ActionAllowed',
      lineage: { orgId: 'acme', teamId: 'search', agentId: 'crawler' },
      actor: 'agent:acme/search/crawler',
      payload: { note: 'x'.repeat(300) },
    } as const;
    const body = encodeDraft(draft, Date.now());
    for (let written = 0; written < entries; written += 1_000)
      opened.value.writer.append(Array.from({ length: 1_000 }, () => body).join('\n'), 1_000);
    opened.value.writer.close();
  }
});

/**
 * The examples in Go and Java: generated, compiled and run at a real gateway, by the commands that their pages have.
 * Run by `npm run test:frameworks -- go java`: compilers and libraries come from the network.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, onTestFinished, test } from 'vitest';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { ADMIN_KEY, startTestGateway, type TestGateway } from '../support/gateway.ts';

const POLICY = join(PACKAGE_ROOT, 'examples', 'policies', 'support-agent.yaml');
const BUF = join(PACKAGE_ROOT, 'node_modules', '.bin', 'buf');
const LANGUAGES = [
  ['Go', 'go.md', 'go run -C examples/go .', ['go', 'version']],
  ['Java', 'java.md', 'mvn -q -f examples/java/pom.xml compile exec:java', ['mvn', '-version']],
] as const;
const isThere = ([command, option]: readonly [string, string]): boolean =>
  spawnSync(command, [option], { stdio: 'ignore' }).status === 0;

function start(command: string, grpc: string) {
  const env = { ...process.env, SVC_GRPC_ADDR: grpc, SVC_API_KEY: ADMIN_KEY };
  const agent = spawn('bash', ['-c', command], { cwd: PACKAGE_ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void agent.kill('SIGKILL'));
  let output = '';
  let errors = '';
  agent.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  agent.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  return new Promise<{ status: number | null; lines: string[]; errors: string }>((resolve) =>
    // Maven sets the colours of the terminal back at its end.
    agent.once('close', (status) => resolve({ status, lines: plain(output).split('\n'), errors: plain(errors) })),
  );
}

const plain = (text: string): string => stripVTControlCharacters(text).trimEnd();

async function governed(): Promise<TestGateway> {
  const gateway = await startTestGateway({ env: { SVC_POLICY_PATH: POLICY } });
  onTestFinished(async () => void (await gateway.stop('SIGKILL')));
  return gateway;
}

async function decide(gateway: TestGateway, decision: 'approve' | 'deny'): Promise<void> {
  const { key } = (await gateway.call('POST', '/api/v1/iam/api-keys', { name: 'boss', scopes: ['admin'] })).body;
  const id = await eventually(async () => {
    const { approvals } = (await gateway.call('GET', '/api/v1/approvals?state=pending')).body;
    return approvals[0].id as string;
  });
  await gateway.call('POST', `/api/v1/approvals/${id}/${decision}`, { reason: 'said' }, key);
}

const BEFORE = [
  'DENIED no single action over 5 dollars (rule no-single-large-cost of policy spending)',
  'INSTEAD split the work, or use a smaller model',
  'refunded 30 of o-17',
  'waiting for a person to decide about 100 USD',
];

describe.each(LANGUAGES)('the example in %s', (_name, page, command, compiler) => {
  const withCompiler = test.skipIf(!isThere(compiler));

  withCompiler('runs by the command of its page, and refunds what a person approves', async () => {
    expect(readFileSync(join(PACKAGE_ROOT, 'docs', page), 'utf8')).toContain(`SVC_API_KEY=svc_… ${command}\n`);
    const gateway = await governed();
    const ended = start(command, gateway.grpc);
    await decide(gateway, 'approve');
    expect(await ended).toEqual({ status: 0, lines: [...BEFORE, 'refunded 100 of o-17'], errors: '' });
    const { entries } = (await gateway.call('GET', '/api/v1/logs?event_type=OpCompleted')).body;
    expect(entries.map((each: { payload: { outcome: string } }) => each.payload.outcome)).toEqual([
      'success',
      'success',
    ]);
  });

  withCompiler('refunds nothing that a person denies', async () => {
    const gateway = await governed();
    const ended = start(command, gateway.grpc);
    await decide(gateway, 'deny');
    const { status, lines } = await ended;
    expect({ status, lines }).toEqual({ status: 0, lines: [...BEFORE, expect.stringMatching(/^DENIED .*said/)] });
  });

  withCompiler('does nothing where no gateway answers', async () => {
    const { status, lines, errors } = await start(command, `127.0.0.1:${await freePort()}`);
    expect({ status, lines }).toEqual({ status: 1, lines: [''] });
    expect(errors).toMatch(/deadline/i);
  });
});

/** The files of a folder, by their paths in it. */
function filesIn(folder: string, ending: string): Record<string, string> {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith(ending));
  return Object.fromEntries(paths.sort().map((path) => [path, readFileSync(join(folder, path), 'utf8')]));
}

const namesIn = (folder: string): string[] => Object.keys(filesIn(folder, '.java'));

function generated(options: readonly string[], path = ''): string {
  const folder = mkdtempSync(join(tmpdir(), 'svc-buf-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const env = { ...process.env, PATH: `${path}${delimiter}${process.env.PATH}` };
  execFileSync(BUF, ['generate', '-o', folder, ...options], { cwd: PACKAGE_ROOT, env, stdio: 'pipe' });
  return folder;
}

describe('generated client code', () => {
  test.skipIf(!isThere(['go', 'version']))('in Go is what buf makes of the proto folder, and has no faults', () => {
    const folder = generated([]);
    const own = join(PACKAGE_ROOT, 'examples', 'go');
    expect(filesIn(join(folder, 'examples', 'go', 'gen'), '.go')).toEqual(filesIn(join(own, 'gen'), '.go'));
    execFileSync('go', ['vet', './...'], { cwd: own, stdio: 'pipe' });
    expect(execFileSync('gofmt', ['-l', 'main.go', 'gateway'], { cwd: own, encoding: 'utf8' })).toBe('');
  });

  test.skipIf(!isThere(['mvn', '-version']))('in Java is of the same classes by Maven and by buf', () => {
    execFileSync('mvn', ['-q', '-f', 'examples/java/pom.xml', 'compile'], { cwd: PACKAGE_ROOT, stdio: 'pipe' });
    const target = join(PACKAGE_ROOT, 'examples', 'java', 'target');
    const programs = mkdtempSync(join(tmpdir(), 'svc-protoc-'));
    onTestFinished(() => rmSync(programs, { recursive: true, force: true }));
    // Maven has fetched both, and put them there.
    const fetched = join(target, 'protoc-plugins');
    for (const file of readdirSync(fetched))
      symlinkSync(join(fetched, file), join(programs, /^[a-z-]*[a-z]/.exec(file)![0]));
    const folder = generated(['--template', 'examples/java/buf.gen.yaml'], programs);
    const ofMaven = join(target, 'generated-sources', 'protobuf');
    const classes = [...namesIn(join(ofMaven, 'java')), ...namesIn(join(ofMaven, 'grpc-java'))].sort();
    expect(classes).toContain('svc/governance/v1/PolicyServiceGrpc.java');
    expect(namesIn(join(folder, 'examples', 'java', 'gen'))).toEqual(classes);
  });
});

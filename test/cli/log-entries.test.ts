import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliHome, type CliOptions, createCliHome } from '../support/cli.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

let gateway: GatewayHere;
let cli: CliHome;

describe('log entries', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
    cli = createCliHome();
  });
  afterAll(async () => {
    await gateway.stop();
    cli.remove();
  });

  const svc = (command: string, { env }: CliOptions = {}) =>
    cli.run(command.split(' '), { env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY, ...env } });
  const json = async (command: string) => JSON.parse((await svc(`${command} -o json`)).stdout);

  /** The entries from their events on, with two spaces between the parts. */
  const entriesOf = async (command: string): Promise<string> =>
    (await svc(`${command} --no-headers`)).stdout.replace(/ {3,}/g, '  ').replace(/^\S+ {2}\d+ {2}/gm, '');

  test('the log is a table, of whole cells in CSV, and of the columns that are asked for', async () => {
    await svc('agents register acme/table/a1');
    await svc('check --agent acme/table/a1 --action mail.send --op table:1');
    const [heading, first] = (await svc('logs --team table')).stdout.split('\n');
    expect(heading).toMatch(/^TIME +ID +EVENT +WHO +OPERATION +WHAT$/);
    expect(first!.indexOf('acme/table/a1')).toBe(heading!.indexOf('WHO'));
    const csv = await svc('logs --team table --event ActionDenied --output csv --columns operation,what');
    expect(csv.stdout).toMatch(
      /^operation,what\ntable:1,mail\.send {2}no policy allows mail\.send for acme\/table\/a1 {2}by key:\S+\n$/,
    );
    expect(await svc('logs --columns when')).toEqual({
      status: 2,
      stdout: '',
      stderr: 'error: there is no column when\nThe columns are time, id, event, who, operation, what.\n',
    });
    expect((await svc('status --output csv')).stderr).toContain(
      'error: --output csv is for lists, such as svc ops ls, and this command prints none',
    );
  });

  test('the log says who acted, where that was not the agent', async () => {
    const own = { env: { SVC_CLI_AGENT_TOKEN: 'the-token-of-a1-0123456789-0123456789-0123' } };
    await svc('agents register acme/by/a1', own);
    await svc('check --agent acme/by/a1 --action tool.call --resource web_search --op by:1', own);
    await svc('ops pause by:1');
    expect(await entriesOf('logs --op by:1')).toMatch(
      /^ActionAllowed {2}acme\/by\/a1 {2}by:1 {2}tool\.call web_search {2}allowed by rule harmless-tools of policy starter\nOpPaused {2}acme\/by\/a1 {2}by:1 {2}by key:\S+\n$/,
    );
  });

  test('the log says what was done to what, and both agents of a check', async () => {
    const own = { env: { SVC_CLI_AGENT_TOKEN: 'the-token-of-did-a1-0123456789-0123456789' } };
    await svc('agents register acme/did/a1', own);
    await svc('agents register acme/did/a2');
    await svc('check --agent acme/did/a1 --action mail.send --op did:1', own);
    await svc(
      'check --agent acme/did/a1 --action tool.call --resource web_search --caller acme/did/a2 --op did:2',
      own,
    );
    await svc('check --agent acme/did/a2 --action tool.call --resource web_search --op did:3', own);
    await svc('check --agent acme/did/a1 --action tool.call --resource web_search --op did:4 --dry-run', own);
    expect((await entriesOf('logs --team did --since 5m')).replace(/^AgentRegistered.*\n/gm, '')).toBe(
      'ActionDenied  acme/did/a1  did:1  mail.send  no policy allows mail.send for acme/did/a1\n' +
        'A2ACallIntercepted  acme/did/a1  did:2  tool.call web_search  called by acme/did/a2  allowed by rule harmless-tools of policy starter\n' +
        'A2AImpersonationAttempted  acme/did/a1  did:3  tool.call web_search  as acme/did/a2  the credential token is registered to a different agent\n' +
        'ActionAllowed  acme/did/a1  did:4  tool.call web_search  dry run  allowed by rule harmless-tools of policy starter\n',
    );
  });

  test('entries without an agent show their subject, as the created key and scopes', async () => {
    await svc('keys create deploy --scope read --scope write');
    await svc('agents register acme/about/a1');
    expect(await entriesOf('logs --event ApiKeyCreated --limit 1')).toMatch(
      /^ApiKeyCreated {2}key:\S+ {2}- {2}key_id [^ ,]+, name deploy, scopes read write\n$/,
    );
    expect(await entriesOf('logs --team about')).toMatch(
      /^AgentRegistered {2}acme\/about\/a1 {2}- {2}rotated false {2}by key:\S+\n$/,
    );
  });

  test('the log is searched and exported by credential or agent', async () => {
    await svc('agents register acme/actors/a1');
    const { actor } = (await json('logs --team actors --event AgentRegistered')).entries[0];
    await svc('check --agent acme/actors/a1 --action tool.call --op actors:1', {
      env: { SVC_CLI_AGENT_TOKEN: 'nobody-has-this-token-0123456789-0123456789' },
    });
    const events = async (who: string) =>
      (await json(`logs --team actors --actor ${who}`)).entries.map(
        ({ event_type: event }: { event_type: string }) => event,
      );
    expect({
      eventsActor: await events(actor),
      eventsAnonymous: await events('anonymous'),
      eventsKeyAnother: await events('key:another'),
    }).toEqual({ eventsActor: ['AgentRegistered'], eventsAnonymous: ['ActionDenied'], eventsKeyAnother: [] });
    const exported = await svc(`audit export --team actors --actor ${actor}`);
    expect(
      exported.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).event_type),
    ).toEqual(['AgentRegistered']);
    expect(await svc(`audit export --team actors --actor ${actor} --dir ${gateway.dataDir}`)).toEqual(exported);
  });
});

/** The commands of the handbook's incidents: each is one that `svc` takes, and those that need nothing else work. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { COMMANDS, GROUPS } from '../../src/cli/commands.ts';
import { parseCommandLine } from '../../src/cli/program.ts';
import { AUDIT_EVENTS } from '../../src/core/audit/audit.ts';
import { PACKAGE_ROOT } from '../../src/system/package-files.ts';
import { type CliHome, createCliHome } from '../support/cli.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

const HANDBOOK = readFileSync(join(PACKAGE_ROOT, 'docs', 'operations.md'), 'utf8');
const INCIDENTS = HANDBOOK.slice(
  HANDBOOK.indexOf('## An agent that must be stopped\n'),
  HANDBOOK.indexOf('\n## Backup'),
);

/** As a shell splits it, up to a pipe or a redirection. */
const wordsOf = (line: string): string[] =>
  [...line.split(/ [|>] /)[0]!.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, one, two, three]) => one ?? two ?? three!,
  );

const linesIn = (text: string): string[] =>
  [...text.matchAll(/^ *```sh\n(.*?)^ *```$/gms)]
    .flatMap(([, block = '']) => block.split('\n').map((line) => line.replace(/ +#.*/, '').trim()))
    .filter((line) => line.startsWith('svc '));

describe('the runbook', () => {
  test('names commands and options that there are, in the whole handbook', async () => {
    const lines = linesIn(HANDBOOK);
    expect(lines.length).toBeGreaterThan(40);
    const wrong: string[] = [];
    for (const line of lines) {
      const parsed = await parseCommandLine(COMMANDS, GROUPS, wordsOf(line).slice(1));
      if (parsed.kind !== 'command') wrong.push(line);
    }
    expect(wrong).toEqual([]);
  });

  test('names events that there are', () => {
    const events = [...INCIDENTS.matchAll(/--event (\w+)/g)].map(([, event]) => event);
    expect(events.filter((event) => !AUDIT_EVENTS.some((known) => known === event))).toEqual([]);
  });

  test('says what to do in each incident with a halt, statistics or approvals', () => {
    for (const command of [
      'svc halt lineage:',
      'svc halt org:',
      'svc stats',
      'svc approvals deny',
      'svc halts release',
    ])
      expect(INCIDENTS).toContain(command);
  });

  describe('works as it stands', () => {
    let gateway: GatewayHere;
    let home: CliHome;
    beforeAll(async () => {
      gateway = await startGatewayHere();
      home = createCliHome();
      const agent = { org_id: 'acme', team_id: 'search', agent_id: 'crawler' };
      await gateway.call('POST', '/api/v1/agents', { agent });
    });
    afterAll(async () => {
      home.remove();
      await gateway.stop();
    });

    const READY = linesIn(INCIDENTS).filter((line) => !/<|\.\/|publish|keys create|rotate/.test(line));
    test.each(READY)('%s', async (line) => {
      const { status, stderr } = await home.run(wordsOf(line).slice(1), {
        env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY },
      });
      expect({ status, stderr }).toMatchObject({ status: 0 });
    });
  });
});

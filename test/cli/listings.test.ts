import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type CliHome, createCliHome } from '../support/cli.ts';
import { ADMIN_KEY } from '../support/gateway.ts';
import { type GatewayHere, startGatewayHere } from '../support/gateway-here.ts';

let gateway: GatewayHere;
let cli: CliHome;

describe('listings', () => {
  beforeAll(async () => {
    gateway = await startGatewayHere();
    cli = createCliHome();
  });
  afterAll(async () => {
    await gateway.stop();
    cli.remove();
  });

  const svc = (command: string) =>
    cli.run(command.split(' '), { env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY } });

  test.each<readonly [string, string]>([
    ['context ls', 'context,in use,gateway,key,session'],
    ['ops ls', 'operation,state,agent,action,resource,since'],
    ['agents ls', 'agent,parent,ops,seen,age'],
    ['halts ls', 'id,scope,actions,mode,age,ends in,by,reason'],
    ['approvals ls', 'id,state,agent,action,resource,expires'],
    ['logs', 'time,id,event,who,operation,what'],
    ['changes', 'age,kind,what,by,entry'],
    ['budgets ls', 'tier,of,today,this month,reserved,day left'],
    ['limits ls', 'policy,limit,per,key,unit,used,of,reserved,raised,resets'],
    ['keys ls', 'id,name,scopes,org,state,used,age'],
    ['webhooks ls', 'id,url,events,org,state,waiting,age,made by'],
    ['policy ls', 'policy,scope,rules,file'],
    ['policy rules', 'policy,rule,effect,actions,resources,when,approval,obliges to'],
    ['policy history', 'version,state,since,until,documents,rules,by'],
    ['audit sinks ls', 'name,type,format,to,sent,lag,lost,trouble'],
    ['mcp pins ls', 'server,tool,state,pinned,sha-256'],
    ['serve --print-config', 'setting,value,source'],
  ])('svc %s takes csv, --columns and --no-headers', async (command, columns) => {
    const { status, stdout } = await svc(`${command} -o csv`);
    expect({ status, heading: stdout.split('\n')[0] }).toEqual({ status: 0, heading: columns });
    const [first = ''] = columns.split(',');
    const bare = await svc(`${command} -o csv --no-headers --columns ${first}`);
    expect(bare.status).toBe(0);
    expect(bare.stdout).not.toContain(`${first}\n`);
    expect(await svc(`${command} --columns ${first},nonsense`)).toMatchObject({
      status: 2,
      stderr: expect.stringMatching(/^error: there is no column nonsense\n/),
    });
  });

  test('a followed log takes them, too', async () => {
    await svc('agents register acme/follow/a1');
    await svc('check --agent acme/follow/a1 --action tool.call --resource web_search --op follow:1');
    const terminal = cli.inTerminal(['logs', '-f', '--op', 'follow:1', '-o', 'csv', '--columns', 'event,operation'], {
      env: { SVC_CLI_API_URL: gateway.url, SVC_CLI_API_KEY: ADMIN_KEY },
    });
    await terminal.until(/^event,operation\r\nActionAllowed,follow:1\r\n$/);
    terminal.type('\u0003');
    await terminal.ended;
  });
});

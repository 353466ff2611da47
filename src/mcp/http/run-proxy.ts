/** `svc mcp proxy` from its start to its end by a signal. */
import { agentNamed, gatewayIn } from '../../client/environment.ts';
import { pinsPath } from '../pin-store.ts';
import { readProxyConfig } from '../proxy-config.ts';
import { startProxy } from './proxy.ts';

export async function runProxy(
  configPath: string,
  env: NodeJS.ProcessEnv,
  note: (text: string) => void,
): Promise<void> {
  const config = await readProxyConfig(configPath, env);
  const log = (line: string): void => note(`svc mcp proxy: ${line}`);
  const proxy = await startProxy({
    address: gatewayIn(env),
    config,
    agent: env.SVC_AGENT ? agentNamed(env.SVC_AGENT) : undefined,
    pinsPath: pinsPath(env),
    log,
  });
  note(`MCP servers at ${proxy.url}/mcp${config.upstreams.map(({ name }) => `, ${proxy.url}/mcp/${name}`).join('')}`);
  if (!/^(127\.|localhost$|::1$)/.test(config.host))
    log(`it listens on ${config.host} without TLS: put a proxy that has it in front, or credentials can be read`);
  await new Promise<void>((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve());
  });
  await proxy.close();
}

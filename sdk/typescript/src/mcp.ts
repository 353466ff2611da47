/**
 * MCP servers of `@modelcontextprotocol/sdk`: `guardServer(agent, server)`, before their tools are
 * registered.
 *
 * Each call of a tool is `mcp.call` on `<server>/<tool>`. A denial is a result with `isError` and the reason. An
 * approval holds the call, up to `deadlines.approvalMs` of the client.
 */
import type { AgentClient } from './client.ts';
import { callTool } from './tool-gate.ts';

type Handler = (...args: unknown[]) => unknown;
type AnyServer = {
  registerTool(name: string, config: never, handler: never): unknown;
  readonly _registeredTools?: object;
  readonly server?: { readonly _serverInfo?: { readonly name: string } };
};

export type GuardServerOptions = {
  /** In the names of resources. Default: the server's own. */
  readonly name?: string | undefined;
};

type Result = { readonly isError?: boolean; readonly content?: readonly { readonly text?: string }[] };

/** The same server. Throws a TypeError where it has tools already, which would not be checked. */
export function guardServer<Server extends { registerTool: unknown }>(
  agent: AgentClient,
  server: Server,
  options: GuardServerOptions = {},
): Server {
  const target = server as unknown as AnyServer & { tool?: unknown };
  if (Object.keys(target._registeredTools ?? {}).length > 0)
    throw new TypeError('the server has tools already: call guardServer before they are registered');
  const serverName = options.name ?? target.server?._serverInfo?.name;
  if (serverName === undefined) throw new TypeError('the server says no name of its own: pass { name }');
  const register = target.registerTool.bind(target);
  const guardedRegister = (name: string, config: { readonly inputSchema?: unknown }, handler: unknown): unknown => {
    // A tool that runs as a task has no one call to put a check before.
    if (typeof handler !== 'function') throw new TypeError(`${name} is not a function, and cannot be guarded`);
    const hasArguments = config.inputSchema !== undefined;
    const guarded: Handler = async (...given) => {
      const call = {
        action: 'mcp.call',
        name: `${serverName}/${name}`,
        args: hasArguments ? given[0] : {},
        session: crypto.randomUUID(),
        callId: crypto.randomUUID(),
      };
      let failure: Result | undefined;
      const run = async (args: never): Promise<unknown> => {
        const result = (await (handler as Handler)(...(hasArguments ? [args, ...given.slice(1)] : given))) as Result;
        if (result?.isError !== true) return result;
        failure = result;
        throw new Error(result.content?.[0]?.text ?? 'the tool has failed');
      };
      try {
        const called = await callTool(agent, call, run, 'wait');
        return called.kind === 'done'
          ? called.value
          : { isError: true, content: [{ type: 'text', text: called.text }] };
      } catch (error) {
        if (failure !== undefined) return failure;
        throw error;
      }
    };
    return register(name, config as never, guarded as never);
  };
  Object.assign(target, { registerTool: guardedRegister });
  if (typeof target.tool === 'function')
    Object.assign(target, {
      tool: () => {
        throw new TypeError('a guarded server takes its tools by registerTool');
      },
    });
  return server;
}

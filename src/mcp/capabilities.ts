/** Merges the capabilities of servers for an agent, and reduces those of its client for them. */
import { isMapping } from '../core/base/mapping.ts';
import type { Fields } from './json-rpc.ts';

/** Results of tasks come by other ways than those that are checked, so nobody is notified of them. */
export function withoutTasks(capabilities: unknown): Fields {
  if (!isMapping(capabilities)) return {};
  const { tasks: _, extensions, ...rest } = capabilities;
  if (!isMapping(extensions)) return rest;
  const { 'io.modelcontextprotocol/tasks': __, ...others } = extensions;
  return { ...rest, extensions: others };
}

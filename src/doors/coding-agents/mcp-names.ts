/** Names of tools of MCP servers, as coding agents write them. */
import { ok } from '../../core/base/result.ts';
import { invalid } from '../../core/fault.ts';
import type { Read } from './tool.ts';

export const MCP_NAME = /^mcp__.+__.+$/s;

const PREFIX = 'mcp__';
const MAX_READINGS = 8;

/**
 * The server and the tool that `mcp__<server>__<tool>` names. Both may have `__` in them, so `mcp__a__b__c` is the tool
 * `b__c` of `a`, or `c` of `a__b`: each reading is one.
 */
export function readingsOf(name: string): Read<readonly (readonly [server: string, tool: string])[]> {
  const rest = name.slice(PREFIX.length);
  const readings: (readonly [string, string])[] = [];
  for (let at = rest.indexOf('__', 1); at !== -1 && at + 2 < rest.length; at = rest.indexOf('__', at + 1)) {
    if (readings.length === MAX_READINGS)
      return invalid('tool_name', `must not be readable in more than ${MAX_READINGS} ways; use fewer __ in it`);
    readings.push([rest.slice(0, at), rest.slice(at + 2)]);
  }
  return ok(readings);
}

/**
 * The server of a command: all of it, as rules name it. A path that depends on a folder may be any program, and would
 * read like the name of another server and its tool.
 */
export function serverOfCommand(command: string): string {
  const whole = command.trim();
  const [program = ''] = whole.split(/\s+/);
  const isNamed = !/[\\/]/.test(program) || /^(?:\/|[A-Za-z]:[\\/])/.test(program);
  return whole === '' || !isNamed ? 'unknown' : whole;
}

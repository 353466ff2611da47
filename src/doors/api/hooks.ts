/** Hooks of coding agents (docs/hooks.md). */
import { z } from 'zod';
import { ok } from '../../core/base/result.ts';
import { claudeCode } from '../coding-agents/claude-code.ts';
import { codex } from '../coding-agents/codex.ts';
import { copilot } from '../coding-agents/copilot.ts';
import { cursor } from '../coding-agents/cursor.ts';
import { HookDoor } from '../coding-agents/door.ts';
import { gemini } from '../coding-agents/gemini.ts';
import type { Holds } from '../coding-agents/holds.ts';
import type { HookTool } from '../coding-agents/tool.ts';
import { giveUp, jsonOf } from '../engine/raw-body.ts';
import type { Route } from '../engine/route.ts';
import type { WirePorts } from '../rpc/ports.ts';

export type HookRouteOptions = { readonly holds: Holds };

const TITLES: readonly { readonly tool: HookTool; readonly title: string }[] = [
  { tool: claudeCode, title: 'Claude Code' },
  { tool: codex, title: 'Codex' },
  { tool: cursor, title: 'Cursor' },
  { tool: copilot, title: 'GitHub Copilot' },
  { tool: gemini, title: 'Gemini CLI' },
];

const hookInput = z.looseObject({}).meta({ description: 'The event, as the coding agent sends it to its hooks.' });
const hookAnswer = z.looseObject({}).meta({ description: 'The decision, in the fields that the coding agent knows.' });

export function hookRoutes({ holds }: HookRouteOptions): readonly Route[] {
  let door: HookDoor | undefined;
  const doorFor = (ports: WirePorts): HookDoor => (door ??= new HookDoor(ports, holds));
  return TITLES.map(
    ({ tool, title }): Route => ({
      method: 'post',
      path: `/api/v1/hooks/${tool.name}`,
      access: 'agent',
      limit: 'none',
      summary: `Answers a hook of ${title} before or after a tool call`,
      body: hookInput,
      answers: { 200: hookAnswer },
      // Without `async`, and the body is given up: the answer may be held for long.
      handle: (request, ports) => {
        const { headers, caller } = request;
        const body = jsonOf(request);
        giveUp(request.body);
        return doorFor(ports)
          .answer(tool, { headers, caller, body })
          .then((answered) => (answered.ok ? ok({ status: 200, body: answered.value }) : answered));
      },
    }),
  );
}

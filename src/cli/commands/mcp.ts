/** `svc mcp guard|proxy|pins`: policy, approvals and operators' control for MCP servers. */
import { credentialIn, gatewayIn } from '../../client/environment.ts';
import { WayError } from '../../client/faults.ts';
import { PinStore, pinsPath } from '../../mcp/pin-store.ts';
import { accept, reset } from '../../mcp/pins.ts';
import { isServerName, SERVER_NAME_RULE } from '../../mcp/subjects.ts';
import { CliError, EXIT, type ExitStatus, usageError } from '../errors.ts';
import type { Run } from '../invocation.ts';
import { note, showTable } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import type { Column } from '../terminal/table.ts';

export const guard: Run = async ({ args, options, env }) => {
  const server = options.text('server');
  if (server !== undefined && !isServerName(server)) throw usageError(SERVER_NAME_RULE);
  return explained(async () => {
    const settings = { address: gatewayIn(env), credential: credentialIn(env, options.text('agent')) };
    const { guard: stand } = await import('../../mcp/guard.ts');
    const status = await stand({ ...settings, server, command: args, pinsPath: pinsPath(env) });
    return status === 0 ? EXIT.done : EXIT.failed;
  });
};

export const proxy: Run = async ({ args, env }) =>
  explained(async () => {
    const { runProxy } = await import('../../mcp/http/run-proxy.ts');
    await runProxy(args[0] ?? '', env, note);
    return EXIT.done;
  });

const COLUMNS: readonly Column[] = [
  { title: 'SERVER', cell: 'server', isWhole: true },
  { title: 'TOOL', cell: 'tool', isWhole: true },
  { title: 'STATE', cell: 'state' },
  { title: 'PINNED', cell: 'pinned_at' },
  { title: 'SHA-256', cell: 'digest' },
];

export const pins: Run = async ({ args, globals, env }) => {
  const [verb, server, tool] = args;
  return explained(async () => {
    const store = new PinStore(pinsPath(env));
    if (verb === 'ls') {
      const rows = [...store.pins]
        .filter(([name]) => server === undefined || name === server)
        .flatMap(([name, tools]) =>
          [...tools].map(([tool, { digest, pinnedAt, seen }]) => ({
            server: name,
            tool,
            state: seen === undefined ? 'pinned' : 'changed',
            pinned_at: pinnedAt,
            digest,
            seen: seen ?? null,
          })),
        );
      await showTable(globals, { value: { pins: rows }, columns: COLUMNS, rows, none: 'No tools are pinned.' });
      return EXIT.done;
    }
    if (verb !== 'accept' && verb !== 'reset')
      throw usageError(
        'svc mcp pins takes ls, accept or reset',
        'For example: svc mcp pins accept github create_issue',
      );
    if (server === undefined) throw usageError(`svc mcp pins ${verb} needs the name of a server`);
    const known = store.pins.get(server);
    if (known === undefined || (tool !== undefined && !known.has(tool)))
      throw new CliError(
        `nothing is pinned for ${printable(tool === undefined ? server : `${server}/${tool}`)}`,
        'See `svc mcp pins ls`.',
      );
    const now = new Date();
    await store.change((all) => (verb === 'accept' ? accept(all, server, tool, now) : reset(all, server, tool)));
    note(`${verb === 'accept' ? 'Accepted' : 'Reset'} the pins of ${printable(tool ?? server)}.`);
    return EXIT.done;
  });
};

/** Mistakes in settings and files are shown as those of any command. */
async function explained(work: () => Promise<ExitStatus>): Promise<ExitStatus> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof WayError) throw new CliError(error.message, error.advice, { cause: error });
    throw error;
  }
}

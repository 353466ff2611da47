/** `svc logout`: forgets the session of this context; the API key stays good (spec: CLI commands, logout). */
import type { Invocation } from '../invocation.ts';
import { show } from '../output.ts';
import { removeSession } from '../session-file.ts';
import { resolveTarget } from '../target.ts';

export async function run({ globals, env }: Invocation): Promise<void> {
  const { label } = await resolveTarget(globals, env);
  const wasLoggedIn = await removeSession(label);
  await show(globals.output, { context: label, was_logged_in: wasLoggedIn }, () => [
    wasLoggedIn ? `Logged out of ${label}.` : `Not logged in to ${label}; there is nothing to do.`,
  ]);
}

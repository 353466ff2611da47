/** `svc login [--scope <read|write|admin>]` (docs/spec.md, Login). */
import { CliError } from '../errors.ts';
import type { Invocation } from '../invocation.ts';
import { exchangeKey } from '../remote/session.ts';
import { putSession, removeSession, type Session } from '../remote/session-file.ts';
import { enteredKey, isSentInClear, resolveTarget, type Target } from '../remote/target.ts';
import { note, show } from '../terminal/output.ts';
import { printable } from '../terminal/printable.ts';
import { promptHidden } from '../terminal/prompt.ts';
import { coarse } from '../terminal/words.ts';

// `svc logout`: forgets the session of this context; the API key stays good (docs/spec.md, Logout).

export async function logout({ globals, env }: Invocation): Promise<void> {
  const { label } = await resolveTarget(globals, env);
  const wasLoggedIn = await removeSession(label);
  await show(globals.output, { context: label, was_logged_in: wasLoggedIn }, () => [
    wasLoggedIn ? `Logged out of ${label}.` : `Not logged in to ${label}; there is nothing to do.`,
  ]);
}

export async function run({ globals, env, options }: Invocation): Promise<void> {
  const target = await resolveTarget(globals, env);
  if (isSentInClear(target.apiUrl))
    note(`warning: ${target.apiUrl} is not encrypted; others on the network can read the key. Use https.`);
  const key =
    target.apiKey ?? enteredKey(await promptHidden('API key:'), 'Enter it at the prompt, or set SVC_CLI_API_KEY.');
  const scope = options.text('scope');
  const session = await obtain(target, key, scope === undefined ? undefined : [scope]);
  await putSession(target.label, session);
  const { scopes, expiresAtSecs } = session;
  await show(
    globals.output,
    { context: target.label, api_url: target.apiUrl, scopes, expires_at: expiresAtSecs },
    () => [
      printable(
        `Logged in to ${target.label} with ${scopes.join(', ')}; the session expires in about ${coarse(expiresAtSecs * 1000 - Date.now())}.`,
      ),
    ],
  );
}

async function obtain(target: Target, key: string, scopes: readonly string[] | undefined): Promise<Session> {
  const exchange = await exchangeKey(target, key, scopes);
  switch (exchange.kind) {
    case 'minted':
      return exchange.session;
    case 'rejected':
      throw new CliError(
        'authentication failed: the API key was rejected',
        `Check that it is a key for ${target.apiUrl}, complete and not revoked.`,
      );
    case 'forbidden':
      throw new CliError(exchange.detail, 'Omit --scope to get all scopes of the key.');
  }
}

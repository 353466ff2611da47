/** `svc whoami`: the session of this context, without its secrets (spec: CLI whoami projection). */
import { hintOf } from '../../core/api-key.ts';
import type { Invocation } from '../invocation.ts';
import { show } from '../output.ts';
import { readSession, type Session } from '../session-file.ts';
import { fieldLines } from '../table.ts';
import { resolveTarget, type Target } from '../target.ts';
import { coarse } from '../words.ts';

export async function run({ globals, env }: Invocation): Promise<void> {
  const target = await resolveTarget(globals, env);
  const session = await readSession(target.label, target.apiUrl);
  if (session === undefined)
    return show(globals.output, { logged_in: false }, () => [
      `Not logged in to ${target.label}. Run \`svc login\` to log in.`,
    ]);
  const projection = project(target, session, Date.now());
  await show(globals.output, projection, () =>
    fieldLines([
      ['context', projection.context],
      ['gateway', projection.api_url],
      ['scopes', projection.scopes.join(', ')],
      [
        'session',
        projection.expired
          ? 'expired; the next command renews it'
          : `expires in about ${coarse(projection.expires_in_secs * 1000)}`,
      ],
      ['key', projection.source_key_hint],
    ]),
  );
}

function project({ label, apiUrl }: Target, { scopes, expiresAtSecs, sourceKey }: Session, nowMs: number) {
  const leftSecs = Math.max(0, Math.floor(expiresAtSecs - nowMs / 1000));
  return {
    logged_in: true,
    context: label,
    api_url: apiUrl,
    scopes,
    expires_at: expiresAtSecs,
    expires_in_secs: leftSecs,
    expired: expiresAtSecs * 1000 <= nowMs,
    source_key_hint: hintOf(sourceKey),
  };
}

/** Orders of an operator at the console of a running gateway, without a credential: see `system/console.ts`. */
import { CONSOLE } from '../accounts/access.ts';
import { explain } from '../core/fault.ts';
import type { Principal } from '../core/identity/roles.ts';
import { serveConsole } from '../system/console.ts';
import type { StartContext } from './start-context.ts';
import type { Identity } from './start-identity.ts';

/** Who may write into the data directory is above every role. */
const OPERATOR: Principal = { subject: CONSOLE, scopes: ['admin'], orgId: null, role: 'owner' };

export function startConsole(
  { config, closers }: StartContext,
  { accounts }: Identity,
  onError: (error: unknown, doing: string) => void,
): void {
  if (accounts === undefined) return; // nothing to order
  const stop = serveConsole(
    config.SVC_DATA_DIR,
    async (order) => {
      const email = (order as { readonly reset?: unknown } | null)?.reset;
      if (typeof email !== 'string') throw new Error('the gateway does not know this order');
      const issued = await accounts.useCases.issuePasswordReset({ principal: OPERATOR, account: email });
      if (!issued.ok) throw new Error(explain(issued.fault));
      const { link, expiresAtMs } = issued.value;
      return { email: issued.value.email, link, expires_at: new Date(expiresAtMs).toISOString() };
    },
    (error) => onError(error, 'carrying out an order of the console'),
  );
  closers.add('the console', stop);
}

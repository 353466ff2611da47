/** The orders that an operator may give on the machine of a running gateway, without a credential. */

import { CONSOLE } from '../accounts/access.ts';
import type { AccountUseCases } from '../accounts/accounts.ts';
import { explain } from '../core/fault.ts';
import type { Principal } from '../core/identity/roles.ts';
import type { ConsoleAnswer } from './orders.ts';

/** Who may write into the data directory is above every role. */
const OPERATOR: Principal = { subject: CONSOLE, scopes: ['admin'], orgId: null, role: 'owner' };

/** Rejects with what the operator is to read. */
export const operatorOrders =
  ({ issuePasswordReset }: Pick<AccountUseCases, 'issuePasswordReset'>) =>
  async (order: unknown): Promise<ConsoleAnswer> => {
    const email = (order as { readonly reset?: unknown } | null)?.reset;
    if (typeof email !== 'string') throw new Error('the gateway does not know this order');
    const issued = await issuePasswordReset({ principal: OPERATOR, account: email });
    if (!issued.ok) throw new Error(explain(issued.fault));
    const { link, expiresAtMs } = issued.value;
    return { email: issued.value.email, link, expires_at: new Date(expiresAtMs).toISOString() };
  };

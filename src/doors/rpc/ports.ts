/** The I/O thread as the doors see it. */

import type { Result } from '../../core/base/result.ts';
import type { Fault } from '../../core/fault.ts';
import type { Principal } from '../../core/identity/roles.ts';
import type { LargeBatches } from '../../fairness/large-batches.ts';
import type { Link } from '../../use-cases/use-cases.ts';

export type WirePorts = {
  readonly link: Link & { /** Requests that wait for an answer. */ readonly pending: number };
  /**
   * `bearer` is the credential without the word before it: an API key or a token. Invalid tokens are counted per client
   * `address`.
   */
  readonly authenticate: (bearer: string, address?: string) => Promise<Result<Principal, Fault>>;
  /** Not counted by the link while they are being read. */
  readonly largeBatches: LargeBatches;
};

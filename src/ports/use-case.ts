import type { Result } from '../core/base/result.ts';
import type { Fault } from '../core/fault.ts';
import type { Principal } from '../core/identity/roles.ts';
import type { Unconfirmed } from './cluster.ts';

export type Authenticated = {
  readonly principal: Principal;
  /** Infinity for an API key without expiry. */
  readonly expiresAtMs: number;
};

export type UseCase<Input, Value> = (input: Input) => Promise<Result<Value, Fault> & Unconfirmed>;

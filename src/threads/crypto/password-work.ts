/** Hashes and verifies passwords. argon2 is named here and nowhere else. */
import { argon2id, hash, needsRehash, verify } from 'argon2';
import type { PasswordCost } from './tasks.ts';

const parametersOf = ({ memoryKib, iterations, parallelism }: PasswordCost) =>
  ({ type: argon2id, memoryCost: memoryKib, timeCost: iterations, parallelism }) as const;

export const hashPassword = (password: string, cost: PasswordCost): Promise<string> =>
  hash(password, parametersOf(cost));

export async function verifyPassword(
  stored: string,
  password: string,
  cost: PasswordCost,
): Promise<{ readonly matches: boolean; readonly rehash: boolean }> {
  const matches = await verify(stored, password);
  return { matches, rehash: !stored.startsWith('$argon2id$') || needsRehash(stored, parametersOf(cost)) };
}

import type { Fault } from '../core/fault.ts';
import { ok, type Result } from '../core/result.ts';
import type { ApiKeyStore } from './api-key-store.ts';

/**
 * Changes that the store of API keys does not have yet. Those that cannot be written now are written by a later call.
 */
export class UnsavedKeyChanges {
  readonly #store: Pick<ApiKeyStore, 'revoke' | 'touch'>;
  readonly #uses = new Map<string, number>();
  /** In force here, but neither in other gateways nor after a restart. */
  readonly #revocations = new Map<string, number>();

  constructor(store: Pick<ApiKeyStore, 'revoke' | 'touch'>) {
    this.#store = store;
  }

  noteUse(id: string, lastUsedAtMs: number): void {
    this.#uses.set(id, lastUsedAtMs);
  }

  noteRevocation(id: string, revokedAtMs: number): void {
    this.#revocations.set(id, revokedAtMs);
  }

  hasRevocationOf(id: string): boolean {
    return this.#revocations.has(id);
  }

  /** Succeeds when there is nothing to do. */
  async saveRevocation(id: string): Promise<Result<void, Fault>> {
    const revokedAtMs = this.#revocations.get(id);
    if (revokedAtMs === undefined) return ok(undefined);
    const saved = await this.#store.revoke(id, revokedAtMs);
    if (saved.ok) this.#revocations.delete(id);
    return saved;
  }

  async saveRevocations(): Promise<Result<void, Fault>> {
    for (const id of [...this.#revocations.keys()]) {
      const saved = await this.saveRevocation(id);
      if (!saved.ok) return saved;
    }
    return ok(undefined);
  }

  async saveUses(): Promise<Result<void, Fault>> {
    const uses = Array.from(this.#uses, ([id, lastUsedAtMs]) => ({ id, lastUsedAtMs }));
    if (uses.length === 0) return ok(undefined);
    const saved = await this.#store.touch(uses);
    // Not those of a key that was used again meanwhile.
    if (saved.ok)
      for (const { id, lastUsedAtMs } of uses) if (this.#uses.get(id) === lastUsedAtMs) this.#uses.delete(id);
    return saved;
  }
}

/** Expected failures are values; broken invariants throw. */
export type Result<T, F> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly fault: F };

export const ok = <T>(value: T) => ({ ok: true, value }) as const;
export const fail = <F>(fault: F) => ({ ok: false, fault }) as const;

/** States an invariant of the program. Never used for what a caller can get wrong. */
export function assert(condition: unknown, invariant: string): asserts condition {
  if (!condition) throw new Error(`broken invariant: ${invariant}`);
}

/** Makes the compiler prove that a switch over a union handles every case. */
export function assertNever(value: never): never {
  throw new Error(`unhandled case: ${JSON.stringify(value)}`);
}

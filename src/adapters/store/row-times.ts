/** Rows hold times as Date objects, the core as milliseconds since the Unix epoch. */
export const msOrNull = (time: Date | null): number | null => time?.getTime() ?? null;
export const dateOf = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

/** Times as rows hold them, dates, and as the core does, milliseconds since 1970. */
export const msOrNull = (time: Date | null): number | null => time?.getTime() ?? null;
export const dateOf = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

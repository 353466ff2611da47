/** What is written of a caught value, which need not be an Error. */

/** Its message, for a sentence. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Its message and where it came from, for a log. */
export const stackOf = (error: unknown): string => (error instanceof Error ? error.stack ?? error.message : String(error));

/** What can be said of a caught value, which need not be an Error. */

/** Its message, for a sentence. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Its message and where it came from, for a log. */
export const stackOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);

/** The code of a system error, such as ENOENT; undefined for anything else. */
export function codeOf(error: unknown): string | undefined {
  const code = (error as { readonly code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** Translates the driver's errors for callers that wait for an answer. */

/** The connection limit of the server, the database or the role is reached. */
export const TOO_MANY_CONNECTIONS = '53300';

/**
 * SQLSTATE classes that say something about the server, not about the statement: connection, authorisation, resources,
 * operator intervention (time-outs too), system error; read-only after a fail-over; a deadlock or a lock time-out.
 */
const SERVER_TROUBLE = /^(08|28|53|57|58)|^(25006|25P03|3D000|40001|40P01|55P03)$/;

/**
 * No such schema, table or right. A gateway that starts is told, because waiting will not help; one that runs had them,
 * and will again, once a backup has been put back for instance.
 */
const REFUSALS: readonly unknown[] = ['3F000', '42P01', '42501'];

export const isRefusal = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && REFUSALS.includes(error.code);

/**
 * The server answers and lets nobody in: a wrong user or password, or no such database. It may be a mistake in the URL,
 * or they are still being made, as by an orchestrator that starts the gateway at the same time.
 */
export const isShutOut = (error: Error & { code?: unknown }): boolean =>
  typeof error.code === 'string' && /^28[0-9A-Z]{3}$|^3D000$/.test(error.code);

/** No class begins with an E, as the names of socket errors do. */
const SQLSTATE = /^[0-9A-DF-Z][0-9A-Z]{4}$/;

/** An error without a SQLSTATE comes from the socket or from the driver's own time-outs. */
export function meansUnreachable(error: Error & { code?: unknown }): boolean {
  if (error instanceof TypeError) return false;
  return typeof error.code === 'string' && SQLSTATE.test(error.code) ? SERVER_TROUBLE.test(error.code) : true;
}

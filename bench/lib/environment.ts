/**
 * The variables that the measured gateway takes from the user's shell: its size, and nothing of another gateway's
 * database or policies.
 */
const KEPT = ['SVC_IO_THREADS', 'SVC_CRYPTO_THREADS', 'SVC_MAX_OPS', 'SVC_MAX_ORG_OPS', 'SVC_AUDIT_FSYNC'];

export const environmentFrom = (
  shell: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> =>
  Object.fromEntries(Object.entries(shell).filter(([name]) => !name.startsWith('SVC_') || KEPT.includes(name)));

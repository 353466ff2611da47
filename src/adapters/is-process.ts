import { codeOf } from '../core/error-text.ts';

/** Whether a process has this id, be it somebody else's. */
export function isProcess(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

import { codeOf } from '../core/error-text.ts';

/** Whether a process with this id exists, even one of another user. */
export function isProcess(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}

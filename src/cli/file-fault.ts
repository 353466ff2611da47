/** Errors of the system about a file, in words. */
import { codeOf } from '../core/error-text.ts';

const WORDS: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'it belongs to another user',
  EROFS: 'the file system is read-only',
  ENOSPC: 'the disk is full',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is a file',
  EEXIST: 'a part of the path is a file', // of a folder to be made
  ENOENT: 'no such file or folder',
};

/** Undefined for anything else. */
export const fileFault = (error: unknown): string | undefined => WORDS[codeOf(error) ?? ''];

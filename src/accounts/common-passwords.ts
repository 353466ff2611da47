/** The passwords that attackers try first: some 50,000 from public leaks, in lower case. */
import { dictionary } from '@zxcvbn-ts/language-common';
import type { CommonPasswords } from '../core/identity/password-rules.ts';

export const loadCommonPasswords = (): CommonPasswords => new Set(dictionary['passwords-common']);

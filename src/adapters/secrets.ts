import { randomBytes } from 'node:crypto';
import { digestOf } from '../gateway/secret-token.ts';
import type { Secrets } from '../gateway/secrets.ts';

export const secrets: Secrets = { random: (bytes) => randomBytes(bytes), digestOf };

import type { Metadata } from '@grpc/grpc-js';

/**
 * The `authorization` metadata as it came. When there are several, none is chosen: together they are not a credential.
 */
export function authorizationOf(metadata: Metadata): string | undefined {
  const values = metadata.get('authorization');
  return values.length === 0 ? undefined : values.join(', ');
}

import type { Metadata } from '@grpc/grpc-js';

/** The `authorization` metadata, as it came. Of several none is picked: together they are no credential. */
export function bearerOf(metadata: Metadata): string | undefined {
  const values = metadata.get('authorization');
  return values.length === 0 ? undefined : values.join(', ');
}

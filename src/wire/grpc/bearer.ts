import type { Metadata } from '@grpc/grpc-js';

/** The `authorization` metadata, as it came. */
export function bearerOf(metadata: Metadata): string | undefined {
  const [value] = metadata.get('authorization');
  return typeof value === 'string' ? value : undefined;
}

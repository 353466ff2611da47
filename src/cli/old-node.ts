import { leastNode } from '../system/package-files.ts';
import { CliError } from './errors.ts';

/** Throws if Node.js is older than the gateway needs. The client commands work with older releases. */
export function refuseOldNode(): void {
  const least = leastNode();
  const [major = 0, minor = 0] = least.split('.').map(Number);
  const [ownMajor = 0, ownMinor = 0] = process.versions.node.split('.').map(Number);
  if (ownMajor < major || (ownMajor === major && ownMinor < minor)) {
    throw new CliError(
      `svc requires Node.js ${least} or later; this is ${process.versions.node}`,
      'Install a newer Node.js.',
    );
  }
}

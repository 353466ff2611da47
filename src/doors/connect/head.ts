import { GuardedHead } from '../engine/guarded-head.ts';

/** The headers that the protocol has of its own. Undefined when not sent, or empty. */
export class ConnectHead extends GuardedHead {
  version: string | undefined = undefined;
  timeout: string | undefined = undefined;

  protected override takeOther(name: string, value: string): void {
    if (name === 'connect-protocol-version') this.version = value || undefined;
    else if (name === 'connect-timeout-ms') this.timeout = value || undefined;
  }
}

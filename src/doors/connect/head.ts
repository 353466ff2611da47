import { GuardedHead } from '../engine/guarded-head.ts';

/** The headers that the protocol reads, beside those of every door. Undefined when not sent, or empty. */
export class ConnectHead extends GuardedHead {
  contentType: string | undefined = undefined;
  contentEncoding: string | undefined = undefined;
  version: string | undefined = undefined;
  timeout: string | undefined = undefined;

  protected override take(name: string, value: string): void {
    switch (name) {
      case 'content-type':
        this.contentType = value || undefined;
        return;
      case 'content-encoding':
        this.contentEncoding = value || undefined;
        return;
      case 'connect-protocol-version':
        this.version = value || undefined;
        return;
      case 'connect-timeout-ms':
        this.timeout = value || undefined;
        return;
      default:
        super.take(name, value);
    }
  }
}

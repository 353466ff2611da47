/**
 * The head of a request, copied in one pass, and what keeps it from being answered at any door: a request must say
 * without ambiguity where its body ends, and who asks. A proxy that reads it differently could mix up its callers.
 */
import type { Fault } from '../../core/fault.ts';
import type { Caller } from '../rpc/handle.ts';
import { type Own, refuseForeignHost, refuseForeignOrigin } from './access.ts';
import type { AddressOf } from './client-address.ts';
import type { RequestHead } from './engine.ts';
import type { Exchange } from './exchange.ts';

const AUTHORIZED_TWICE: Fault = {
  kind: 'invalid_argument',
  field: 'Authorization',
  problem: 'must not be sent more than once',
};

/**
 * Forbids requests that other sites' pages could make: those from their origin, or for a name that is not the
 * gateway's.
 */
export type Forbidden = { readonly origins: boolean; readonly hosts: boolean };

const NOT_FORWARDED: readonly string[] = [];

export class GuardedHead implements Caller {
  /** In lower case. */
  readonly method: string;
  /** The part after the question mark. */
  readonly query: string;
  origin: string | undefined = undefined;
  // Undefined when not sent, or empty.
  contentType: string | undefined = undefined;
  contentEncoding: string | undefined = undefined;
  #authorization: string | undefined = undefined;
  #host: string | undefined = undefined;
  #expectation: string | undefined = undefined;
  #length: string | undefined = undefined;
  #isSoundlyFramed = true;
  #isChunked = false;
  #isAuthorizedTwice = false;
  /** Undefined where no proxy has added one. */
  #forwarded: string[] | undefined = undefined;
  readonly #exchange: Exchange;
  readonly #addressOf: AddressOf | undefined;
  #address: string | undefined = undefined;

  constructor({ method, query }: RequestHead, exchange: Exchange, addressOf: AddressOf | undefined) {
    this.method = method;
    this.query = query;
    this.#exchange = exchange;
    this.#addressOf = addressOf;
  }

  /** To be called before the handler of the request returns. False: it is cut off without an answer. */
  read(request: RequestHead): boolean {
    request.forEach((name, value) => this.take(name, value));
    if (!this.#isSoundlyFramed || !this.#exchange.asksForBody(this.#expectation)) {
      this.#exchange.close();
      return false;
    }
    if (this.#isChunked) this.#exchange.noteChunks();
    return true;
  }

  /** The fault where it is ambiguous who asks, or a page of another site does. */
  refusal(own: Own, { origins, hosts }: Forbidden): Fault | undefined {
    // Given two credentials, a proxy may have checked the other one.
    if (this.#isAuthorizedTwice) return AUTHORIZED_TWICE;
    const foreign =
      (hosts ? refuseForeignHost(this.#host, own.hosts) : undefined) ??
      (origins ? refuseForeignOrigin(this.origin, this.#host, own.origins) : undefined);
    return foreign?.ok === false ? foreign.fault : undefined;
  }

  get authorization(): string | undefined {
    return this.#authorization || undefined;
  }

  get cancelled(): boolean {
    return this.#exchange.isOver;
  }

  /**
   * The peer of the connection, or the client that trusted proxies name in its place. '' where it is first asked for
   * once it is over. To ask the engine costs as much as a small check.
   */
  get address(): string {
    this.#address ??= this.#findAddress();
    return this.#address;
  }

  #findAddress(): string {
    const peer = this.#exchange.remoteAddress();
    if (this.#addressOf === undefined || peer === '') return peer;
    return this.#addressOf(peer, this.#forwarded ?? NOT_FORWARDED);
  }

  /** Gets each header that is not read here. */
  protected takeOther(_name: string, _value: string): void {}

  protected take(name: string, value: string): void {
    switch (name) {
      case 'content-type':
        this.contentType = value || undefined;
        return;
      case 'content-encoding':
        this.contentEncoding = value || undefined;
        return;
      case 'authorization':
        this.#isAuthorizedTwice ||= this.#authorization !== undefined;
        this.#authorization = value;
        return;
      // Lengths that contradict each other (RFC 9112, 6.3).
      case 'content-length':
        this.#isSoundlyFramed &&= this.#length === undefined || this.#length === value;
        this.#length = value;
        return;
      // If the native engine does not know the transfer coding, it assumes that there is no body, and takes the body
      // for the next request.
      case 'transfer-encoding':
        this.#isSoundlyFramed &&= /^chunked$/i.test(value);
        this.#isChunked = true;
        return;
      case 'origin':
        this.origin = value;
        return;
      case 'host':
        this.#host = value;
        return;
      case 'expect':
        this.#expectation = value;
        return;
      case 'x-forwarded-for':
        (this.#forwarded ??= []).push(value);
        return;
      default:
        this.takeOther(name, value);
    }
  }
}

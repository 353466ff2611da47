/** An MCP server, as a session speaks to it: requests with ids of its own, and the server's own messages. */
import {
  type Answer,
  errorOf,
  type Fields,
  type Id,
  isNotification,
  isRequest,
  type Message,
  type Notification,
  notificationOf,
  type Request,
  RPC_CODE,
} from './json-rpc.ts';

/** A way to a server, or to the agent: over pipes or HTTP. */
export type Link = {
  /** Rejects when the message cannot be delivered. */
  send(message: Message): Promise<void>;
  /** With this version from now on, where the way has to know. */
  negotiated(version: string): void;
  close(): Promise<void>;
};

export type LinkEvents = {
  onMessage(message: Message): void;
  /** Once, with what happened. */
  onClosed(why: string): void;
};

/** How a server is reached. */
export type UpstreamRow = {
  readonly name: string;
  readonly open: (events: LinkEvents) => Link;
};

export type UpstreamEvents = {
  onRequest(from: Upstream, request: Request): void;
  onNotification(from: Upstream, notification: Notification): void;
  onClosed(from: Upstream, why: string): void;
};

export type Sent = { readonly id: Id; readonly answer: Promise<Answer> };

export class Upstream {
  readonly name: string;
  readonly #link: Link;
  readonly #waiting = new Map<Id, (answer: Answer) => void>();
  #lastId = 0;
  #closedWhy: string | undefined;
  /** Its capabilities, from its answer to `initialize`. */
  capabilities: Fields = {};

  constructor({ name, open }: UpstreamRow, events: UpstreamEvents) {
    this.name = name;
    this.#link = open({
      onMessage: (message) => {
        if (isRequest(message)) events.onRequest(this, message);
        else if (isNotification(message)) events.onNotification(this, message);
        else this.#settle(message);
      },
      onClosed: (why) => {
        if (this.#closedWhy !== undefined) return;
        this.#closedWhy = why;
        for (const id of [...this.#waiting.keys()]) this.#settle(this.#closedAnswer(id));
        events.onClosed(this, why);
      },
    });
  }

  /** The answer never rejects: what goes wrong on the way is an error of the server's. */
  request(method: string, params: Fields | undefined): Sent {
    this.#lastId += 1;
    const id = this.#lastId;
    if (this.#closedWhy !== undefined) return { id, answer: Promise.resolve(this.#closedAnswer(id)) };
    const answer = new Promise<Answer>((resolve) => {
      this.#waiting.set(id, resolve);
    });
    this.#link
      .send({ jsonrpc: '2.0', id, method, ...(params === undefined ? {} : { params }) })
      .catch((error: unknown) => this.#settle(errorOf(id, RPC_CODE.internal, this.#said(error))));
    return { id, answer };
  }

  /** Ends a request: the server is notified, and its answer is dropped. */
  cancel({ id }: Sent, reason: string): void {
    if (!this.#waiting.delete(id)) return;
    this.notify(notificationOf('notifications/cancelled', { requestId: id, reason }));
  }

  notify(notification: Notification): void {
    this.#send(notification);
  }

  respond(answer: Answer): void {
    this.#send(answer);
  }

  negotiated(version: string): void {
    this.#link.negotiated(version);
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  /** A server that cannot be reached says so with the next request. */
  #send(message: Message): void {
    if (this.#closedWhy === undefined) this.#link.send(message).catch(() => {});
  }

  #settle(answer: Answer): void {
    const resolve = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    resolve?.(answer);
  }

  #closedAnswer(id: Id): Answer {
    return errorOf(id, RPC_CODE.internal, `the MCP server ${this.name} has ended: ${this.#closedWhy}`);
  }

  /** An error of a server may hold its credentials, so only the link's own words are passed on. */
  #said(error: unknown): string {
    return `the MCP server ${this.name} cannot be reached: ${error instanceof LinkError ? error.message : 'unexpected error'}`;
  }
}

/** An error whose text holds nothing that a server said. */
export class LinkError extends Error {}

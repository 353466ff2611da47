/** A way to an MCP server over Streamable HTTP, with the headers of its setting and nothing of the agent's. */
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';
import { within } from '../../system/clock.ts';
import { messageIn } from '../json-rpc.ts';
import { type Link, LinkError, type LinkEvents } from '../upstream.ts';
import { boundedFetch } from './bounded-fetch.ts';

export type HttpUpstreamOptions = {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly log: (line: string) => void;
};

const CLOSE_MS = 1_000;

export function openHttpUpstream({ url, headers, log }: HttpUpstreamOptions, events: LinkEvents): Link {
  const transport = new StreamableHTTPClientTransport(url, {
    requestInit: { headers, redirect: 'error' },
    fetch: boundedFetch,
  });
  transport.onmessage = (message) => {
    const known = messageIn(message);
    if (known !== undefined) events.onMessage(known);
  };
  // A server's message may hold its credentials: only the status is shown.
  transport.onerror = (error) => log(`${url.host}: ${safeText(error)}`);
  transport.onclose = () => events.onClosed('its connection was closed');
  const started = transport.start();
  return {
    send: async (message) => {
      await started;
      try {
        await transport.send(message as JSONRPCMessage);
      } catch (error) {
        throw new LinkError(safeText(error));
      }
    },
    negotiated: (version) => transport.setProtocolVersion(version),
    close: async () => {
      // A server that keeps sessions is notified that this one is over; what it does with that is up to it.
      await within(
        CLOSE_MS,
        transport.terminateSession().catch(() => {}),
      );
      await transport.close();
    },
  };
}

function safeText(error: unknown): string {
  const { code, cause } = error as { readonly code?: unknown; readonly cause?: { readonly code?: unknown } };
  if (typeof code === 'number' && code > 0) return `it answered HTTP ${code}`;
  if (/redirect/i.test(String(error)) || /redirect/i.test(String(cause)))
    return 'it answers with a redirect, which is not followed; set its final address as the url';
  return typeof cause?.code === 'string' ? cause.code : 'no valid answer';
}

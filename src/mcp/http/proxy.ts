/** `svc mcp proxy`: MCP servers behind one Streamable HTTP address, for agents that the gateway knows. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { GatewayCalls } from '../../client/calls.ts';
import type { GatewayAddress } from '../../client/environment.ts';
import type { AgentIdentity } from '../../core/base/ids.ts';
import { isMapping } from '../../core/base/mapping.ts';
import { messageOf } from '../../core/base/text.ts';
import { basicEnvironment, openChild } from '../child.ts';
import { Gateway } from '../gateway.ts';
import { RPC_CODE } from '../json-rpc.ts';
import { PinStore } from '../pin-store.ts';
import type { ProxyConfig, UpstreamSetting } from '../proxy-config.ts';
import type { UpstreamRow } from '../upstream.ts';
import { Bodies, MAX_BODY_BYTES, MAX_FIRST_BYTES } from './body.ts';
import { bindingOf, Callers, type Claim, digestOf, isRefusal, type Refusal, verified } from './identity.ts';
import { Sessions } from './sessions.ts';
import { SignalPool } from './signal-pool.ts';
import { openHttpUpstream } from './upstream-link.ts';

export type ProxyOptions = {
  readonly address: GatewayAddress;
  readonly config: ProxyConfig;
  /** For keys with which no agent is named. */
  readonly agent: AgentIdentity | undefined;
  readonly pinsPath: string;
  readonly log: (line: string) => void;
};

export type RunningProxy = {
  /** The address on which it listens. */
  readonly url: string;
  close(): Promise<void>;
};

const METADATA = '/.well-known/oauth-protected-resource';
const MAX_CONNECTIONS = 2_000;
const HEADERS_MS = 10_000;

export async function startProxy(options: ProxyOptions): Promise<RunningProxy> {
  const proxy = new Proxy(options);
  const url = await proxy.listen();
  return { url, close: () => proxy.close() };
}

class Proxy {
  readonly #options: ProxyOptions;
  readonly #calls: GatewayCalls;
  readonly #callers: Callers;
  readonly #signals: SignalPool;
  readonly #pins: PinStore;
  readonly #bodies = new Bodies();
  readonly #sessions: Sessions;
  readonly #server: Server;
  #url = '';

  constructor(options: ProxyOptions) {
    this.#options = options;
    this.#calls = new GatewayCalls(options.address);
    this.#callers = new Callers(this.#calls, options.agent);
    this.#signals = new SignalPool(options.address.grpc);
    this.#pins = new PinStore(options.pinsPath);
    this.#sessions = new Sessions(options.log, options.config.limits);
    this.#server = createServer({ headersTimeout: HEADERS_MS, requestTimeout: 0 }, (request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        options.log(`unexpected error: ${messageOf(error)}`);
        if (response.headersSent) response.destroy();
        else refuse(response, 500, RPC_CODE.internal, 'unexpected error in svc mcp proxy');
      });
    });
    this.#server.maxConnections = MAX_CONNECTIONS;
  }

  async listen(): Promise<string> {
    const { host, port, publicUrl } = this.#options.config;
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, resolve);
    });
    const listening = `http://${host.includes(':') ? `[${host}]` : host}:${(this.#server.address() as AddressInfo).port}`;
    this.#url = publicUrl ?? listening;
    return listening;
  }

  /** Ends what runs, and reports it to the gateway. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    await this.#sessions.closeAll();
    this.#calls.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { origin } = request.headers;
    if (origin !== undefined && !this.#isOwn(origin))
      return refuse(response, 403, RPC_CODE.invalidRequest, 'requests of web pages of other origins are refused');
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    if (path === '/healthz') return sendJson(response, 200, { status: 'ok' });
    if (path === METADATA || path.startsWith(`${METADATA}/`)) return this.#describe(path, response);
    const servers = this.#serversAt(path);
    if (servers === undefined)
      return refuse(response, 404, RPC_CODE.invalidRequest, 'there is /mcp, and /mcp/<server> for each server');
    if (!['POST', 'GET', 'DELETE'].includes(request.method ?? '')) {
      response.setHeader('allow', 'GET, POST, DELETE');
      return refuse(response, 405, RPC_CODE.invalidRequest, 'use GET, POST or DELETE');
    }
    const claim = await this.#callers.callerIn(request.headers);
    // While the gateway was asked.
    if (response.destroyed) return;
    if (isRefusal(claim)) return this.#refuseCaller(response, path, claim);
    await this.#serveSession(request, response, { path, servers, claim });
  }

  async #serveSession(
    request: IncomingMessage,
    response: ServerResponse,
    { path, servers, claim }: { path: string; servers: readonly UpstreamSetting[]; claim: Claim },
  ): Promise<void> {
    const binding = bindingOf(claim);
    const id = request.headers['mcp-session-id'];
    const kept = typeof id === 'string' ? this.#sessions.find(id, path, binding) : undefined;
    if (id !== undefined && kept === undefined)
      return refuse(response, 404, RPC_CODE.invalidRequest, 'there is no such session; initialize a new one');
    const maxBytes = kept === undefined ? MAX_FIRST_BYTES : MAX_BODY_BYTES;
    const body = request.method === 'POST' ? await this.#bodies.read(request, maxBytes) : { value: undefined };
    if ('problem' in body) {
      // The rest of the body would be taken for the next request.
      response.setHeader('connection', 'close');
      return refuse(response, body.status, RPC_CODE.parse, body.problem);
    }
    // The agent's credential and name go no further.
    delete request.headers.authorization;
    delete request.headers['x-svc-agent'];
    if (kept !== undefined) return this.#sessions.serve(kept, request, response, body.value);
    if (!isInitialize(body.value))
      return refuse(response, 400, RPC_CODE.invalidRequest, 'initialize a session first, and send its Mcp-Session-Id');
    const checked = await verified(claim, this.#calls, this.#options.config.audience);
    if (!('credential' in checked)) return this.#refuseCaller(response, path, checked);
    const processes = servers.filter((setting) => 'command' in setting).length;
    const place = { path, binding, credential: digestOf(claim.secret), processes };
    const crowding = this.#sessions.crowding(place);
    if (crowding !== undefined) {
      response.setHeader('retry-after', '10');
      return refuse(response, 503, RPC_CODE.internal, crowding);
    }
    const { log } = this.#options;
    const options = {
      gateway: new Gateway(this.#calls, checked.credential),
      lease: this.#signals.of(checked.credential),
      pins: this.#pins,
      log,
      servers: servers.map((setting) => rowOf(setting, log)),
      isPrefixed: path === '/mcp',
      tellsWithheld: false,
    };
    await this.#sessions.open(options, place, request, response, body.value);
  }

  #serversAt(path: string): readonly UpstreamSetting[] | undefined {
    const { upstreams } = this.#options.config;
    if (path === '/mcp') return upstreams;
    const one = upstreams.filter(({ name }) => path === `/mcp/${name}`);
    return one.length === 0 ? undefined : one;
  }

  #isOwn(origin: string): boolean {
    return origin === new URL(this.#url).origin || this.#options.config.origins.includes(origin);
  }

  #describe(path: string, response: ServerResponse): void {
    const resource = path.slice(METADATA.length) || '/mcp';
    if (this.#serversAt(resource) === undefined)
      return refuse(response, 404, RPC_CODE.invalidRequest, 'there is no such resource');
    sendJson(response, 200, {
      resource: `${this.#url}${resource}`,
      resource_name: 'svc mcp proxy',
      authorization_servers: this.#options.config.authorizationServers,
      bearer_methods_supported: ['header'],
    });
  }

  #refuseCaller(response: ServerResponse, path: string, { status, error, detail }: Refusal): void {
    if (status === 401) {
      const metadata = `resource_metadata="${this.#url}${METADATA}${path}"`;
      const why = error === undefined ? '' : `error="${error}", error_description="${detail}", `;
      response.setHeader('www-authenticate', `Bearer ${why}${metadata}`);
    }
    refuse(response, status, RPC_CODE.denied, detail);
  }
}

const isInitialize = (body: unknown): boolean => isMapping(body) && body.method === 'initialize';

const rowOf = (setting: UpstreamSetting, log: (line: string) => void): UpstreamRow => ({
  name: setting.name,
  open: (events) =>
    'url' in setting
      ? openHttpUpstream({ ...setting, log }, events)
      : openChild(
          {
            command: setting.command,
            env: { ...basicEnvironment(process.env), ...setting.env },
            ready: () => undefined,
            log,
          },
          events,
        ),
});

function refuse(response: ServerResponse, status: number, code: number, message: string): void {
  sendJson(response, status, { jsonrpc: '2.0', id: null, error: { code, message } });
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' });
  response.end(JSON.stringify(value));
}

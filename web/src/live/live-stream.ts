/**
 * The stream of events: opened with a ticket, opened again when it breaks, never given up while somebody is signed in.
 */
import type { TopologyStats } from '../base/api-types.ts';
import { queryOf } from '../base/request.ts';
import { retryDelayMs } from '../base/retry-delay.ts';
import { call } from '../session/session.ts';
import type { Frame, Snapshot } from './frame.ts';

export type LiveStatus = 'connecting' | 'live' | 'waiting';

type Handlers = {
  /** A whole snapshot follows. */
  readonly onOpen: (snapshot: Snapshot) => void;
  readonly onFrame: (frame: Frame) => void;
  readonly onStatus: (status: LiveStatus) => void;
};

/** A stream that lived this long was no failure: the next wait is short again. */
const HEALTHY_AFTER_MS = 10_000;
/** The code with which the gateway closes a stream whose credential has ended. */
const CREDENTIAL_ENDED = 4401;
/** After so long without a frame the gateway is probed: a connection that is cut far away looks quiet. */
const QUIET_MS = 15_000;
const PROBE_TIMEOUT_MS = 10_000;
/** Browsers themselves wait for minutes. */
const OPEN_WITHIN_MS = 20_000;
/**
 * After such a gap between two runs of a timer, the machine slept: a browser delays those of a hidden page by a minute
 * only.
 */
const SLEPT_MS = 90_000;
/** A reader that lags again and again is not helped by ever more snapshots. */
const LAG_REST_MS = 5_000;

export class LiveStream {
  #socket: WebSocket | undefined;
  #attempts = 0;
  #openedAtMs = 0;
  #heardAtMs = 0;
  #watchedAtMs = Date.now();
  #isStopped = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #watchdog: ReturnType<typeof setInterval> | undefined;
  readonly #handlers: Handlers;
  status: LiveStatus = 'connecting';

  constructor(handlers: Handlers) {
    this.#handlers = handlers;
    window.addEventListener('online', this.retry);
    window.addEventListener('offline', this.#drop);
    document.addEventListener('visibilitychange', this.#lookAgain);
  }

  start(): void {
    this.#watchdog = setInterval(() => this.#watch(), QUIET_MS);
    void this.#connect();
  }

  /** Tries at once instead of when the wait is over. */
  readonly retry = (): void => {
    if (this.#isStopped || this.status !== 'waiting') return;
    clearTimeout(this.#timer);
    void this.#connect();
  };

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    clearInterval(this.#watchdog);
    window.removeEventListener('online', this.retry);
    window.removeEventListener('offline', this.#drop);
    document.removeEventListener('visibilitychange', this.#lookAgain);
    this.#socket?.close();
  }

  /** Somebody who comes back to the page does not wait. */
  readonly #lookAgain = (): void => {
    if (!document.hidden) this.retry();
  };

  /** A connection from before the machine slept looks open, but the gateway has closed it. */
  #watch(): void {
    const nowMs = Date.now();
    const hasSlept = nowMs - this.#watchedAtMs > SLEPT_MS;
    this.#watchedAtMs = nowMs;
    if (hasSlept && nowMs - this.#openedAtMs > QUIET_MS) this.#drop();
    else void this.#probe();
  }

  /** Pages do not see pings, and a browser takes a dead connection for open until it has something to send. */
  async #probe(): Promise<void> {
    const socket = this.#socket;
    if (this.status !== 'live' || Date.now() - this.#heardAtMs < QUIET_MS) return;
    try {
      await fetch('/healthz', { cache: 'no-store', signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    } catch {
      if (socket === this.#socket) this.#drop();
    }
  }

  /** Gives up a connection that is dead without having been closed. */
  readonly #drop = (): void => {
    if (this.#isStopped || this.status !== 'live') return;
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
    this.#attempts = 0;
    this.#wait();
  };

  async #connect(): Promise<void> {
    this.#setStatus('connecting');
    try {
      const asked: [Promise<{ ticket: string }>, Promise<TopologyStats>] = [
        call('POST', '/api/v1/auth/ws-ticket'),
        call('GET', '/api/v1/topology/stats?per_page=1'),
      ];
      const [{ ticket }, { ops, ops_ttl_secs: ttlSecs }] = await Promise.all(asked);
      if (this.#isStopped) return;
      this.#open(ticket, {
        opCount: Object.values(ops).reduce((sum, each) => sum + each, 0),
        finishedTtlMs: ttlSecs * 1000,
      });
    } catch {
      // The session says when a credential has ended; any other reason passes.
      this.#wait();
    }
  }

  #open(ticket: string, snapshot: Snapshot): void {
    const url = new URL(`/api/v1/stream${queryOf({ ticket, snapshot: 'true', lineage: 'true' })}`, location.href);
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url);
    this.#socket = socket;
    const patience = setTimeout(() => socket.close(), OPEN_WITHIN_MS);
    socket.onopen = () => {
      clearTimeout(patience);
      this.#openedAtMs = Date.now();
      this.#heardAtMs = this.#openedAtMs;
      this.#handlers.onOpen(snapshot);
      this.#setStatus('live');
    };
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket) return;
      this.#heardAtMs = Date.now();
      const frame = JSON.parse(data);
      if (frame.event_type === 'lagged') this.#reopen(socket);
      else this.#handlers.onFrame(frame);
    };
    socket.onclose = ({ code }) => {
      clearTimeout(patience);
      if (socket !== this.#socket) return;
      const wasHealthy = this.#openedAtMs > 0 && Date.now() - this.#openedAtMs > HEALTHY_AFTER_MS;
      if (wasHealthy) this.#attempts = 0;
      this.#openedAtMs = 0;
      // An access token of a person lives for minutes: the next ticket is asked for with a new one.
      if (wasHealthy && code === CREDENTIAL_ENDED && !this.#isStopped) void this.#connect();
      else this.#wait();
    };
  }

  /** Events are missing, so what is shown may be wrong: a new stream begins with a new snapshot. */
  #reopen(socket: WebSocket): void {
    const restMs = Math.max(0, LAG_REST_MS - (Date.now() - this.#openedAtMs));
    this.#socket = undefined;
    socket.close();
    this.#setStatus('connecting');
    this.#timer = setTimeout(() => void this.#connect(), restMs);
  }

  #wait(): void {
    if (this.#isStopped) return;
    this.#setStatus('waiting');
    this.#attempts += 1;
    this.#timer = setTimeout(() => void this.#connect(), retryDelayMs(this.#attempts));
  }

  #setStatus(status: LiveStatus): void {
    if (this.#isStopped) return;
    this.status = status;
    this.#handlers.onStatus(status);
  }
}

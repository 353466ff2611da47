/**
 * The stream of events: opened with a ticket, opened again when it breaks, never given up while somebody is signed in.
 */
import { query } from './api.js';
import { backoffMs } from './backoff.js';
import { call } from './session.js';

/**
 * @typedef {{ id: string, event_type: string, org_id: string | null, agent_id: string | null, timestamp: string,
 * payload: any }} Frame
 */
/**
 * @typedef {{ opCount: number, finishedTtlMs: number }} Snapshot how many operations are to come, and how long the
 * finished ones are kept
 */
/** @typedef {'connecting' | 'live' | 'waiting'} LiveStatus */

/** A stream that lived this long was no failure: the next wait is short again. */
const HEALTHY_AFTER_MS = 10_000;
/** The code with which the gateway closes a stream whose credential is over. */
const CREDENTIAL_ENDED = 4401;
/**
 * When nothing was heard for so long, the gateway is asked whether it is there: a line that is cut far away looks
 * quiet.
 */
const QUIET_MS = 15_000;
const PROBE_TIMEOUT_MS = 10_000;
/** Browsers wait for minutes. */
const OPEN_WITHIN_MS = 20_000;
/**
 * A look that comes so long after the one before means that the machine slept: a browser puts off those of a hidden
 * page by a minute only.
 */
const SLEPT_MS = 90_000;
/** A reader that lags again and again is not helped by ever more snapshots. */
const LAG_REST_MS = 5_000;

export class LiveStream {
  /** @type {WebSocket | undefined} */
  #socket;
  #attempts = 0;
  #openedAtMs = 0;
  #heardAtMs = 0;
  #lookedAtMs = Date.now();
  #isStopped = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #watchdog;
  #handlers;
  /** @type {LiveStatus} */
  status = 'connecting';

  /**
   * @param {{ onOpen: (snapshot: Snapshot) => void, onFrame: (frame: Frame) => void, onStatus: (status: LiveStatus) =>
   * void }} handlers `onOpen`: a whole snapshot follows
   */
  constructor(handlers) {
    this.#handlers = handlers;
    window.addEventListener('online', this.retry);
    window.addEventListener('offline', this.#lose);
  }

  start() {
    this.#watchdog = setInterval(() => this.#look(), QUIET_MS);
    void this.#connect();
  }

  /** Tries at once instead of when the wait is over. */
  retry = () => {
    if (this.#isStopped || this.status !== 'waiting') return;
    clearTimeout(this.#timer);
    void this.#connect();
  };

  stop() {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    clearInterval(this.#watchdog);
    window.removeEventListener('online', this.retry);
    window.removeEventListener('offline', this.#lose);
    this.#socket?.close();
  }

  /** Of a line from before the machine slept nothing is heard, however open it looks: the gateway has given it up. */
  #look() {
    const nowMs = Date.now();
    const hasSlept = nowMs - this.#lookedAtMs > SLEPT_MS;
    this.#lookedAtMs = nowMs;
    if (hasSlept && nowMs - this.#openedAtMs > QUIET_MS) this.#lose();
    else void this.#probe();
  }

  /** A browser does not tell a page of pings, and holds a dead line for open until it has something to send. */
  async #probe() {
    const socket = this.#socket;
    if (this.status !== 'live' || Date.now() - this.#heardAtMs < QUIET_MS) return;
    try {
      await fetch('/healthz', { cache: 'no-store', signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    } catch {
      if (socket === this.#socket) this.#lose();
    }
  }

  /** What is shown is live no more, although the line has not been closed. */
  #lose = () => {
    if (this.#isStopped || this.status !== 'live') return;
    const socket = this.#socket;
    this.#socket = undefined;
    socket?.close();
    this.#attempts = 0;
    this.#wait();
  };

  async #connect() {
    this.#tell('connecting');
    try {
      const [{ ticket }, { ops, ops_ttl_secs: ttlSecs }] = await Promise.all([
        call('POST', '/api/v1/auth/ws-ticket'),
        call('GET', '/api/v1/topology/stats?per_page=1'),
      ]);
      if (this.#isStopped) return;
      this.#open(ticket, {
        opCount: Object.values(ops).reduce((sum, each) => sum + each, 0),
        finishedTtlMs: ttlSecs * 1000,
      });
    } catch {
      // The reason is of no use here: a credential that has ended is the session's to tell, the rest passes.
      this.#wait();
    }
  }

  /** @param {string} ticket @param {Snapshot} snapshot */
  #open(ticket, snapshot) {
    const url = new URL(
      `/api/v1/stream${query([
        ['ticket', ticket],
        ['snapshot', 'true'],
        ['lineage', 'true'],
      ])}`,
      location.href,
    );
    url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(url);
    this.#socket = socket;
    const patience = setTimeout(() => socket.close(), OPEN_WITHIN_MS);
    socket.onopen = () => {
      clearTimeout(patience);
      this.#openedAtMs = Date.now();
      this.#heardAtMs = this.#openedAtMs;
      this.#handlers.onOpen(snapshot);
      this.#tell('live');
    };
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket) return;
      this.#heardAtMs = Date.now();
      const frame = JSON.parse(data);
      if (frame.event_type === 'lagged') this.#refill(socket);
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

  /**
   * Events are missing, so what is shown may be wrong: a new stream brings a new snapshot. @param {WebSocket} socket
   */
  #refill(socket) {
    const restMs = Math.max(0, LAG_REST_MS - (Date.now() - this.#openedAtMs));
    this.#socket = undefined;
    socket.close();
    this.#tell('connecting');
    this.#timer = setTimeout(() => void this.#connect(), restMs);
  }

  #wait() {
    if (this.#isStopped) return;
    this.#tell('waiting');
    this.#timer = setTimeout(() => void this.#connect(), backoffMs(this.#attempts));
    this.#attempts += 1;
  }

  /** @param {LiveStatus} status */
  #tell(status) {
    if (this.#isStopped) return;
    this.status = status;
    this.#handlers.onStatus(status);
  }
}

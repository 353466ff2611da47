/** The operations in flight as this page knows them. Pure: time is an argument, and nothing here touches the page. */

/** @typedef {'pending' | 'running' | 'paused' | 'completing' | 'terminated'} OpState */
/** @typedef {'completed' | 'failed' | 'denied' | 'terminated' | 'halted' | 'expired'} OpEnd */
/** @typedef {'pending' | 'running' | 'paused' | OpEnd} OpWord */
/** @typedef {'pause' | 'resume' | 'terminate'} Action */
/**
 * @typedef {object} Op
 * @property {string} key its own among all operations: two orgs may use the same id, and two gateways of a cluster
 * @property {string} opId
 * @property {string | undefined} home which gateway of a cluster it lives at; undefined: there is only one
 * @property {string | null} orgId
 * @property {string} teamId
 * @property {string} agentId
 * @property {OpState} state
 * @property {OpEnd | null} ended
 * @property {string} action '' where it was registered without a check
 * @property {string} resource
 * @property {string} reason why it runs or waits, or what went wrong
 * @property {number} registeredAtMs
 * @property {string} updatedAt
 * @property {number} sinceMs when it came into this state
 * @property {Action | undefined} asked what the operator has asked for and the gateway has not confirmed yet
 * @property {string} text what a search looks at
 * @property {string} path the name of its agent, as `acme/search/crawler/`
 */
/**
 * @typedef {{ orgId: string, state: string, words: readonly string[] }} Filter empty ones let all pass; the state
 * `active` those that have not finished
 */

const MAX_OPS = 50_000;
/** A snapshot that is quiet for so long has nothing more to tell: what it was to bring has gone meanwhile. */
const QUIET_MS = 3_000;

/**
 * What may be asked of an operation in each state (docs/spec.md, States and transitions). @type
 * {Readonly<Record<OpState, readonly Action[]>>}
 */
export const ACTIONS = {
  pending: ['terminate'],
  running: ['pause', 'terminate'],
  paused: ['resume', 'terminate'],
  completing: [],
  terminated: [],
};

/** @type {Readonly<Record<Action, OpWord>>} */
const LEADS_TO = { pause: 'paused', resume: 'running', terminate: 'terminated' };

/** The words for states that people read, in the order of a life. @type {readonly OpWord[]} */
export const WORDS = [
  'pending',
  'running',
  'paused',
  'completed',
  'failed',
  'denied',
  'terminated',
  'halted',
  'expired',
];

/** How it ended, else its state. @param {Op} op @returns {OpWord} */
export const wordOf = ({ state, ended }) => ended ?? (state === 'completing' ? 'completed' : state);

/** What is shown: the word for it, or for what was asked for. @param {Op} op */
export const shownWord = (op) => (op.asked === undefined ? wordOf(op) : LEADS_TO[op.asked]);

/**
 * The words of a search. A name may be written as it is shown, `acme / search / crawler`, or as the command line takes
 * it.
 *
 * @param {string} text
 */
export const wordsOf = (text) =>
  text
    .toLowerCase()
    .replace(/\s*\/\s*/g, '/')
    .split(/\s+/)
    .filter((word) => word !== '')
    // An agent without an org is shown under a dash.
    .map((word) => word.replace(/^[-–]\//, '/'));

/**
 * A word is found anywhere; a name with a slash is whole: `acme/search` is that team, and `acme/search/a1` not also
 * a10. @param {Op} op @param {string} word
 */
const fits = (op, word) =>
  word.includes('/')
    ? op.path.startsWith(word.endsWith('/') ? word : `${word}/`) || op.opId.toLowerCase().includes(word)
    : op.text.includes(word);

/**
 * The agents that have the most of these operations in flight, with how many; where all have finished, of those. @param
 * {readonly Op[]} ops @param {number} wanted
 */
export function busiestOf(ops, wanted) {
  /** @type {Map<string, { op: Op, opCount: number }>} */
  const agents = new Map();
  const inFlight = ops.filter(({ state }) => !isFinished(state));
  for (const op of inFlight.length > 0 ? inFlight : ops) {
    const known = agents.get(op.path);
    if (known === undefined) agents.set(op.path, { op, opCount: 1 });
    else known.opCount += 1;
  }
  return [...agents.values()].sort((one, other) => other.opCount - one.opCount).slice(0, wanted);
}

/**
 * How many of these each word stands for, as far as the gateway has confirmed it, and for how many it has yet to confirm
 * what was asked. @param {readonly Op[]} ops
 */
export function countsOf(ops) {
  const counts = /** @type {Record<OpWord, number>} */ (Object.fromEntries(WORDS.map((word) => [word, 0])));
  let asked = 0;
  for (const op of ops) {
    counts[wordOf(op)] += 1;
    if (op.asked !== undefined) asked += 1;
  }
  return { counts, asked };
}

/** @param {Pick<import('./live.js').Frame, 'org_id' | 'payload'>} frame */
const keyOf = ({ org_id, payload: { op_id: opId, op_home: home } }) =>
  `${org_id ?? ''}/${opId}${home === undefined ? '' : ` ${home}`}`;

/** @param {OpState} state */
export const isFinished = (state) => state === 'completing' || state === 'terminated';

/** What changes with the state, and the text that a search looks at. @param {import('./live.js').Frame} frame */
function aboutOf({ org_id, agent_id, payload }) {
  const { op_id, team_id, action, resource, reason, error, ended } = payload;
  return {
    ended: /** @type {OpEnd | null} */ (ended ?? null),
    action: String(action ?? ''),
    resource: String(resource ?? ''),
    reason: String(error ?? reason ?? ''),
    text: [op_id, org_id, team_id, agent_id, action, resource]
      .map((word) => word ?? '')
      .join(' ')
      .toLowerCase(),
  };
}

export class OpsModel {
  /** By key. @type {Map<string, Op>} */
  #ops = new Map();
  /** They stand in the order of registration: so they happen, but a snapshot tells of them in any. */
  #isInOrder = true;
  #newestAtMs = 0;
  /** Operations that were left out because there are too many. */
  dropped = 0;
  /** Operations of the snapshot that are still to come; at most, because some may end before they do. */
  #awaited = 0;
  #heardAtMs = 0;
  #finishedTtlMs = Infinity;

  get size() {
    return this.#ops.size;
  }

  /** @param {string} key */
  get(key) {
    return this.#ops.get(key);
  }

  /**
   * Begins anew: a snapshot follows.
   *
   * @param {{ opCount: number, finishedTtlMs: number }} snapshot how many operations it has, and for how long those are
   * kept that have finished
   * @param {number} nowMs
   */
  begin({ opCount, finishedTtlMs }, nowMs) {
    this.clear();
    this.#awaited = opCount;
    this.#heardAtMs = nowMs;
    this.#finishedTtlMs = finishedTtlMs;
  }

  clear() {
    this.#ops.clear();
    this.#isInOrder = true;
    this.#newestAtMs = 0;
    this.dropped = 0;
    this.#awaited = 0;
  }

  /** Whether the snapshot is still on its way: what is not here may yet come. @param {number} nowMs */
  isFilling(nowMs) {
    return this.#awaited > 0 && nowMs - this.#heardAtMs < QUIET_MS;
  }

  /**
   * A change of state, or a line of a snapshot. It confirms, or overrules, whatever was asked for.
   *
   * @param {import('./live.js').Frame} frame
   * @param {number} nowMs
   */
  apply(frame, nowMs) {
    const { op_id: opId, state, registered_at: registeredAt, updated_at: updatedAt, team_id: teamId } = frame.payload;
    const key = keyOf(frame);
    const known = this.#ops.get(key);
    this.#heardAtMs = nowMs;
    if (known !== undefined) {
      if (Date.parse(updatedAt) < Date.parse(known.updatedAt)) return;
      known.sinceMs = known.state === state ? known.sinceMs : nowMs;
      known.state = state;
      known.updatedAt = updatedAt;
      known.asked = undefined;
      Object.assign(known, aboutOf(frame));
      return;
    }
    this.#awaited -= 1;
    const agentId = frame.agent_id ?? '';
    // The clocks may be some seconds apart, but nothing has happened in the future.
    const sinceMs = Math.min(nowMs, Date.parse(updatedAt));
    const path = `${frame.org_id ?? ''}/${teamId}/${agentId}/`.toLowerCase();
    const registeredAtMs = Date.parse(registeredAt);
    this.#ops.set(key, {
      key,
      opId,
      home: frame.payload.op_home,
      orgId: frame.org_id,
      teamId,
      agentId,
      state,
      registeredAtMs,
      updatedAt,
      sinceMs,
      asked: undefined,
      path,
      ...aboutOf(frame),
    });
    if (registeredAtMs < this.#newestAtMs) this.#isInOrder = false;
    else this.#newestAtMs = registeredAtMs;
    if (this.#ops.size > MAX_OPS) this.#makeRoom();
  }

  /** Shows the outcome before it is confirmed. @param {string} key @param {Action} action */
  ask(key, action) {
    const op = this.#ops.get(key);
    if (op !== undefined) op.asked = action;
  }

  /** The gateway has refused. @param {string} key @param {Action} action */
  takeBack(key, action) {
    const op = this.#ops.get(key);
    if (op !== undefined && op.asked === action) op.asked = undefined;
  }

  /** Forgets what has been finished for as long as the gateway keeps it. @param {number} nowMs */
  expire(nowMs) {
    for (const [key, op] of this.#ops)
      if (isFinished(op.state) && nowMs - op.sinceMs >= this.#finishedTtlMs) this.#ops.delete(key);
  }

  /** The newest first. @param {Filter} filter */
  list({ orgId, state, words }) {
    this.#sort();
    const found = [];
    for (const op of this.#ops.values()) {
      if (orgId !== '' && op.orgId !== orgId) continue;
      if (state === 'active' ? isFinished(op.state) : state !== '' && wordOf(op) !== state) continue;
      if (words.every((word) => fits(op, word))) found.push(op);
    }
    return found.reverse();
  }

  /** Every org that has an operation here, in order. */
  orgs() {
    /** @type {Set<string>} */
    const orgs = new Set();
    for (const { orgId } of this.#ops.values()) if (orgId !== null) orgs.add(orgId);
    return [...orgs].sort();
  }

  #sort() {
    if (this.#isInOrder) return;
    this.#ops = new Map([...this.#ops].sort(([, one], [, other]) => one.registeredAtMs - other.registeredAtMs));
    this.#isInOrder = true;
  }

  /** The finished go first, then the oldest. A tenth at a time, so that this is rare. */
  #makeRoom() {
    this.#sort();
    const least = MAX_OPS * 0.9;
    for (const [key, op] of this.#ops) {
      if (this.#ops.size <= least) return;
      if (isFinished(op.state)) this.#ops.delete(key);
    }
    for (const key of this.#ops.keys()) {
      if (this.#ops.size <= least) return;
      this.#ops.delete(key);
      this.dropped += 1;
    }
  }
}

/** Messages between threads as bytes: a batch is one MessagePack array. */
import { Packr, RESET_BUFFER_MODE } from 'msgpackr';
import type { OpId } from '../core/base/ids.ts';
import { ok } from '../core/base/result.ts';
import { copyOf } from '../core/base/text.ts';
import type { CheckAnswer, CheckCommand } from '../core/commands.ts';
import { OP_ENDS, OP_STATES } from '../core/ops/op-state.ts';
import type { GatewayEvent } from '../ports/events.ts';
import type { IoToMain, MainToAudit, MainToDoors, MainToIo, NotRecordedMessage } from './protocol.ts';

// Events on their way to another thread. Nearly all are about operations, and those are packed into plain arrays.

type OpsChange = Extract<GatewayEvent, { kind: 'ops_change' }>;
type PackedChange = readonly [
  id: number,
  orgId: string | null,
  agentId: string | null,
  atMs: number,
  opId: OpsChange['payload']['opId'],
  state: number,
  registeredAtMs: number,
  updatedAtMs: number,
  teamId: string,
  about: readonly [
    action: string | null,
    resource: string | null,
    policy: string | null,
    ruleId: string | null,
    reason: string | null,
    estimatedMicroUsd: number,
    spentMicroUsd: number,
    approvalId: string | null,
    error: string | null,
    ended: number,
  ],
  home: string | null,
];
export type PackedEvents = { readonly type: 'events'; readonly events: readonly (PackedChange | GatewayEvent)[] };
type Events = { readonly type: 'events'; readonly events: readonly GatewayEvent[] };

const packEvents = ({ events }: Events): PackedEvents => ({ type: 'events', events: events.map(pack) });

const unpackEvents = ({ events }: PackedEvents): Events => ({
  type: 'events',
  events: events.map((event) => (isPackedChange(event) ? unpack(event) : event)),
});

function pack(event: GatewayEvent): PackedChange | GatewayEvent {
  if (event.kind !== 'ops_change') return event;
  const { id, orgId, agentId, atMs, payload } = event;
  return [
    id,
    orgId,
    agentId,
    atMs,
    payload.opId,
    OP_STATES.indexOf(payload.state),
    payload.registeredAtMs,
    payload.updatedAtMs,
    payload.teamId,
    [
      payload.action ?? null,
      payload.resource ?? null,
      payload.policy ?? null,
      payload.ruleId ?? null,
      payload.reason ?? null,
      payload.estimatedMicroUsd,
      payload.spentMicroUsd,
      payload.approvalId ?? null,
      payload.error ?? null,
      payload.ended === undefined ? -1 : OP_ENDS.indexOf(payload.ended),
    ],
    payload.home ?? null,
  ];
}

function unpack(packed: PackedChange): OpsChange {
  const [id, orgId, agentId, atMs, opId, state, registeredAtMs, updatedAtMs, teamId, about, home] = packed;
  const [action, resource, policy, ruleId, reason, estimatedMicroUsd, spentMicroUsd, approvalId, error, ended] = about;
  return {
    id,
    kind: 'ops_change',
    orgId,
    agentId,
    atMs,
    payload: {
      opId,
      state: OP_STATES[state]!,
      registeredAtMs,
      updatedAtMs,
      teamId,
      action: action ?? undefined,
      resource: resource ?? undefined,
      policy: policy ?? undefined,
      ruleId: ruleId ?? undefined,
      reason: reason ?? undefined,
      estimatedMicroUsd,
      spentMicroUsd,
      approvalId: approvalId ?? undefined,
      error: error ?? undefined,
      ended: OP_ENDS[ended],
      home: home ?? undefined,
    },
  };
}

const isPackedChange = (event: PackedChange | GatewayEvent): event is PackedChange => Array.isArray(event);

// Records: each shape's keys are written once per batch, and read back by a constructor made for it.
const packr = new Packr({ useRecords: true });

/** The bytes are the caller's own: their buffer may be handed over to another thread. */
export function encode(value: unknown): Uint8Array<ArrayBuffer> {
  // Encoded into one reused buffer, which stays in the cache; the copy has the right size and can be transferred.
  return new Uint8Array(packr.pack(value, RESET_BUFFER_MODE));
}

export const decode = (bytes: Uint8Array): unknown => packr.unpack(bytes);

// Checks and their answers are nearly all the traffic, so they travel as bare arrays: no keys to write or to match.
type PackedCheck = [
  id: number,
  orgId: string,
  teamId: string,
  agentId: string,
  credential: CheckCommand['credential'] | null,
  opId: CheckCommand['opId'],
  action: string,
  resource: string,
  attributes: CheckCommand['attributes'] | null,
  estimatedCostMicroUsd: number,
  caller: CheckCommand['caller'] | null,
  dryRun: boolean,
  principal: CheckCommand['principal'] | null,
  supportedObligations: CheckCommand['supportedObligations'] | null,
  home?: string,
];
type PackedAnswer = readonly [id: number, auditIndex: number, verdict: number, opState: number];

// Most answers of a batch share a few verdicts, so each verdict travels once, ahead of the answers.
type Verdict = readonly [
  isAllow: boolean,
  reason: string,
  policy: string | null,
  ruleId: string | null,
  cause: CheckAnswer['cause'] | null,
  exceeded: CheckAnswer['exceeded'] | null,
  obligations: CheckAnswer['obligations'] | null,
  remedy: string | null,
];
type PackedMessage = PackedAnswer | PackedEvents | MainToDoors;
type PackedHeld = {
  readonly type: 'held';
  readonly place: readonly [batch: number, firstId: number, failures: number];
  readonly packed: readonly PackedMessage[];
};
type PackedToIo = readonly [
  verdicts: readonly Verdict[],
  messages: readonly (PackedMessage | PackedHeld | NotRecordedMessage)[],
];

export const encodeToMain = (messages: readonly IoToMain[]): Uint8Array<ArrayBuffer> =>
  encode(
    messages.map((message) =>
      message.type === 'command' && message.command.type === 'check' ? packCheck(message.id, message.command) : message,
    ),
  );

export const decodeToMain = (bytes: Uint8Array): readonly IoToMain[] =>
  (decode(bytes) as (PackedCheck | IoToMain)[]).map((message) =>
    isPacked(message) ? unpackCheck(message) : withOwnId(message),
  );

export function encodeToIo(messages: readonly MainToIo[]): Uint8Array<ArrayBuffer> {
  const verdicts: Verdict[] = [];
  return encode([verdicts, messages.map((message) => packToIo(message, verdicts))] satisfies PackedToIo);
}

function packToIo(message: MainToIo, verdicts: Verdict[]): PackedMessage | PackedHeld | NotRecordedMessage {
  if (message.type === 'not-recorded') return message;
  if (message.type !== 'held') return packToDoors(message, verdicts);
  const { batch, firstId, failures, replies } = message;
  return {
    type: 'held',
    place: [batch, firstId, failures],
    packed: replies.map((reply) => packToDoors(reply, verdicts)),
  };
}

const packToDoors = (message: MainToDoors, verdicts: Verdict[]): PackedMessage =>
  message.type === 'events' ? packEvents(message) : packAnswer(message, verdicts);

export function decodeToIo(bytes: Uint8Array): readonly MainToIo[] {
  const [verdicts, messages] = decode(bytes) as PackedToIo;
  return messages.map((message) => unpackToIo(message, verdicts));
}

function unpackToIo(message: PackedMessage | PackedHeld | NotRecordedMessage, verdicts: readonly Verdict[]): MainToIo {
  if (isPacked(message)) return unpackAnswer(message, verdicts);
  if (message.type === 'not-recorded') return message;
  if (message.type !== 'held') return unpackToDoors(message, verdicts);
  const [batch, firstId, failures] = message.place;
  const replies = message.packed.map((reply) => unpackToDoors(reply, verdicts));
  return { type: 'held', batch, firstId, failures, replies };
}

function unpackToDoors(message: PackedMessage, verdicts: readonly Verdict[]): MainToDoors {
  if (isPacked(message)) return unpackAnswer(message, verdicts);
  return message.type === 'events' ? unpackEvents(message) : message;
}

type PackedAppend = readonly [
  batch: number,
  firstId: number,
  bodies: string,
  count: number,
  strangerBytes: number,
  isAwaited: boolean,
];

export const encodeToAudit = (message: MainToAudit): Uint8Array<ArrayBuffer> =>
  encode(
    message.type === 'append'
      ? ([
          message.batch,
          message.firstId,
          message.bodies,
          message.count,
          message.strangerBytes,
          message.isAwaited,
        ] satisfies PackedAppend)
      : message,
  );

export function decodeToAudit(bytes: Uint8Array): MainToAudit {
  const message = decode(bytes) as PackedAppend | MainToAudit;
  if (!isPacked(message)) return message;
  const [batch, firstId, bodies, count, strangerBytes, isAwaited] = message;
  return { type: 'append', batch, firstId, bodies, count, strangerBytes, isAwaited };
}

const isPacked = <P extends readonly unknown[]>(message: P | object): message is P => Array.isArray(message);

function packCheck(id: number, command: CheckCommand): PackedCheck {
  const { orgId, teamId, agentId } = command.agent;
  const packed: PackedCheck = [
    id,
    orgId,
    teamId,
    agentId,
    command.credential ?? null,
    command.opId,
    command.action,
    command.resource,
    command.attributes ?? null,
    command.estimatedCostMicroUsd,
    command.caller ?? null,
    command.dryRun,
    command.principal ?? null,
    command.supportedObligations ?? null,
  ];
  if (command.home !== undefined) packed.push(command.home);
  return packed;
}

// Decoded texts are parts of the text of the whole message, and whoever keeps one keeps all of that. Ids of operations
// are kept for long, so each is a text of its own from here on.
const withOwnId = (message: IoToMain): IoToMain =>
  message.type === 'command' && message.command.type === 'register-op'
    ? { ...message, command: { ...message.command, opId: copyOf(message.command.opId) as OpId } }
    : message;

function unpackCheck(packed: PackedCheck): IoToMain {
  const [
    id,
    orgId,
    teamId,
    agentId,
    credential,
    opId,
    action,
    resource,
    attributes,
    estimatedCostMicroUsd,
    caller,
    dryRun,
    principal,
    supportedObligations,
    home,
  ] = packed;
  const command: CheckCommand = {
    type: 'check',
    agent: { orgId, teamId, agentId },
    credential: credential ?? undefined,
    opId: copyOf(opId) as OpId,
    action,
    resource,
    attributes: attributes ?? undefined,
    estimatedCostMicroUsd,
    caller: caller ?? undefined,
    dryRun,
    principal: principal ?? undefined,
    supportedObligations: supportedObligations ?? undefined,
    home,
  };
  return { type: 'command', id, command };
}

function packAnswer(message: MainToDoors, verdicts: Verdict[]): PackedAnswer | MainToDoors {
  if (
    message.type !== 'command-reply' ||
    !message.reply.ok ||
    message.elsewhere !== undefined ||
    message.reply.value === undefined ||
    !('decision' in message.reply.value) ||
    message.reply.value.approvalId !== undefined ||
    message.reply.value.decision === 'pending'
  )
    return message;
  const { value } = message.reply;
  return [
    message.id,
    message.auditIndex,
    verdictOf(value, verdicts),
    value.opState === undefined ? -1 : OP_STATES.indexOf(value.opState),
  ];
}

/** How far back an equal verdict is searched for; beyond that, repeating it is cheaper. */
const LOOK_BACK = 4;

function verdictOf(answer: CheckAnswer, verdicts: Verdict[]): number {
  const { decision, reason, policy, ruleId, cause, exceeded, obligations, remedy } = answer;
  const isAllow = decision === 'allow';
  for (let at = verdicts.length - 1; at >= 0 && at >= verdicts.length - LOOK_BACK; at -= 1) {
    const known = verdicts[at]!;
    if (
      known[1] === reason &&
      known[0] === isAllow &&
      known[3] === (ruleId ?? null) &&
      known[2] === (policy ?? null) &&
      known[4] === (cause ?? null) &&
      known[5]?.resetsAtMs === exceeded?.resetsAtMs &&
      known[6] === (obligations ?? null) &&
      known[7] === (remedy ?? null)
    )
      return at;
  }
  // The reason names the tier and the period.
  verdicts.push([
    isAllow,
    reason,
    policy ?? null,
    ruleId ?? null,
    cause ?? null,
    exceeded ?? null,
    obligations ?? null,
    remedy ?? null,
  ]);
  return verdicts.length - 1;
}

function unpackAnswer([id, auditIndex, verdict, opState]: PackedAnswer, verdicts: readonly Verdict[]): MainToDoors {
  const [isAllow, reason, policy, ruleId, cause, exceeded, obligations, remedy] = verdicts[verdict]!;
  const answer: CheckAnswer = {
    decision: isAllow ? 'allow' : 'deny',
    reason,
    policy: policy ?? undefined,
    ruleId: ruleId ?? undefined,
    cause: cause ?? undefined,
    exceeded: exceeded ?? undefined,
    opState: OP_STATES[opState],
    obligations: obligations ?? undefined,
    remedy: remedy ?? undefined,
  };
  return { type: 'command-reply', id, reply: ok(answer), auditIndex };
}

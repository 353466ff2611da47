/** Connects what other gateways of a cluster ask with what decides it. */
import { SharedEvents } from '../../cluster/events.ts';
import type { SharedOrders } from '../../cluster/orders.ts';
import { type AgentLookup, Routing, type RoutingOptions } from '../../cluster/routing.ts';
import { ok } from '../../core/base/result.ts';
import type { Governor } from '../../core/governor.ts';
import type { Closing } from '../../ports/closing.ts';
import type { Bus, Membership, Peers } from '../../ports/cluster.ts';
import type { AuditLog, Clock } from '../../ports/ports.ts';
import type { Logger } from '../../system/log.ts';
import { openPeerDoor } from '../peer-door.ts';
import { PEERS } from '../protocol.ts';
import type { CommandRunner } from './command-runner.ts';
import type { EventBoard } from './event-board.ts';
import type { IoThreads } from './io-threads.ts';
import type { Switchboard } from './switchboard.ts';

export type Deciding = {
  readonly governor: Governor;
  readonly commands: CommandRunner;
  readonly recording: { readonly events: EventBoard };
};

type Routed = Deciding & {
  readonly maxPending: number;
  readonly log: Logger;
  readonly onError: (error: unknown, doing: string) => void;
  readonly threads: IoThreads;
  readonly bus: Bus;
  readonly peers: Peers;
  readonly membership: Membership;
  /** The time of the database. */
  readonly clock: Clock;
  readonly lookup: AgentLookup;
  readonly orders: Pick<SharedOrders, 'give' | 'leave'>;
  readonly audit: AuditLog;
  /** Takes commands from the door of the other gateways. */
  readonly receive: Switchboard['receive'];
  readonly closers: Closing;
};

const EVENT_OF = { pause: 'OpPaused', resume: 'OpResumed', terminate: 'OpTerminated' } as const;

export function startRouting({
  log,
  audit,
  orders,
  threads,
  governor,
  commands,
  receive,
  bus,
  closers,
  recording: { events: board },
  ...given
}: Routed): Routing {
  const door = openPeerDoor({
    threads,
    switchboard: { receive },
    maxPending: given.maxPending,
    onMessage: (message) => {
      if (message.type === 'events') for (const event of message.events) events.take(event);
    },
  });
  const events = new SharedEvents({
    bus,
    membership: given.membership,
    setInterest: (interest) => door.notify({ type: 'interest', interest }),
    show: (event) => board.show(event),
    lost: (count) => board.reportLost((io) => threads.send(io, { type: 'events-lost', count })),
    steadyMs: () => performance.now(),
  });
  board.followInterest((interest) => events.watch(interest));
  closers.add('the events of other gateways', () => events.stop());
  return new Routing({
    ...given,
    ops: governor.ops,
    peersIo: PEERS,
    decideHere: async (command) => door.ask(command),
    resume: (io, id, command) => commands.performAlone(io, id, command),
    answer: (io, id, reply, elsewhere) =>
      threads.send(io, { type: 'command-reply', id, reply, auditIndex: -1, ...(elsewhere && { elsewhere }) }),
    orderAbsent: orderingAbsent({ orders, audit }),
    leaveOrder: (command, away) => orders.leave(command, away),
    steadyMs: () => performance.now(),
    warn: (message) => log.warn(message),
  });
}

/** Orders to operations of gateways that have ended, and of those that do not answer. */
const orderingAbsent =
  ({ orders, audit }: Pick<Routed, 'orders' | 'audit'>): RoutingOptions['orderAbsent'] =>
  async (command, away) => {
    const { principal, opId, trigger } = command;
    if (trigger === 'complete') return undefined;
    const entry = { eventType: EVENT_OF[trigger], actor: principal.subject, opId };
    const given = await orders.give(command, away, (lineage, home) =>
      audit.record({ ...entry, lineage, payload: { op_home: home } }),
    );
    if (given === undefined || !given.ok) return given;
    return { ...ok(given.value.op), unconfirmed: given.value.unconfirmed };
  };

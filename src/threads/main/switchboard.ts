import type { AgentIdentity, SecretDigest } from '../../core/base/ids.ts';
import { assertNever } from '../../core/base/result.ts';
import type { Command } from '../../core/commands.ts';
import type { Governor } from '../../core/governor.ts';
import type { UseCases } from '../../use-cases/use-cases.ts';
import type { IoId, IoToMain } from '../protocol.ts';
import type { CommandRunner } from './command-runner.ts';
import type { ControlStreams } from './control-streams.ts';
import type { EventBoard } from './event-board.ts';
import type { IoThreads } from './io-threads.ts';
import type { Recorder } from './recorder.ts';
import type { ServingGate } from './serving-gate.ts';
import { refusalOf } from './unrecorded.ts';

/** Takes commands that are decided elsewhere, or later. False: it is decided here, now. */
export type Diversion = { divert(io: IoId, id: number, command: Command): boolean };

export type SwitchboardOptions = {
  readonly governor: Governor;
  readonly threads: IoThreads;
  readonly events: EventBoard;
  readonly controlStreams: ControlStreams;
  readonly recorder: Recorder;
  readonly commands: CommandRunner;
  readonly useCases: UseCases;
  /** In a cluster: unknown tokens are looked up, and operations live where they began. */
  readonly diversion?: Diversion | undefined;
  /** In a cluster: requests wait a moment while this gateway catches up. */
  readonly gate?: ServingGate | undefined;
  readonly onError: (error: unknown, doing: string) => void;
};

/** Takes what I/O threads send, and has it decided by the governor or done by a use case. */
export class Switchboard {
  readonly #options: SwitchboardOptions;

  constructor(options: SwitchboardOptions) {
    this.#options = options;
  }

  /** Call it when the thread is gone, with its sockets, readers and streams. */
  disconnect(io: IoId): void {
    const { threads, commands, events, governor, controlStreams } = this.#options;
    threads.disconnect(io);
    commands.dropThread(io);
    events.dropThread(io);
    governor.isWatched = events.isWatched;
    controlStreams.dropThread(io);
  }

  /** The agent of this token, unless this gateway catches up with others, which may have changed it. */
  ownerOf(credential: SecretDigest): AgentIdentity | undefined {
    const { gate, governor } = this.#options;
    return gate === undefined || gate.isOpen ? governor.agents.ownerOf(credential)?.identity : undefined;
  }

  /** A batch of messages from the doors. Commands are applied in their order, and recorded as one batch. */
  receive(io: IoId, messages: readonly IoToMain[]): void {
    const { gate } = this.#options;
    if (gate === undefined || gate.isOpen) return this.#receiveNow(io, messages);
    gate.pass(messages, (passed, refusals) => {
      for (const refusal of refusals) this.#options.threads.send(io, refusal);
      this.#receiveNow(io, passed);
    });
  }

  #receiveNow(io: IoId, messages: readonly IoToMain[]): void {
    const { commands, diversion, recorder } = this.#options;
    const batch = recorder.begin(io);
    for (const message of messages) {
      if (message.type === 'command') {
        if (diversion?.divert(io, message.id, message.command)) continue;
        commands.perform(message.id, message.command, batch);
      } else if (message.type === 'located') commands.performLocated(message.id, message.network, batch);
      else this.#receiveOther(io, message);
    }
    recorder.finish(batch);
  }

  #receiveOther(io: IoId, message: Exclude<IoToMain, { type: 'command' | 'located' }>): void {
    const { controlStreams, events, governor, threads } = this.#options;
    switch (message.type) {
      case 'call':
        return void this.#call(io, message.id, message.name, message.input);
      case 'interest':
        events.setInterest(io, message.interest);
        governor.isWatched = events.isWatched;
        return;
      case 'control-closed':
        return controlStreams.close(message.agent, { io, stream: message.stream });
      case 'confirmed':
        return threads.noteConfirmed(io, message.number);
      case 'stats':
        this.#options.commands.reportUnauthenticated();
        threads.noteStats(io, message.stats);
        return threads.sendAgentCount(io, governor.agents.registeredCount);
      default:
        return assertNever(message);
    }
  }

  async #call(io: IoId, id: number, name: keyof UseCases, input: unknown): Promise<void> {
    try {
      const reply = await this.#options.useCases[name](input as never);
      this.#options.threads.send(io, { type: 'call-reply', id, reply });
    } catch (error) {
      this.#options.onError(error, name);
      this.#options.threads.send(io, { type: 'call-reply', id, reply: refusalOf(error) });
    }
  }
}

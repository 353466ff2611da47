import type { AgentKey } from '../../core/base/ids.ts';
import type { IoId } from '../protocol.ts';

/** The agent's end of a control stream: its I/O thread, and its number there. */
type Place = { readonly io: IoId; readonly stream: number };

/** The control streams that agents have open, in whichever I/O thread. An agent may have several. */
export class ControlStreams {
  readonly #byAgent = new Map<AgentKey, Map<string, Place>>();

  open(agent: AgentKey, { io, stream }: Place): void {
    const streams = this.#byAgent.get(agent) ?? new Map<string, Place>();
    streams.set(`${io}:${stream}`, { io, stream });
    this.#byAgent.set(agent, streams);
  }

  close(agent: AgentKey, { io, stream }: Place): void {
    const streams = this.#byAgent.get(agent);
    streams?.delete(`${io}:${stream}`);
    if (streams?.size === 0) this.#byAgent.delete(agent);
  }

  /** Removes all streams of a thread that is gone. */
  dropThread(io: IoId): void {
    for (const [agent, streams] of this.#byAgent) {
      for (const [id, place] of streams) if (place.io === io) streams.delete(id);
      if (streams.size === 0) this.#byAgent.delete(agent);
    }
  }

  of(agent: AgentKey): Iterable<Place> {
    return this.#byAgent.get(agent)?.values() ?? [];
  }
}

/** `svc mcp guard`: a proxy between a client and one MCP server, both on pipes. Standard output is the client's. */
import { type Credential, GatewayCalls } from '../client/calls.ts';
import type { GatewayAddress } from '../client/environment.ts';
import { messageOf } from '../core/base/text.ts';
import { nameOfCommand, openChild, wholeEnvironment } from './child.ts';
import { Gateway } from './gateway.ts';
import { FROM_CLIENT } from './json-bounds.ts';
import { PinStore } from './pin-store.ts';
import { Session } from './session.ts';
import { Signals } from './signals.ts';
import { MessageWriter, noiseAnswer, readMessages } from './stdio.ts';

export type GuardOptions = {
  readonly address: GatewayAddress;
  readonly credential: Credential;
  readonly server: string | undefined;
  readonly command: readonly string[];
  readonly pinsPath: string;
};

/** For the ends of what runs to be reported, after the server has gone. */
const LAST_ANSWERS_MS = 5_000;

/** Resolves to the exit status: 0 when the client ended it, 1 when the server did. */
export async function guard({ address, credential, server, command, pinsPath }: GuardOptions): Promise<number> {
  const log = (line: string): void => void process.stderr.write(`svc mcp guard: ${line}\n`);
  const pins = new PinStore(pinsPath); // first: it may refuse, and nothing must be open then
  const calls = new GatewayCalls(address);
  const signals = new Signals(credential, address.grpc);
  const agent = new MessageWriter(process.stdout);
  let close: (status: number) => void = () => {};
  // From then on it ends what it has begun: that pipes close is no news.
  let isOver = false;
  const closed = new Promise<number>((resolve) => {
    close = resolve;
  });
  const gateway = new Gateway(calls, credential);
  // An empty list of tools would be all that a person sees of it.
  void gateway.isKnown().then(({ known, reason }) => {
    if (!known && !isOver) log(`every call is denied until this is fixed: ${reason}`);
  });
  const session = new Session({
    gateway,
    signals,
    pins,
    log,
    servers: [
      {
        name: server ?? nameOfCommand(command),
        open: (events) => openChild({ command, env: wholeEnvironment(process.env), ready: agent.drained, log }, events),
      },
    ],
    isPrefixed: false,
    tellsWithheld: true,
    // A client that has gone is noticed by the end of its input.
    toAgent: (message) => void agent.send(message).catch(() => {}),
    onServerClosed: (name, why) => {
      if (isOver) return;
      log(`the MCP server ${name} has ended: ${why}`);
      // Earlier requests are answered first.
      void session.idleWithin(LAST_ANSWERS_MS).then(() => close(1));
    },
  });
  readMessages(process.stdin, {
    onMessage: (message) => session.receive(message),
    onNoise: (noise) => {
      void agent.send(noiseAnswer(noise)).catch(() => {});
      if (noise.method !== undefined) session.noteRefused(noise.method, undefined, noise.problem);
    },
    bounds: FROM_CLIENT,
    ready: () => undefined,
  })
    .catch((error: unknown) => {
      if (!isOver) log(`the client cannot be read: ${messageOf(error)}`);
    })
    .finally(() => close(0));
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => close(0));
  const status = await closed;
  isOver = true;
  await session.close();
  await signals.close();
  calls.close();
  process.stdin.destroy();
  return status;
}

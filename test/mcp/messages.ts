/** `svc mcp guard` as a bare pair of pipes, for what a well-behaved client never does. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { SVC } from '../support/cli.ts';
import { endIfOrphaned } from '../support/orphans.ts';
import { SCRIPTED, type World } from './harness.ts';

export type BareGuard = {
  readonly child: ChildProcess;
  /** Every line of its standard output. */
  readonly lines: string[];
  readonly stderr: () => string;
  readonly ended: Promise<number | null>;
  send(message: object | string): void;
  /** Sends a request and answers what it is answered. */
  ask(id: number, method: string, params?: object): Promise<any>;
  /** The first message that is one of these. */
  until(isIt: (message: any) => boolean): Promise<any>;
};

export function bareGuard(world: World, env: Readonly<Record<string, string>> = {}): BareGuard {
  const child = spawn(process.execPath, [SVC, 'mcp', 'guard', '--server', 'every', '--', process.execPath, SCRIPTED], {
    env: { ...world.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  endIfOrphaned(child);
  let stderr = '';
  child.stderr.on('data', (piece: Buffer) => {
    stderr += piece.toString();
  });
  const lines: string[] = [];
  const lookers = new Set<() => void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    for (const look of lookers) look();
  });
  const until = (isIt: (message: any) => boolean): Promise<any> =>
    new Promise((resolve) => {
      const look = (): void => {
        const found = lines.map((line) => JSON.parse(line)).find(isIt);
        if (found === undefined) return;
        lookers.delete(look);
        resolve(found);
      };
      lookers.add(look);
      look();
    });
  const send = (message: object | string): void => {
    child.stdin.write(`${typeof message === 'string' ? message : JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  };
  return {
    child,
    lines,
    stderr: () => stderr,
    ended: new Promise((resolve) => child.once('close', resolve)),
    send,
    ask: (id, method, params) => {
      send({ id, method, ...(params && { params }) });
      return until((message) => message.id === id && message.method === undefined);
    },
    until,
  };
}

export const HELLO = {
  protocolVersion: '2025-11-25',
  capabilities: {},
  clientInfo: { name: 'bare', version: '1' },
};

/** The policies of a cluster, which are published to all its gateways. */

import { fail, ok, type Result } from '../core/base/result.ts';
import { explain, type Fault } from '../core/fault.ts';
import { type LoadedPolicies, renderPolicyProblem, textsOfFiles } from '../policy-files/policy-file.ts';
import type { Peers, PolicyShelf, PolicyText } from '../ports/cluster.ts';
import type { Logger } from '../system/log.ts';
import { StartError } from '../system/start-error.ts';
import { proposed } from './log.ts';
import { ClusterPolicies } from './policies.ts';
import type { States } from './states.ts';

const ACTIVATED_WITHIN_MS = 3_000;

/** Asks the database until it answers, for as long as a start waits for it. */
type Wait = <T>(ask: () => Promise<Result<T, Fault>>) => Promise<T>;

export type ShelfStart = {
  readonly sets: PolicyShelf;
  readonly compile: (texts: readonly PolicyText[]) => Promise<Result<LoadedPolicies, readonly string[]>>;
  readonly states: Pick<States, 'log' | 'everywhere'>;
  readonly peers: Peers;
  readonly name: string;
  readonly log: Logger;
  readonly wait: Wait;
  /** The first set, where there is none yet. */
  readonly policyPath: string;
};

export type Shelf = {
  readonly policies: ClusterPolicies;
  /** The policies of this gateway from its start on. */
  readonly inForce: LoadedPolicies;
  /** Call it when the gateway has joined: then no other one is in force anywhere. */
  begin(): Promise<void>;
};

export async function openShelf(start: ShelfStart): Promise<Shelf> {
  const { sets, compile, states, peers, name, log, wait, policyPath } = start;
  const policies = new ClusterPolicies({
    name,
    shelf: sets,
    peers,
    activate: async (version, by, isFirst) => {
      const entry = { kind: 'policy', id: 'active', body: { version, by }, ...(isFirst && { expects: 0 }) } as const;
      const written = await proposed(states.log, [entry], ACTIVATED_WITHIN_MS);
      if (written.ok) return ok(await states.everywhere.pass(written.value));
      // Another one was faster.
      return written.fault.kind === 'refused' ? ok([]) : fail(written.fault);
    },
    compile,
    log,
  });
  const active = await wait(async () => {
    const inForce = await policies.inForce();
    if (inForce.ok || inForce.fault.kind === 'store_unreachable') return inForce;
    throw new StartError(`the policies of the cluster cannot be loaded: ${explain(inForce.fault)}`);
  });
  if (active !== undefined) return { policies, inForce: active, begin: async () => undefined };
  const texts = await textsOfFiles(policyPath);
  const compiled = texts.ok ? await compile(texts.value) : fail(texts.fault.map(renderPolicyProblem));
  if (!texts.ok || !compiled.ok) throw new StartError(compiled.ok ? policyPath : compiled.fault.join('\n'));
  const begin = async (): Promise<void> => {
    await wait(() => policies.begin({ ...compiled.value, texts: texts.value }));
  };
  return { policies, inForce: compiled.value, begin };
}

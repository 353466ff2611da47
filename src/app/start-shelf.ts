/** The policies of a cluster, which are published to all its gateways. */
import { proposed } from '../cluster/log.ts';
import { ClusterPolicies } from '../cluster/policies.ts';
import { fail, ok } from '../core/base/result.ts';
import { explain } from '../core/fault.ts';
import { type LoadedPolicies, renderPolicyProblem, textsOfFiles } from '../policy-files/policy-file.ts';
import type { Peers, RunId } from '../ports/cluster.ts';
import type { PolicyVersions, ShadowStore } from '../ports/policy-versions.ts';
import {
  createPostgresPolicies,
  createPostgresPolicyVersions,
  createPostgresShadow,
} from '../stores/postgres/cluster/policies.ts';
import type { Postgres } from '../stores/postgres/postgres.ts';
import type { StartWait } from '../stores/postgres/start-wait.ts';
import type { Logger } from '../system/log.ts';
import { StartError } from '../system/start-error.ts';
import { compileTexts } from './start-policies.ts';
import type { States } from './start-states.ts';

const ACTIVATED_WITHIN_MS = 3_000;

export type ShelfStart = {
  readonly postgres: Postgres;
  readonly states: Pick<States, 'log' | 'everywhere'>;
  readonly peers: Peers;
  readonly run: RunId;
  readonly name: string;
  readonly log: Logger;
  readonly wait: StartWait;
  /** The first set, where there is none yet. */
  readonly policyPath: string;
};

export type Shelf = {
  readonly policies: ClusterPolicies;
  readonly policyStores: { readonly versions: PolicyVersions; readonly shadow: ShadowStore };
  /** The policies of this gateway from its start on. */
  readonly inForce: LoadedPolicies;
  /** Call it when the gateway has joined: then no other one is in force anywhere. */
  begin(): Promise<void>;
};

/** Limits count at one gateway: in a cluster, none would be kept as it is written. */
const compileShared: typeof compileTexts = async (texts) => {
  const compiled = await compileTexts(texts);
  const [limit] = compiled.ok ? compiled.value.policies.limits : [];
  return limit === undefined
    ? compiled
    : fail([
        `policy ${limit.policy} has limits (${limit.limit.id}), which a cluster cannot keep yet: take out \`limits:\`, or run a single gateway`,
      ]);
};

export async function openShelf(start: ShelfStart): Promise<Shelf> {
  const { postgres, run, states, peers, name, log, wait, policyPath } = start;
  const sets = createPostgresPolicies(postgres);
  const policyStores = {
    versions: createPostgresPolicyVersions(postgres, sets),
    shadow: createPostgresShadow(postgres, run),
  };
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
    compile: compileShared,
    log,
  });
  const trouble = (): string | undefined => postgres.trouble;
  const active = await wait.value(async () => {
    const inForce = await policies.inForce();
    if (inForce.ok || inForce.fault.kind === 'store_unreachable') return inForce;
    throw new StartError(`the policies of the cluster cannot be loaded: ${explain(inForce.fault)}`);
  }, trouble);
  if (active !== undefined) return { policies, policyStores, inForce: active, begin: async () => undefined };
  const texts = await textsOfFiles(policyPath);
  const compiled = texts.ok ? await compileShared(texts.value) : fail(texts.fault.map(renderPolicyProblem));
  if (!texts.ok || !compiled.ok) throw new StartError(compiled.ok ? policyPath : compiled.fault.join('\n'));
  const begin = async (): Promise<void> => {
    await wait.value(() => policies.begin({ ...compiled.value, texts: texts.value }), trouble);
  };
  return { policies, policyStores, inForce: compiled.value, begin };
}

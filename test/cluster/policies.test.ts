/** Policies of several gateways over one shelf in memory: published, refused by one of them, and missed by another. */
import { describe, expect, test } from 'vitest';
import { ClusterPolicies } from '../../src/cluster/policies.ts';
import { fail, ok, type Result } from '../../src/core/base/result.ts';
import type { Fault } from '../../src/core/fault.ts';
import { loadPolicyTexts, renderPolicyProblem } from '../../src/policy-files/policy-file.ts';
import type { Member, Peers, PolicyShelf, PolicyText } from '../../src/ports/cluster.ts';

const documentOf = (effect: string): readonly PolicyText[] => [
  { file: 'p.yaml', text: `name: p\nscope: global\nrules:\n  - { id: all, effect: ${effect} }\n` },
];
const AWAY: Fault = { kind: 'store_unreachable', retryAfterSecs: 1 };
const UNRECORDED: Fault = { kind: 'audit_unavailable' };

type Prepare = (asked: { readonly version: string }) => Promise<{ readonly problems?: readonly string[] }>;

/** Gateways by name on one shelf; each follows what is put in force, unless it is cut off. */
class Cluster {
  readonly sets = new Map<string, readonly PolicyText[]>();
  active: { readonly version: string; readonly by: string } | undefined;
  isAway = false;
  readonly #prepares = new Map<string, Prepare>();
  readonly #gateways = new Map<string, ReturnType<Cluster['open']>>();

  open(name: string) {
    const reach = <T>(value: () => T): Promise<Result<T, Fault>> =>
      Promise.resolve(this.isAway ? fail(AWAY) : ok(value()));
    const shelf: PolicyShelf = {
      active: () => reach(() => this.active),
      read: (version) => reach(() => this.sets.get(version)),
      add: ({ version }, texts) => reach(() => void this.sets.set(version, texts)),
    };
    const peers = {
      serve: (_: string, answer: Prepare) => void this.#prepares.set(name, answer),
      askAll: (_: string, asked: { readonly version: string }) => this.#prepared(name, asked),
    } as unknown as Peers;
    const gateway = {
      version: 'none',
      actors: [] as string[],
      compiled: 0,
      isCutOff: false,
      canRecord: true,
      /** A question it does not know yet, as an older release. */
      refuses: undefined as string | undefined,
      logged: 0,
      policies: new ClusterPolicies({
        name,
        shelf,
        log: { error: () => void (gateway.logged += 1) },
        peers,
        activate: (version, by, isFirst) => this.#activate(version, by, isFirst),
        compile: async (texts) => {
          gateway.compiled += 1;
          if (gateway.refuses !== undefined && texts[0]!.text.includes(gateway.refuses))
            return fail(['p.yaml:4:3: unknown key']);
          const loaded = loadPolicyTexts(texts);
          return loaded.ok ? loaded : fail(loaded.fault.map(renderPolicyProblem));
        },
      }),
    };
    gateway.policies.follow({
      version: () => gateway.version,
      install: async ({ policies }, actor) => {
        if (!gateway.canRecord) return fail(UNRECORDED);
        gateway.version = policies.version;
        gateway.actors.push(actor);
        return ok(undefined);
      },
    });
    this.#gateways.set(name, gateway);
    return gateway;
  }

  async #prepared(from: string, asked: { readonly version: string }) {
    const answers: { readonly from: Member; readonly answer: Awaited<ReturnType<Prepare>> }[] = [];
    for (const [name, prepare] of this.#prepares)
      if (name !== from && !this.#gateways.get(name)!.isCutOff)
        answers.push({ from: { name } as Member, answer: await prepare(asked) });
    return ok({ answers, missing: [] });
  }

  /** As an entry of the log, which all apply; with the names of those that do not act by it. */
  async #activate(version: string, by: string, isFirst: boolean): Promise<Result<readonly string[], Fault>> {
    if (this.isAway) return fail(AWAY);
    if (!isFirst || this.active === undefined) this.active = { version, by };
    return ok(await this.followAll());
  }

  async followAll(): Promise<readonly string[]> {
    const missing: string[] = [];
    const { version, by } = this.active!;
    for (const [name, { isCutOff, policies }] of this.#gateways)
      if (isCutOff || !(await policies.followTo(version, by))) missing.push(name);
    return missing;
  }
}

const openCluster = () => {
  const cluster = new Cluster();
  return { cluster, one: cluster.open('one'), two: cluster.open('two'), three: cluster.open('three') };
};

describe('policies of a cluster', () => {
  test('are in force everywhere once they are published, each compiled once', async () => {
    const { cluster, one, two, three } = openCluster();
    const published = await one.policies.publish(documentOf('allow'), 'key:admin');
    const { version } = cluster.active!;
    expect(published).toEqual({
      ok: true,
      value: { version, documents: 1, changed: true, warnings: [] },
      unconfirmed: [],
    });
    expect([one.version, two.version, three.version]).toEqual([version, version, version]);
    expect([two.actors, two.compiled, one.compiled]).toEqual([['key:admin'], 1, 1]);
    expect((await two.policies.publish(documentOf('allow'), 'key:other')).ok).toBe(true);
    expect(one.actors).toEqual(['key:admin']); // nothing has changed
  });

  test('do not change if one gateway cannot compile them; it says why', async () => {
    const { cluster, one, two, three } = openCluster();
    await one.policies.publish(documentOf('allow'), 'key:admin');
    const before = cluster.active;
    three.refuses = 'deny';
    const refused = await two.policies.publish(documentOf('deny'), 'key:admin');
    expect(refused).toEqual(fail({ kind: 'policy_invalid', problems: ['gateway three: p.yaml:4:3: unknown key'] }));
    const wrong = await two.policies.publish(documentOf('perhaps'), 'key:admin');
    expect(wrong).toMatchObject({ ok: false, fault: { kind: 'policy_invalid' } });
    expect(cluster.active).toEqual(before);
    expect([one.version, two.version, three.version]).toEqual(Array(3).fill(before!.version));
  });

  test('name a gateway that is cut off, which follows when it reads again', async () => {
    const { cluster, one, two, three } = openCluster();
    three.isCutOff = true;
    expect(await one.policies.publish(documentOf('allow'), 'key:admin')).toMatchObject({ unconfirmed: ['three'] });
    expect([two.version === one.version, three.version]).toEqual([true, 'none']);
    three.isCutOff = false;
    expect(await cluster.followAll()).toEqual([]);
    expect(three.version).toBe(one.version);
  });

  test('stay what they were at one that cannot read them; it tries to compile them once', async () => {
    const { cluster, one, three } = openCluster();
    three.isCutOff = true;
    three.refuses = 'allow';
    await one.policies.publish(documentOf('allow'), 'key:admin');
    three.isCutOff = false;
    for (let reading = 0; reading < 5; reading += 1) expect(await cluster.followAll()).toEqual(['three']);
    expect([three.version, three.compiled, three.logged]).toEqual(['none', 1, 1]);
    await one.policies.publish(documentOf('deny'), 'key:admin');
    expect(three.version).toBe(one.version);
  });

  test('come into force again by their version, as long as they are kept', async () => {
    const { cluster, one, two } = openCluster();
    await one.policies.publish(documentOf('allow'), 'key:admin');
    const first = one.version;
    await one.policies.publish(documentOf('deny'), 'key:admin');
    expect(await two.policies.publishAgain(first, 'key:admin')).toMatchObject({ value: { changed: true } });
    expect([one.version, two.version, cluster.active?.version]).toEqual([first, first, first]);
    expect(await two.policies.publishAgain('none', 'key:admin')).toMatchObject({ fault: { kind: 'not_found' } });
  });

  test('are the first gateway that joins has, also if two join at once', async () => {
    const { cluster, one, two } = openCluster();
    const [allow, deny] = [documentOf('allow'), documentOf('deny')].map((texts) => {
      const loaded = loadPolicyTexts(texts);
      if (!loaded.ok) throw new Error('invalid');
      return { set: { ...loaded.value, texts }, version: loaded.value.policies.version };
    });
    await Promise.all([one.policies.begin(allow!.set), two.policies.begin(deny!.set)]);
    expect(cluster.active).toEqual({ version: allow!.version, by: 'gateway' });
    expect([one.version, two.version]).toEqual([allow!.version, allow!.version]);
    const late = cluster.open('late');
    await late.policies.begin(deny!.set);
    await cluster.followAll();
    expect(late.version).toBe(allow!.version);
  });

  test('do not change without the database, nor at a gateway that cannot record it', async () => {
    const { cluster, one, two } = openCluster();
    await one.policies.publish(documentOf('allow'), 'key:admin');
    const first = one.version;
    cluster.isAway = true;
    expect(await one.policies.publish(documentOf('deny'), 'key:admin')).toEqual(fail(AWAY));
    expect([one.version, two.version]).toEqual([first, first]);
    cluster.isAway = false;
    one.canRecord = false;
    expect(await one.policies.publish(documentOf('deny'), 'key:admin')).toMatchObject({ unconfirmed: ['one'] });
    expect([one.version === first, two.version === first]).toEqual([true, false]);
    one.canRecord = true;
    await cluster.followAll();
    expect(one.version).toBe(two.version);
  });
});

/** Checks of compose.cluster.yaml without containers: its gateways start as one, and all that it names is there. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { VARIABLES } from '../src/config/config.ts';
import { readConfig, unknownVariables } from '../src/config/read.ts';
import { PACKAGE_ROOT } from '../src/system/package-files.ts';

type Service = {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly depends_on?: object | readonly string[];
  readonly stop_grace_period?: string;
};
type Compose = {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: object;
  readonly configs: { readonly haproxy: { readonly content: string } };
};

const GIVEN: Readonly<Record<string, string>> = {
  POSTGRES_PASSWORD: 'a-password',
  SVC_BOOTSTRAP_API_KEY: 'a-key-of-more-than-32-characters-0123456789',
};
/** As compose puts variables in: `${NAME:?why}` has to be given, `${NAME:-otherwise}` need not be. */
const text = readFileSync(join(PACKAGE_ROOT, 'deploy', 'compose.cluster.yaml'), 'utf8').replaceAll(
  /\$\{(\w+):([?-])([^}]*)\}/g,
  (_, name: string, kind: string, rest: string) => {
    const value = GIVEN[name] ?? (kind === '-' ? rest : undefined);
    if (value === undefined) throw new Error(`${name} is not given`);
    return value;
  },
);
const { services, volumes, configs } = parse(text, { merge: true }) as Compose;
const gateways = Object.entries(services).filter(([name]) => name.startsWith('gateway-'));

describe('compose.cluster.yaml', () => {
  test('starts three gateways that act as one, each with a name and data of its own', () => {
    expect(gateways).toHaveLength(3);
    for (const [name, { environment = {}, volumes: mounted }] of gateways) {
      expect(unknownVariables(environment)).toEqual([]);
      const config = readConfig({ ...environment, SVC_JWT_PRIVATE_KEY: '' });
      expect(!config.ok && config.fault.problems).toEqual([
        'SVC_CLUSTER requires SVC_JWT_PRIVATE_KEY, the same at every gateway',
      ]);
      expect(environment).toMatchObject({ SVC_CLUSTER: 'on', SVC_NODE_NAME: name });
      expect(mounted).toEqual([`${name}:/data`, 'keys:/keys:ro']);
    }
    const shared = gateways.map(([, { environment }]) => ({ ...environment, SVC_NODE_NAME: undefined }));
    expect(shared[1]).toEqual(shared[0]);
    expect(shared[2]).toEqual(shared[0]);
  });

  test('names nothing that is not there', () => {
    for (const { depends_on: needed = [], volumes: mounted = [] } of Object.values(services)) {
      for (const name of Array.isArray(needed) ? needed : Object.keys(needed)) expect(services).toHaveProperty(name);
      for (const mount of mounted) expect(volumes).toHaveProperty(mount.split(':')[0]!);
    }
    const named = [...configs.haproxy.content.matchAll(/^ +server (\S+) (\S+):(\d+)/gm)].map(([, ...parts]) => parts);
    const servers = (port: string): string[][] => gateways.map(([name]) => [name, name, port]);
    expect(named).toEqual([...servers('8080'), ...servers('50051')]);
  });

  test('leaves a gateway the time that it takes to stop', () => {
    for (const [, { stop_grace_period: grace = '' }] of gateways)
      expect(Number.parseInt(grace, 10)).toBeGreaterThan(Number(VARIABLES.SVC_SHUTDOWN_SECS.fallback));
  });
});

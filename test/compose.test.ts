/** Checks of the files of Docker Compose without containers: gateways start by them, and all that they name is there. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { VARIABLES } from '../src/config/config.ts';
import { readConfig, unknownVariables } from '../src/config/read.ts';
import { PACKAGE_ROOT } from '../src/system/package-files.ts';
import { conforms } from './support/json-schema.ts';

type Service = {
  readonly image: string;
  readonly build?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly depends_on?: object | readonly string[];
  readonly configs?: readonly { readonly source: string }[];
  readonly stop_grace_period?: string;
};
type Compose = {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: object;
  readonly configs?: { readonly haproxy: { readonly content: string } };
};

const GIVEN: Readonly<Record<string, string>> = {
  POSTGRES_PASSWORD: 'a-password',
  SVC_BOOTSTRAP_API_KEY: 'a-key-of-more-than-32-characters-0123456789',
};
/** As Compose puts variables in: `${NAME:?why}` has to be given, `${NAME:-otherwise}` need not be. */
function read(name: string): Compose {
  const text = readFileSync(join(PACKAGE_ROOT, 'deploy', name), 'utf8').replaceAll(
    /\$\{(\w+):([?-])([^}]*)\}/g,
    (_, variable: string, kind: string, rest: string) => {
      const value = GIVEN[variable] ?? (kind === '-' ? rest : undefined);
      if (value === undefined) throw new Error(`${variable} is not given`);
      return value;
    },
  );
  return parse(text, { merge: true }) as Compose;
}

const TEXT = { type: 'string', minLength: 1 };
const TEXTS = { type: 'array', items: TEXT };
const DURATION = { type: 'string', pattern: '^\\d+s$' };
const object = (properties: object, required: readonly string[] = []): object => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
/** The part of the Compose Specification that the files use. */
const SERVICE = object(
  {
    build: TEXT,
    cap_drop: TEXTS,
    command: TEXTS,
    configs: { type: 'array', items: object({ source: TEXT, target: TEXT }, ['source', 'target']) },
    depends_on: {
      oneOf: [
        TEXTS,
        {
          type: 'object',
          additionalProperties: object(
            { condition: { enum: ['service_started', 'service_healthy', 'service_completed_successfully'] } },
            ['condition'],
          ),
        },
      ],
    },
    entrypoint: TEXTS,
    environment: { type: 'object', additionalProperties: TEXT },
    healthcheck: object({ test: TEXTS, interval: DURATION, timeout: DURATION, retries: { type: 'integer' } }, ['test']),
    image: TEXT,
    ports: { type: 'array', items: { type: 'string', pattern: '^(?:127\\.0\\.0\\.1:)?\\d+:\\d+$' } },
    read_only: { type: 'boolean' },
    restart: { enum: ['no', 'always', 'on-failure', 'unless-stopped'] },
    security_opt: TEXTS,
    stop_grace_period: DURATION,
    user: TEXT,
    volumes: { type: 'array', items: { type: 'string', pattern: '^[\\w-]+:/[\\w/-]+(?::ro)?$' } },
  },
  ['image'],
);
const COMPOSE = object(
  {
    'x-gateway': { type: 'object' },
    'x-settings': { type: 'object' },
    services: { type: 'object', additionalProperties: SERVICE },
    volumes: { type: 'object', additionalProperties: { enum: [null] } },
    configs: { type: 'object', additionalProperties: object({ content: TEXT }, ['content']) },
  },
  ['services'],
);
/** The variables that each image of others is given. */
const TOLD: Readonly<Record<string, readonly string[]>> = {
  'postgres:17': ['POSTGRES_DB', 'POSTGRES_PASSWORD', 'POSTGRES_USER'],
  'haproxy:3.0': [],
};

const FILES = readdirSync(join(PACKAGE_ROOT, 'deploy')).filter((name) => /^compose\b.*\.yaml$/.test(name));

describe('files of Docker Compose', () => {
  test('are the two that the documents know', () => {
    expect(FILES.sort()).toEqual(['compose.cluster.yaml', 'compose.yaml']);
  });

  test.each(FILES)('%s conforms to the Compose Specification', (file) => {
    const compose = read(file);
    const wrong = Object.entries(compose.services).filter(([, service]) => !conforms(service, SERVICE));
    expect(wrong).toEqual([]);
    expect(conforms(compose, COMPOSE)).toBe(true);
  });

  test.each(FILES)('%s names nothing that is not there', (file) => {
    const { services, volumes, configs = {} } = read(file);
    for (const { depends_on: needed = [], volumes: mounted = [], configs: used = [], build } of Object.values(
      services,
    )) {
      for (const name of Array.isArray(needed) ? needed : Object.keys(needed)) expect(services).toHaveProperty(name);
      for (const mount of mounted) expect(volumes).toHaveProperty(mount.split(':')[0]!);
      for (const { source } of used) expect(configs).toHaveProperty(source);
      if (build !== undefined) expect(existsSync(join(PACKAGE_ROOT, 'deploy', build, 'Dockerfile'))).toBe(true);
    }
  });

  test.each(FILES)('%s tells each image what it knows', (file) => {
    for (const { image, environment = {} } of Object.values(read(file).services)) {
      if (image === 'svc-gateway') expect(unknownVariables(environment)).toEqual([]);
      else expect({ image, told: Object.keys(environment).sort() }).toEqual({ image, told: TOLD[image] });
    }
  });

  test.each(FILES)('%s leaves a gateway the time that it takes to stop', (file) => {
    const gateways = Object.entries(read(file).services).filter(([name]) => name.startsWith('gateway'));
    expect(gateways.length).toBeGreaterThan(0);
    for (const [, { stop_grace_period: grace = '' }] of gateways)
      expect(Number.parseInt(grace, 10)).toBeGreaterThan(Number(VARIABLES.SVC_SHUTDOWN_SECS.fallback) + 3);
  });

  test('are started by commands that name them, wherever one is written', () => {
    const pages = ['docs', 'deploy'].flatMap((folder) =>
      readdirSync(join(PACKAGE_ROOT, folder))
        .filter((name) => /\.(?:md|yaml)$/.test(name))
        .map((name) => readFileSync(join(PACKAGE_ROOT, folder, name), 'utf8')),
    );
    const commands = pages.flatMap((page) => page.match(/\bdocker compose [^`\n]*/g) ?? []);
    expect([...new Set(commands)].sort()).toEqual([
      'docker compose -f deploy/compose.cluster.yaml up --build',
      'docker compose -f deploy/compose.yaml up --build',
    ]);
  });
});

describe('compose.yaml', () => {
  test('starts one gateway with a database', () => {
    const { services, volumes } = read('compose.yaml');
    const { environment = {}, volumes: mounted } = services.gateway!;
    expect(readConfig(environment).ok).toBe(true);
    expect(mounted).toEqual(['gateway:/data']);
    expect(Object.keys(volumes)).toEqual(['gateway', 'postgres']);
  });
});

describe('compose.cluster.yaml', () => {
  const { services, configs } = read('compose.cluster.yaml');
  const gateways = Object.entries(services).filter(([name]) => name.startsWith('gateway-'));

  test('starts three gateways that act as one, each with a name and data of its own', () => {
    expect(gateways).toHaveLength(3);
    for (const [name, { environment = {}, volumes: mounted }] of gateways) {
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

  test('balances between the gateways that it starts', () => {
    const named = [...configs!.haproxy.content.matchAll(/^ +server (\S+) (\S+):(\d+)/gm)].map(([, ...parts]) => parts);
    const servers = (port: string): string[][] => gateways.map(([name]) => [name, name, port]);
    expect(named).toEqual([...servers('8080'), ...servers('50051')]);
  });
});

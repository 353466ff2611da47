/** Checks of deploy/ without containers, Grafana or a service manager: it names what there is. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { VARIABLES } from '../src/config/config.ts';
import { unknownVariables } from '../src/config/read.ts';
import { PACKAGE_ROOT } from '../src/system/package-files.ts';

const at = (path: string): string => join(PACKAGE_ROOT, path);
const read = (path: string): string => readFileSync(at(path), 'utf8');
const RULES = 'deploy/prometheus/svc-gateway.rules.yaml';
const hasTool = (name: string): boolean => spawnSync(name, ['--version']).error === undefined;

/** Without the parts of a histogram. */
const namesIn = (text: string): string[] => [
  ...new Set([...text.matchAll(/\bsvc_[a-z_]+/g)].map(([name]) => name.replace(/_bucket$/, ''))),
];
const metrics = new Set(['src/app/metrics.ts', 'src/cluster/measures.ts'].flatMap((path) => namesIn(read(path))));

describe('deploy/', () => {
  test.each([RULES, 'deploy/prometheus/svc-gateway.test.yaml', 'deploy/grafana/svc-gateway.json'])(
    '%s names metrics that exist',
    (path) => {
      const named = namesIn(read(path));
      expect(named.length).toBeGreaterThan(10);
      expect(named.filter((name) => !metrics.has(name))).toEqual([]);
    },
  );

  test('every alert has a test that raises it', () => {
    const { groups } = parse(read(RULES)) as { groups: { rules: { alert: string }[] }[] };
    const alerts = groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
    const { tests } = parse(read('deploy/prometheus/svc-gateway.test.yaml')) as {
      tests: { alert_rule_test: { alertname: string; exp_alerts: unknown[] }[] }[];
    };
    const raised = tests
      .flatMap(({ alert_rule_test: each }) => each)
      .filter(({ exp_alerts: expected }) => expected.length > 0)
      .map(({ alertname }) => alertname);
    expect(raised.sort()).toEqual(alerts.sort());
  });

  test.skipIf(!hasTool('promtool'))('promtool takes the rules, and their tests pass', () => {
    const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', 'svc-gateway.test.yaml'], {
      cwd: at('deploy/prometheus'),
      encoding: 'utf8',
    });
    expect({ status, said: stdout + stderr }).toMatchObject({ status: 0 });
  });

  describe('the chart of Helm', () => {
    const CHART = 'deploy/helm/svc-gateway';
    const CLUSTER = [
      'replicas=3',
      'secrets.database.name=database',
      'secrets.signingKey.name=signing',
      'secrets.tls.name=tls',
      'serviceMonitor.enabled=true',
      'policies.acme\\.yaml=name: acme',
      'settings.SVC_PUBLIC_URL=https://svc.example.com',
    ];
    type Manifest = { kind: string; spec: any };
    const helm = (...words: string[]): { status: number | null; stdout: string; stderr: string } =>
      spawnSync('helm', words, { encoding: 'utf8', env: { ...process.env, HOME: '/nonexistent' } });
    const template = (settings: readonly string[]): ReturnType<typeof helm> =>
      helm(
        'template',
        'gw',
        at(CHART),
        '--kube-version',
        '1.31.0',
        ...settings.flatMap((setting) => ['--set', setting]),
      );
    const rendered = (settings: readonly string[]): Manifest[] => {
      const { status, stdout, stderr } = template(settings);
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
      return parseAllDocuments(stdout).map((document) => document.toJS() as Manifest);
    };
    const container = (
      manifests: readonly Manifest[],
    ): { env: { name: string; value?: string }[]; [key: string]: any } =>
      manifests.find(({ kind }) => kind === 'StatefulSet')!.spec.template.spec.containers[0];

    test('names settings that exist, in templates and in its schema', () => {
      const named = ['templates/statefulset.yaml', 'values.schema.json'].flatMap(
        (path) => read(`${CHART}/${path}`).match(/\bSVC_[A-Z_]+\b/g) ?? [],
      );
      expect(named.length).toBeGreaterThan(20);
      expect(named.filter((name) => !(name in VARIABLES))).toEqual([]);
    });

    test('has the version of the package', () => {
      const { version } = JSON.parse(read('package.json')) as { version: string };
      expect(parse(read(`${CHART}/Chart.yaml`))).toMatchObject({ version, appVersion: version });
    });

    test.skipIf(!hasTool('helm'))('starts one gateway, on a volume of its own', () => {
      expect(helm('lint', '--strict', at(CHART))).toMatchObject({ status: 0 });
      const manifests = rendered([]);
      expect(manifests.map(({ kind }) => kind).sort()).toEqual(['Service', 'Service', 'StatefulSet']);
      expect(container(manifests)).toMatchObject({
        env: [{ name: 'SVC_SHUTDOWN_SECS', value: '7' }],
        livenessProbe: { httpGet: { path: '/healthz', scheme: 'HTTP' } },
        securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
      });
      expect(
        manifests.find(({ kind }) => kind === 'StatefulSet')!.spec.template.spec.terminationGracePeriodSeconds,
      ).toBe(15);
    });

    test.skipIf(!hasTool('helm'))('starts a cluster with TLS, and settings that the gateway takes', () => {
      const manifests = rendered(CLUSTER);
      expect(manifests.map(({ kind }) => kind).sort()).toEqual([
        'ConfigMap',
        'PodDisruptionBudget',
        'Service',
        'Service',
        'ServiceMonitor',
        'StatefulSet',
      ]);
      const { env, livenessProbe: probe } = container(manifests);
      const settings = Object.fromEntries(env.map(({ name, value }) => [name, value ?? 'postgres://db/svc']));
      expect(unknownVariables(settings)).toEqual([]);
      expect(settings).toMatchObject({ SVC_CLUSTER: 'on', SVC_JWT_PRIVATE_KEY: '/secrets/signing/signing.pem' });
      expect(probe.httpGet.scheme).toBe('HTTPS');
    });

    test.skipIf(!hasTool('helm') || !hasTool('kubernetes-validate')).each([
      ['alone', []],
      ['as a cluster', CLUSTER.filter((setting) => !setting.startsWith('serviceMonitor'))],
    ])('renders what Kubernetes takes, %s', (_, settings) => {
      const { status, stdout, stderr } = spawnSync('kubernetes-validate', ['-k', '1.31', '--strict', '-'], {
        encoding: 'utf8',
        input: template(settings).stdout,
      });
      expect({ status, said: stdout + stderr }).toMatchObject({ status: 0 });
    });

    test.skipIf(!hasTool('helm')).each([
      ['replicas=2', /secrets/],
      ['settings.SVC_CLUSTER=on', /SVC_CLUSTER/],
      ['settings.HTTP_PROXY=x', /HTTP_PROXY/],
      ['persistence.size=10', /size/],
      ['unknown=1', /unknown/],
    ])('refuses %s', (setting, reason) => {
      const { status, stderr } = template([setting]);
      expect(status).toBe(1);
      expect(stderr).toMatch(reason);
    });
  });

  test('the service of systemd names settings that exist, and has time to stop', () => {
    const unit = read('deploy/systemd/svc-gateway.service');
    const named = [...unit.matchAll(/\b(SVC_[A-Z_]+)=/g)].map(([, name]) => name);
    expect(named).toEqual(['SVC_DATA_DIR']);
    const [, seconds = ''] = /^TimeoutStopSec=(\d+)$/m.exec(unit) ?? [];
    expect(Number(seconds)).toBeGreaterThan(Number(VARIABLES.SVC_SHUTDOWN_SECS.fallback) + 3);
  });

  test.skipIf(!hasTool('systemd-analyze'))('systemd knows the service, and finds its exposure low', () => {
    const { stdout, stderr } = spawnSync(
      'systemd-analyze',
      ['security', '--offline=true', at('deploy/systemd/svc-gateway.service')],
      { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C', SYSTEMD_COLORS: '0' } },
    );
    expect(stderr).not.toMatch(/Unknown|ignoring/);
    expect(Number(/Overall exposure level for svc-gateway\.service: ([\d.]+)/.exec(stdout)?.[1])).toBeLessThan(2);
  });

  test('every file is named in the page about it', () => {
    const page = read('docs/deploy.md');
    for (const name of readdirSync(at('deploy'))) expect(page).toContain(`deploy/${name}`);
  });
});
